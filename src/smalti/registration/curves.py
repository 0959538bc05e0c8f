"""Match the centre lines of a vessel in two frames, and make landmarks of it.

On a smooth line no place differs from the next one. A pair of lines says where the one frame lies on the other *across*
the line, at each of its places. Where the lines are straight, the position along them stays free; where they bend, or
where there are lines in several directions, all is determined. So a landmark on a curve has a direction along which it
says nothing (`records.Landmarks`).

The match moves the line of j over that of i, by a shift, a turn and a scale on top of what is expected, until the
distances across are least. It is tried from many places along the line. What the lines do not determine stays as close
to the expectation as they allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.records import Homographies, Points
from smalti.registration.vessels import Vessel

MOST_ON_A_CURVE = 10
"""Landmarks of a pair of curves. A link has room for 30 (`engine/links.py`)."""

FEWEST = 3  # of them

APART = 0.75
"""Least distance between two landmarks, in windows of the smoothing: nearer ones would share their noise."""

TURN, SCALE = 0.1, 0.05
"""Standard deviations of the expected turn, in radians, and scale."""

SAME_STRETCH = 0.25
"""People draw the same stretch of a vessel in both frames, up to this share of its length (one σ)."""

COMMON = 1.25
"""Factor on the standard deviation, for what the noise does not show: light that moves with the scope, and what lies
beside the vessel. It was measured on the synthetic endoscope (`benchmarks/vessels.py`)."""

STARTS, ROUNDS = 15, 15
SPACING = 4.0  # px between the places at which distances are measured
ROBUST_PX = 2.0  # a distance of this size counts half
LEAST_SHARED = 0.5  # of the shorter line, that the other one covers too
MOST_BENDS, LARGEST_MISFIT = 1.0, 1.2
"""Of the polynomial that a line is taken for: the highest degree, per window of smoothing, and the RMS distance of the
line from it, in standard deviations."""

LARGEST_DISTANCE = 2.5
"""RMS distance of the lines, px: more, and these are two vessels, or the map bends more than one of a plane."""


@dataclass(frozen=True, slots=True, eq=False)
class CurveMatch:
    """Landmarks on two lines; or the reason why they do not match."""

    found: bool
    points_i: Points  # (n, 2)
    points_j: Points
    along: NDArray[np.float64]  # (n, 2): unit vectors in frame i
    sigma_px: NDArray[np.float64]  # (n,), across, in frame i
    distance_px: float  # RMS between the lines, across
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """One line laid on the other."""

    i_from_j: Homographies
    cost: float
    shared: NDArray[np.bool_]  # of the samples of j
    nearest: NDArray[np.int64]  # their nearest points of i
    off: NDArray[np.float64]  # distances across


def match_vessels(
    in_i: Vessel, in_j: Vessel, i_from_j: Homographies, sigma_px: float | None, lens: Lens | None = None
) -> CurveMatch:
    """Lay the line of j over that of i, near the expected map (3, 3) between undistorted pixels.

    `sigma_px` says how well the position is expected; None: nothing is known, and the ends of the strokes tell it.
    The landmarks are in pixels as they are seen.
    """
    if lens is not None and not lens.is_undistorted:
        straight_i, straight_j = (replace(line, points=lens.undistort(line.points)) for line in (in_i, in_j))
        return _distorted(match_vessels(straight_i, straight_j, i_from_j, sigma_px), lens)
    nothing = np.zeros((0, 2))

    def refuse(reason: str) -> CurveMatch:
        return CurveMatch(False, nothing, nothing, nothing, np.zeros(0), math.inf, reason)

    fit = _Fit(in_i, in_j, SAME_STRETCH * min(in_i.length_px, in_j.length_px), sigma_px)
    places = [fit.descend(start) for start in fit.starts(i_from_j)]
    best = min(places, key=lambda place: place.cost)
    if best.shared.mean() * in_j.length_px < LEAST_SHARED * min(in_i.length_px, in_j.length_px):
        return refuse("the two lines have too little in common, draw the same stretch of the vessel in both frames")
    distance = float(np.sqrt(np.mean(best.off[best.shared] ** 2)))
    if distance > LARGEST_DISTANCE:
        return refuse(f"the two lines differ by {distance:.1f} px, check that both strokes follow the same vessel")
    return fit.landmarks(best, distance) or refuse("the stretch that both lines share is too short, draw more of it")


def _distorted(match: CurveMatch, lens: Lens) -> CurveMatch:
    """Return landmarks of undistorted pixels as they are seen through the lens."""
    points_i = lens.distort(match.points_i)
    along = np.linalg.solve(lens.slopes(points_i), match.along[:, :, None])[:, :, 0]
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    return replace(match, points_i=points_i, points_j=lens.distort(match.points_j), along=np.asarray(along, np.float64))


class _Fit:
    """Lays the line of j over that of i."""

    def __init__(self, in_i: Vessel, in_j: Vessel, stretch_px: float, sigma_px: float | None) -> None:
        self._i, self._j = in_i, in_j
        self._tree = cKDTree(in_i.points)
        self._shape = _Shape.of(in_i)
        self._directions = self._shape.directions
        self._samples = np.unique(
            np.rint(np.linspace(0, len(in_j.points) - 1, 1 + int(in_j.length_px / SPACING)))
        ).astype(int)
        self._is_expected = sigma_px is not None
        self._deviation = stretch_px if sigma_px is None else min(sigma_px, stretch_px)
        self._reach = stretch_px

    def starts(self, i_from_j: Homographies) -> list[Homographies]:
        """Return maps that lay the middle of one line on places of the other; without expectation, also turned."""
        ends = (self._j.points[[0, -1]], self._j.points[[-1, 0]])
        maps = [i_from_j] if self._is_expected else [_through(end, self._i.points[[0, -1]]) for end in ends]
        middle_j = self._j.points[len(self._j.points) // 2]
        middle, reach = len(self._i.points) // 2, 2 * self._reach
        found = []
        for each in maps:
            for offset in np.linspace(-reach, reach, STARTS):
                at = int(np.clip(middle + offset, 0, len(self._i.points) - 1))
                shift = self._i.points[at] - apply_map(each, middle_j[None])[0]
                found.append(_shift(shift) @ each)
        self._expected = maps[0]
        return found

    def descend(self, start: Homographies) -> _Place:
        """Move the line of j until the distances across are least."""
        points_j = self._j.points[self._samples]
        pivot = apply_map(start, points_j).mean(axis=0)
        expected = None if not self._is_expected else apply_map(self._expected, points_j).mean(axis=0)
        motion = np.zeros(4)
        for _ in range(ROUNDS):
            place = self._look(_similarity(motion, pivot) @ start)
            rows, right = self._equations(place, pivot, motion, expected)
            step = np.linalg.lstsq(rows, right, rcond=None)[0]
            motion = motion + step
            if np.abs(step[:2]).max() < 1e-3:
                break
        place = self._look(_similarity(motion, pivot) @ start)
        _, right = self._equations(place, pivot, motion, expected)
        missing = np.sum(~place.shared)
        return _Place(place.i_from_j, float(right @ right) + float(missing), place.shared, place.nearest, place.off)

    def landmarks(self, place: _Place, distance_px: float) -> CurveMatch | None:
        """Return landmarks spread over the stretch that both lines share; None where it is too short."""
        samples = self._samples[place.shared]
        window = max(self._i.window_px, self._j.window_px)
        length = float(samples[-1] - samples[0])
        count = min(MOST_ON_A_CURVE, int(length / (APART * window)))
        if count < FEWEST:
            return None
        # Not at the very ends, where smoothing has neighbours on one side only.
        margin = min(window / 2, length / 6)
        chosen = np.searchsorted(samples, np.linspace(samples[0] + margin, samples[-1] - margin, count))
        chosen = np.unique(np.minimum(chosen, len(samples) - 1))
        at_j, at_i = samples[chosen], place.nearest[place.shared][chosen]
        points_j = self._j.points[at_j]
        mapped = apply_map(place.i_from_j, points_j)
        along = self._directions[at_i]
        # On the line of i, as close as possible to where the match has the point.
        points_i = self._i.points[at_i] + along * np.sum((mapped - self._i.points[at_i]) * along, axis=1)[:, None]
        scale = math.sqrt(abs(np.linalg.det(place.i_from_j[:2, :2])))
        own = COMMON * np.hypot(self._i.sigma_px[at_i], scale * self._j.sigma_px[at_j])
        # What the lines differ by beyond their noise is their error too: relief, or tissue that moved.
        excess = max(1.0, distance_px / float(np.sqrt(np.mean(own**2))))
        slips = self._free_px(place, mapped, along, own)
        # A point that slips by s along an arc of curvature k leaves its tangent by k s²/2, whose mean square is 3/4 of
        # that of σ(s); and the tangent is only as exact as the piece of the line that it is taken over.
        bent = math.sqrt(0.75) * self._shape.curvature[at_i] * slips**2
        piece, window_i = self._shape.piece_px, self._i.window_px
        tilted = self._i.sigma_px[at_i] * math.sqrt(12.0 * min(window_i / piece, 1.0)) / piece * slips
        sigma = np.sqrt((excess * own) ** 2 + bent**2 + tilted**2)
        return CurveMatch(True, points_i, points_j, along, sigma, distance_px, "")

    def _look(self, i_from_j: Homographies) -> _Place:
        mapped = apply_map(i_from_j, self._j.points[self._samples])
        _, nearest = self._tree.query(mapped)
        away = mapped - self._i.points[nearest]
        along = self._directions[nearest]
        off = away[:, 1] * along[:, 0] - away[:, 0] * along[:, 1]
        # Beyond an end of the other line, the nearest point is the end itself.
        shared = np.abs(np.sum(away * along, axis=1)) < 1.0
        return _Place(i_from_j, math.inf, shared, np.asarray(nearest, dtype=np.int64), off)

    def _equations(
        self, place: _Place, pivot: NDArray[np.float64], motion: NDArray[np.float64], expected: Points | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return rows and right sides for the shift (x, y), the turn and the logarithm of the scale."""
        mapped = apply_map(place.i_from_j, self._j.points[self._samples])
        along = self._directions[place.nearest]
        rows = _rows(mapped - pivot - motion[:2], along)
        # Places SPACING apart share some noise; this only weighs the lines against the expectation.
        weight = place.shared / (1.0 + (place.off / ROBUST_PX) ** 2)
        lines = rows * weight[:, None], -place.off * weight
        deviations = np.array([self._deviation, self._deviation, TURN, SCALE])
        rest = motion.copy()
        if expected is not None:
            rest[:2] = mapped.mean(axis=0) - expected
        return np.vstack([lines[0], np.diag(1 / deviations)]), np.concatenate([lines[1], -rest / deviations])

    def _free_px(
        self, place: _Place, mapped: Points, along: NDArray[np.float64], own: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return how far each point may still slip along the line, one σ, by the lines and the expectation."""
        pivot = mapped.mean(axis=0)
        rows = _rows(mapped - pivot, along) / own[:, None]
        prior = np.diag(1 / np.array([self._deviation, self._deviation, TURN, SCALE]) ** 2)
        covariance = np.linalg.inv(rows.T @ rows + prior)
        slips = _rows(mapped - pivot, along[:, ::-1] * (1.0, -1.0))
        return np.asarray(np.sqrt(np.sum((slips @ covariance) * slips, axis=1)))


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """The simplest line that a noisy one can be."""

    directions: NDArray[np.float64]  # (n, 2), unit vectors
    curvature: NDArray[np.float64]  # (n,), 1/px
    piece_px: float  # length that a direction is taken over

    @classmethod
    def of(cls, line: Vessel) -> _Shape:
        """Fit polynomials of rising degree until the line is as near as its noise.

        The noise of a straight line would otherwise be bends, which seem to determine the position along it.
        """
        count = len(line.points)
        share = np.linspace(-1.0, 1.0, count)
        for degree in range(1, max(int(MOST_BENDS * line.length_px / line.window_px), 2) + 1):
            fit = legendre.legfit(share, line.points, degree)
            directions = _units(np.asarray(legendre.legval(share, legendre.legder(fit)).T, dtype=np.float64))
            away = line.points - legendre.legval(share, fit).T
            across = away[:, 1] * directions[:, 0] - away[:, 0] * directions[:, 1]
            if np.mean((across / line.sigma_px) ** 2) < LARGEST_MISFIT**2:
                break
        turned = np.linalg.norm(np.gradient(directions, axis=0), axis=1)
        return cls(directions, turned, line.length_px / degree)


def _units(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def _rows(offsets: Points, along: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how points at offsets (n, 2) from the pivot move across directions with shift, turn and scale: (n, 4)."""
    across = along[:, ::-1] * (-1.0, 1.0)
    turned = offsets[:, ::-1] * (-1.0, 1.0)
    return np.column_stack([across, np.sum(across * turned, axis=1), np.sum(across * offsets, axis=1)])


def _similarity(motion: NDArray[np.float64], pivot: NDArray[np.float64]) -> Homographies:
    """Return the map that turns and scales about a pivot, then shifts."""
    scale = math.exp(motion[3])
    cosine, sine = scale * math.cos(motion[2]), scale * math.sin(motion[2])
    turn = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(_shift(pivot + motion[:2]) @ turn @ _shift(-pivot))


def _shift(by: NDArray[np.float64]) -> Homographies:
    return np.array([[1.0, 0.0, by[0]], [0.0, 1.0, by[1]], [0.0, 0.0, 1.0]])


def _through(ends_j: Points, ends_i: Points) -> Homographies:
    """Return the shift and turn that take the one line's ends nearest to the other's."""
    (a_x, a_y), (b_x, b_y) = ends_j[1] - ends_j[0], ends_i[1] - ends_i[0]
    angle = math.atan2(a_x * b_y - a_y * b_x, a_x * b_x + a_y * b_y)
    turn = _similarity(np.array([0.0, 0.0, angle, 0.0]), np.zeros(2))
    return _shift(ends_i.mean(axis=0) - apply_map(turn, ends_j).mean(axis=0)) @ turn
