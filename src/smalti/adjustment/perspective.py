"""The finish: a homography per frame, fitted to the landmarks of all links at once, robustly.

The affine adjustment chooses and judges the pairs. Cameras that tilt see perspective, which no affine map follows; on
aerial frames that is most of the error that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.cholesky import BlockCholesky, NotPositiveDefiniteError
from smalti.adjustment.pattern import Pattern
from smalti.errors import SingularSystemError
from smalti.geometry.affine import homogeneous, square
from smalti.geometry.homography import project
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Landmarks, Pair, Points, Transforms

MAX_STEPS = 30
SMALLEST_GAIN = 1e-6
"""A step that lowers the cost by less than this fraction ends the fit."""

FIRST_DAMPING = 1e-8
LARGEST_DAMPING = 1e4

MAX_LANDMARKS = 30
"""Landmarks of a link that take part, spread over it: more of them say the same again, and a link of hundreds would
outvote the loops."""

PERSPECTIVE_SIGMA = 0.2
"""How far, a priori, the depth of a frame changes over half its size. It does not matter to a frame with points all
over; it holds one that hangs on a strip."""

STRONGEST_PERSPECTIVE = 0.5
"""A frame whose depth changes by more over half its size, as all its neighbours see it, has run away. What the
reference sees does not tell: a camera that pans is turned away from it further and further."""

TOLERATED_DEVIATIONS = 6.0
"""Residuals lose weight beyond this many robust deviations: what relief moves counts, what is wrong does not."""

TIE_SIGMA = 10.0
"""px. Weak beside any landmark, strong beside what is expected of cameras."""

JUDGED_LANDMARKS = 12
SMALLEST_ANNEALED = 1.0
MAX_ANNEALING = 40
ANNEALING_DAMPING = 1e-6
"""For a quick judgement: landmarks of a link, px of tolerated residual, steps."""

SMALLEST_SCALE = 0.3
"""px. Residuals below this are the detector's."""

_DIRECTIONS = np.zeros((8, 3, 3))
_DIRECTIONS[np.arange(8), np.arange(8) // 3, np.arange(8) % 3] = 1.0
"""The entries of a homography that move; the last one stays 1."""


@dataclass(frozen=True, slots=True, eq=False)
class PerspectiveFit:
    """A homography per frame, and how well the landmarks agree with it."""

    mosaic_from_frame: Homographies  # (N, 3, 3), pixels of the reference frame
    scale_px: float  # robust spread of the residuals
    steps: int
    converged: bool


def fit_perspective(
    start: Transforms,
    outline: Outline,
    landmarks: Sequence[Landmarks],
    reference: int,
) -> PerspectiveFit:
    """Minimise the robust distances between landmarks in frame i, from the affine mosaic `start` (N, 2, 3).

    Gauss-Newton in local increments H ← H (I + Δ): with G = H_i⁻¹ H_j and p = G x̃_j, p changes by
    G Δ_j x̃_j - Δ_i p. The reference frame is fixed. A frame whose perspective runs away is fitted again as an affine
    one.
    """
    rows = _Rows.of(landmarks, outline, MAX_LANDMARKS)
    unit_from_pixels = square(outline.unit_from_pixels)
    pixels_from_unit = np.linalg.inv(unit_from_pixels)
    # Where the affine mosaic is far off, a small tolerance from the start would take honest links for wrong ones.
    near = anneal_perspective(square(start), outline, landmarks, (), reference)
    maps = unit_from_pixels @ near @ pixels_from_unit
    sigma = np.full(len(maps), PERSPECTIVE_SIGMA)
    problem = _Problem(rows, reference, outline.unit)
    fitted, steps, converged = problem.solve(maps, sigma)
    for _ in range(len(maps)):
        runaway = (problem.perspective(fitted) > STRONGEST_PERSPECTIVE) & (sigma == PERSPECTIVE_SIGMA)
        if not runaway.any():
            break
        sigma[runaway] = 1e-4
        fitted, steps, converged = problem.solve(maps, sigma)
    distances = np.linalg.norm(problem.residuals(fitted), axis=1)
    in_pixels = pixels_from_unit @ fitted @ unit_from_pixels
    in_pixels /= in_pixels[:, 2:, 2:]
    return PerspectiveFit(in_pixels, _robust_scale(distances), steps, converged)


def anneal_perspective(
    start: Homographies, outline: Outline, landmarks: Sequence[Landmarks], loose: Sequence[Pair], reference: int
) -> Homographies:
    """Return homographies (N, 3, 3) that most links agree on, however wrong the others are; quickly, to judge by.

    The tolerated residual shrinks from what the `start` shows to a few deviations of what remains. `loose` pairs keep
    frames together that no landmark connects.
    """
    rows = _Rows.of([*landmarks, *(_loose_tie(pair, start, outline) for pair in loose)], outline, JUDGED_LANDMARKS)
    unit_from_pixels = square(outline.unit_from_pixels)
    maps = unit_from_pixels @ start @ np.linalg.inv(unit_from_pixels)
    maps = np.linalg.inv(maps[reference]) @ maps
    maps /= maps[:, 2:, 2:]
    problem = _Problem(rows, reference, outline.unit)
    sigma = np.full(len(maps), PERSPECTIVE_SIGMA)
    residual = problem.residuals(maps)
    scale = max(float(np.quantile(np.linalg.norm(residual, axis=1), 0.9)), SMALLEST_ANNEALED)
    for _ in range(MAX_ANNEALING):
        for _ in range(2):
            moved = problem.step(maps, residual, sigma, scale, ANNEALING_DAMPING)
            new_residual = problem.residuals(moved)
            if not np.isfinite(new_residual).all():
                break
            maps, residual = moved, new_residual
        wanted = max(3.0 * _robust_scale(np.linalg.norm(residual, axis=1)), SMALLEST_ANNEALED)
        if wanted > 0.98 * scale:
            break
        scale = max(wanted, scale / 1.4)
    in_pixels = np.linalg.inv(unit_from_pixels) @ maps @ unit_from_pixels
    found: Homographies = in_pixels / in_pixels[:, 2:, 2:]
    return found


def residual_px(mosaic_from_frame: Homographies, landmarks: Landmarks) -> float:
    """Return the RMS distance, in frame i, between the landmarks and where the mosaic (N, 3, 3) sees them."""
    i_from_j = np.linalg.inv(mosaic_from_frame[landmarks.pair.i]) @ mosaic_from_frame[landmarks.pair.j]
    distances = project(i_from_j, landmarks.points_j) - landmarks.points_i
    return float(np.sqrt(np.mean(np.sum(distances**2, axis=1))))


def spread_out(points: Points, count: int) -> NDArray[np.int64]:
    """Return the numbers of `count` points, or of all if they are fewer, far from each other: greedily the farthest."""
    if len(points) <= count:
        return np.arange(len(points))
    distance = np.sum((points - points.mean(axis=0)) ** 2, axis=1)
    chosen = np.empty(count, dtype=np.int64)
    for n in range(count):
        chosen[n] = np.argmax(distance)
        to_chosen = np.sum((points - points[chosen[n]]) ** 2, axis=1)
        distance = to_chosen if n == 0 else np.minimum(distance, to_chosen)
    return np.sort(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Landmarks of all links below each other, in units of the frame."""

    pairs: NDArray[np.int64]  # (L, 2)
    link: NDArray[np.int64]  # (n,): which link a row is of
    points_i: Points  # (n, 2)
    points_j: NDArray[np.float64]  # (n, 3)
    weight: NDArray[np.float64]  # (n,)

    @classmethod
    def of(cls, landmarks: Sequence[Landmarks], outline: Outline, most: int) -> _Rows:
        """Take at most so many landmarks of a link."""
        to_unit = outline.unit_from_pixels
        pairs, link, points_i, points_j, weight = [], [], [], [], []
        for n, record in enumerate(sorted(landmarks, key=lambda record: record.pair)):
            chosen = spread_out(record.points_j, most)
            pairs.append((record.pair.i, record.pair.j))
            link.append(np.full(len(chosen), n))
            points_i.append(homogeneous(record.points_i[chosen]) @ to_unit.T)
            points_j.append(homogeneous(homogeneous(record.points_j[chosen]) @ to_unit.T))
            weight.append(record.weights[chosen])
        return cls(
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
            np.concatenate(link),
            np.concatenate(points_i),
            np.concatenate(points_j),
            np.concatenate(weight),
        )


def _loose_tie(pair: Pair, maps: Homographies, outline: Outline) -> Landmarks:
    """Return landmarks of no weight to speak of that hold two frames where they are."""
    i_from_j = np.linalg.inv(maps[pair.i]) @ maps[pair.j]
    return Landmarks(pair, project(i_from_j, outline.corners), outline.corners, TIE_SIGMA)


class _Problem:
    """The robust least-squares problem over all frames but the reference."""

    def __init__(self, rows: _Rows, reference: int, unit: float) -> None:
        self.rows = rows
        self.reference = reference
        self.unit = unit

    def solve(self, maps: Homographies, sigma: NDArray[np.float64]) -> tuple[Homographies, int, bool]:
        """Return the maps (N, 3, 3) at the minimum, the steps taken and whether it was reached."""
        steps, converged, damping = 0, False, 0.0
        residual = self.residuals(maps)
        scale = self._tolerance(residual)
        cost = self._cost(residual, maps, sigma, scale)
        while steps < MAX_STEPS and not converged:
            steps += 1
            moved = self.step(maps, residual, sigma, scale, damping)
            new_residual = self.residuals(moved)
            new_cost = self._cost(new_residual, moved, sigma, scale)
            if new_cost > cost:
                damping = max(10 * damping, FIRST_DAMPING)
                converged = damping > LARGEST_DAMPING
                continue
            maps, residual = moved, new_residual
            damping = damping / 10 if damping > FIRST_DAMPING else 0.0
            new_scale = self._tolerance(residual)
            converged = cost - new_cost <= SMALLEST_GAIN * cost and new_scale > 0.999 * scale
            # The scale only shrinks: a cost that is measured anew must not cycle.
            scale = min(scale, new_scale)
            cost = self._cost(residual, maps, sigma, scale)
        return maps, steps, converged

    def residuals(self, maps: Homographies) -> Points:
        """Return the distances (n, 2) in frame i, pixels; infinite behind the camera."""
        seen = self._seen(maps)
        with np.errstate(divide="ignore", invalid="ignore"):
            residual: Points = (seen[:, :2] / seen[:, 2:] - self.rows.points_i) * self.unit
        residual[~(seen[:, 2] > 0)] = np.inf
        return residual

    def perspective(self, maps: Homographies) -> NDArray[np.float64]:
        """Return for every frame (N,) the change of depth over half its size, as the linked frame of least sees it."""
        relative = self._relative(maps)
        change = np.abs(relative[:, 2, :2]).sum(axis=1) / np.abs(relative[:, 2, 2])
        least = np.full(len(maps), np.inf)
        for side in (0, 1):
            np.minimum.at(least, self.rows.pairs[:, side], change)
        return np.where(np.isfinite(least), least, 0.0)

    def _tolerance(self, residual: Points) -> float:
        return TOLERATED_DEVIATIONS * _robust_scale(np.linalg.norm(residual, axis=1))

    def _seen(self, maps: Homographies) -> NDArray[np.float64]:
        relative = self._relative(maps)
        mapped: NDArray[np.float64] = np.einsum("nab,nb->na", relative[self.rows.link], self.rows.points_j)
        return mapped

    def _relative(self, maps: Homographies) -> Homographies:
        i, j = self.rows.pairs.T
        relative: Homographies = np.linalg.inv(maps)[i] @ maps[j]
        return relative

    def _cost(self, residual: Points, maps: Homographies, sigma: NDArray[np.float64], scale: float) -> float:
        squared = np.sum(residual**2, axis=1) / scale**2
        if not np.isfinite(squared).all():
            return np.inf
        prior = np.sum((maps[:, 2, :2] / sigma[:, None]) ** 2) / TOLERATED_DEVIATIONS**2
        return float(np.sum(self.rows.weight**2 * np.log1p(squared)) + prior)

    def step(
        self, maps: Homographies, residual: Points, sigma: NDArray[np.float64], scale: float, damping: float
    ) -> Homographies:
        """Return the maps after one damped step, residuals beyond `scale` px losing weight."""
        rows, frames = self.rows, len(maps)
        relative = self._relative(maps)[rows.link]
        seen = np.einsum("nab,nb->na", relative, rows.points_j)
        image = seen[:, :2] / seen[:, 2:]
        # d(image)/d(seen), in pixels, times the root of the Cauchy weight.
        by_seen = np.zeros((len(seen), 2, 3))
        by_seen[:, [0, 1], [0, 1]] = 1.0
        by_seen[:, :, 2] = -image
        root = rows.weight / scale / np.sqrt(1.0 + np.sum(residual**2, axis=1) / scale**2)
        by_seen *= (self.unit * root / seen[:, 2])[:, None, None]
        # Δ's entry (a, b) moves `seen` by column a of G times x_b, and against it by p_b in direction a.
        by_j = np.einsum("npa,nb->npab", by_seen @ relative, rows.points_j).reshape(-1, 2, 9)[:, :, :8]
        by_i = -np.einsum("npa,nb->npab", by_seen, seen).reshape(-1, 2, 9)[:, :, :8]
        weighted = (residual * root[:, None])[:, :, None]
        diagonal, gradient = np.zeros((frames, 8, 8)), np.zeros((frames, 8))
        starts = np.searchsorted(rows.link, np.arange(len(rows.pairs)))
        crossed = np.add.reduceat(np.swapaxes(by_i, 1, 2) @ by_j, starts)
        for side, jacobian in ((0, by_i), (1, by_j)):
            own = np.add.reduceat(np.swapaxes(jacobian, 1, 2) @ jacobian, starts)
            pull = np.add.reduceat((np.swapaxes(jacobian, 1, 2) @ weighted)[..., 0], starts)
            np.add.at(diagonal, rows.pairs[:, side], own)
            np.add.at(gradient, rows.pairs[:, side], pull)
        self._add_prior(maps, sigma, diagonal, gradient)
        entries = np.arange(8)
        diagonal[:, entries, entries] *= 1.0 + damping
        increments = self._solve(diagonal, crossed, gradient)
        moved: Homographies = maps @ (np.eye(3) + np.einsum("nc,cab->nab", increments, _DIRECTIONS))
        return moved / moved[:, 2:, 2:]

    def _add_prior(
        self,
        maps: Homographies,
        sigma: NDArray[np.float64],
        diagonal: NDArray[np.float64],
        gradient: NDArray[np.float64],
    ) -> None:
        """Hold the perspective row of every map; a small Δ adds its own to it."""
        # The residuals are in units of the tolerance, not of their deviation.
        precision = 1.0 / (TOLERATED_DEVIATIONS * sigma) ** 2
        for entry in (6, 7):
            diagonal[:, entry, entry] += precision
            gradient[:, entry] += precision * maps[:, 2, entry - 6]

    def _solve(
        self, diagonal: NDArray[np.float64], crossed: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        frames = len(diagonal)
        free = np.delete(np.arange(frames), self.reference)
        number = np.full(frames, -1)
        number[free] = np.arange(frames - 1)
        ends = number[self.rows.pairs]
        inner = (ends >= 0).all(axis=1)
        try:
            factor = BlockCholesky(Pattern.of(frames - 1, ends[inner]), diagonal[free], crossed[inner])
        except NotPositiveDefiniteError as failure:
            frame = int(free[failure.node])
            raise SingularSystemError(f"frame {frame}: its landmarks do not determine where it is") from None
        increments = np.zeros((frames, 8))
        increments[free] = -factor.solve(gradient[free][..., None])[..., 0]
        return increments


def _robust_scale(distances: NDArray[np.float64]) -> float:
    """Return the deviation per coordinate of distances whose bulk is normal."""
    # The median of a Rayleigh variable is 1.1774 σ.
    return max(float(np.median(distances)) / 1.1774, SMALLEST_SCALE)
