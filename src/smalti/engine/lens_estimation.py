"""Estimate the lens of a sequence from the residuals of landmarks to the homographies of their pairs.

No mosaic is needed. Each pair has more landmarks than a homography has parameters, and a lens leaves the same pattern
of residuals in all pairs. The coefficients of the lens are parameters that all pairs share. With rows A_l of a pair's
own eight parameters and columns b_l of the coefficients, A_l is projected out of b_l and of the residual. The rest,
summed over all pairs, gives the Gauss-Newton step.

The lens has no, one or two coefficients. One more is accepted only if it explains pairs better that it was not learned
from (two-fold cross-validation). `find_lens` is the entry, `_Pairs` does the work of all pairs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.engine.link_prediction import velocities
from smalti.engine.links import COEFFICIENTS, project_with_slopes
from smalti.geometry.homographies import ENTRIES
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Landmarks

FEWEST_LANDMARKS = 20
"""A pair with fewer landmarks is not used."""

MOST_LANDMARKS = 120
"""The most landmarks of a pair that are used."""

FEWEST_PAIRS = 8
MOST_PAIRS = 80

STEPS, FIT_STEPS = 6, 4
"""Gauss-Newton steps of the lens, whose distortion is nearly linear in its coefficients, and of the pairs' maps."""

REGULARISATION = 1e-12
"""As a share of the information, added to the diagonal of a pair's normal equations."""

SIGNIFICANT_ERRORS = 3.0
"""The gain on validation pairs must be so many times its standard error."""

LEAST_GAIN = 0.1
"""The smallest gain, as a share of the squared residuals of validation pairs. The lenses of the data explain 10 to
80 %. Where frames hardly move from one to the next, other effects explain up to 6 % and would be taken for a strong
lens."""

ERROR_INFLATION, ABSENT_DEVIATION = 5.0, 1e-6
"""The error of an estimated lens, in multiples of what the scatter of pairs shows: relief bends all pairs the same way.
And the deviation of a coefficient that the lens does not have."""

LARGEST = 0.3
"""The largest absolute value of a coefficient. Beyond it, a radial polynomial no longer describes a lens."""

TOLERATED_PX = 3.0
"""Landmarks with larger residuals lose weight."""


def find_lens(chain: Sequence[Landmarks], outline: Outline) -> tuple[Lens, NDArray[np.float64] | None]:
    """Return the lens that the pairs of a chain agree on, and a root (2, 2) of the information on its coefficients.

    If they agree on none, return an undistorted lens and None.
    """
    best, root = Lens(outline), None
    usable = [record for record in chain if len(record) >= FEWEST_LANDMARKS]
    chosen = np.unique(np.linspace(0, len(usable) - 1, min(len(usable), MOST_PAIRS)).round().astype(int))
    if len(chosen) < FEWEST_PAIRS:
        return best, root
    pairs = _Pairs.of([usable[n] for n in chosen], outline)
    even, odd = pairs.every_second(0), pairs.every_second(1)
    halves = (even, odd), (odd, even)
    before = [validation.costs(best) for _, validation in halves]
    for coefficients in (1, 2):
        learned = [_fit(training, outline, coefficients) for training, _ in halves]
        after = [validation.costs(lens) for lens, (_, validation) in zip(learned, halves, strict=True)]
        gains = np.concatenate(before) - np.concatenate(after)
        error = float(np.std(gains)) * np.sqrt(len(gains))
        if gains.sum() < max(SIGNIFICANT_ERRORS * error, LEAST_GAIN * float(np.concatenate(before).sum())):
            break
        found = _fit(pairs, outline, coefficients)
        if found.folds:
            break
        best, before, root = found, after, _information_root(pairs, found, coefficients)
    return best, root


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The landmarks of pairs, in distorted pixels, filled up to the same number with landmarks of weight 0."""

    points_i: NDArray[np.float64]  # (P, m, 2)
    points_j: NDArray[np.float64]
    counts: NDArray[np.float64]  # (P, m): 1 for a landmark, 0 for a filler
    outline: Outline

    @classmethod
    def of(cls, records: Sequence[Landmarks], outline: Outline) -> _Pairs:
        chosen = [
            np.unique(np.linspace(0, len(record) - 1, min(len(record), MOST_LANDMARKS)).round().astype(int))
            for record in records
        ]
        most = max(len(some) for some in chosen)
        points_i, points_j = (np.tile(outline.centre, (len(records), most, 1)) for _ in range(2))
        counts = np.zeros((len(records), most))
        for n, (record, some) in enumerate(zip(records, chosen, strict=True)):
            points_i[n, : len(some)], points_j[n, : len(some)] = record.points_i[some], record.points_j[some]
            counts[n, : len(some)] = 1.0
        return cls(points_i, points_j, counts, outline)

    def every_second(self, first: int) -> _Pairs:
        """Return half of the pairs."""
        some = slice(first, None, 2)
        return _Pairs(self.points_i[some], self.points_j[some], self.counts[some], self.outline)

    def costs(self, lens: Lens) -> NDArray[np.float64]:
        """Return the robust squared residuals (P,), px², of the best homographies between undistorted points."""
        _, off, _ = self._fit(lens)
        squared = np.sum(off**2, axis=2) * self.outline.unit**2
        return np.asarray(np.sum(self.counts * squared / (1.0 + squared / TOLERATED_PX**2), axis=1))

    def information(self, lens: Lens, coefficients: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the information (P, c, c) on c coefficients and scores (P, c), the pairs' own maps projected out."""
        i_from_j, off, rows = self._fit(lens)
        shape = (*self.points_i.shape, COEFFICIENTS)
        by_i, by_j = (
            lens.by_coefficients(points.reshape(-1, 2)).reshape(shape) / self.outline.unit
            for points in (self.points_i, self.points_j)
        )
        # The lens moves the points of i, and through the map also those of j.
        mapped = self._in_units(self.points_j, lens) @ np.swapaxes(i_from_j[:, :, :2], 1, 2) + i_from_j[:, None, :, 2]
        projected = mapped[..., :2] / mapped[..., 2:]
        slopes = i_from_j[:, None, :2, :2] - projected[..., None] * i_from_j[:, None, 2:, :2]
        columns = (by_i - slopes / mapped[..., 2, None, None] @ by_j)[..., :coefficients]
        root = np.sqrt(self._weights(off))[..., None, None]
        count = len(off)
        a, b = (rows * root).reshape(count, -1, ENTRIES), (columns * root).reshape(count, -1, coefficients)
        b = b - a @ _solve_each(a, b)
        score = np.swapaxes(b, 1, 2) @ (off[..., None] * root).reshape(count, -1, 1)
        return np.swapaxes(b, 1, 2) @ b, score[..., 0]

    def _fit(self, lens: Lens) -> tuple[Homographies, NDArray[np.float64], NDArray[np.float64]]:
        """Return the maps (P, 3, 3), residuals of landmarks (P, m, 2) and derivatives (P, m, 2, 8), in units."""
        points_i, points_j = self._in_units(self.points_i, lens), self._in_units(self.points_j, lens)
        count = len(points_j)
        sides = np.concatenate([points_j, np.ones((*points_j.shape[:2], 1))], axis=2) * self.counts[..., None]
        i_from_j = np.tile(np.eye(3), (count, 1, 1))
        i_from_j[:, :2] = np.swapaxes(_solve_each(sides, points_i * self.counts[..., None]), 1, 2)
        for _ in range(FIT_STEPS):
            off, rows = _residuals(i_from_j, points_i, points_j)
            root = np.sqrt(self._weights(off))[..., None]
            a, b = (rows * root[..., None]).reshape(count, -1, ENTRIES), (off * root).reshape(count, -1, 1)
            moved = np.tile(np.eye(3), (count, 1, 1))
            moved.reshape(count, 9)[:, :ENTRIES] += _solve_each(a, b)[..., 0]
            i_from_j = i_from_j @ moved
            i_from_j /= i_from_j[:, 2:, 2:]
        return i_from_j, *_residuals(i_from_j, points_i, points_j)

    def _weights(self, off: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.counts / (1.0 + np.sum(off**2, axis=2) * (self.outline.unit / TOLERATED_PX) ** 2))

    def _in_units(self, points: NDArray[np.float64], lens: Lens) -> NDArray[np.float64]:
        undistorted = lens.undistort(points.reshape(-1, 2)).reshape(points.shape)
        return np.asarray((undistorted - self.outline.centre) / self.outline.unit)


def _residuals(
    i_from_j: Homographies, points_i: NDArray[np.float64], points_j: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return residuals of landmarks (P, m, 2) to maps (P, 3, 3), and their derivatives by increments (P, m, 2, 8)."""
    projected, slopes = project_with_slopes(i_from_j, points_j)
    return points_i - projected, slopes @ velocities(points_j)


def _solve_each(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least-squares solutions (P, c, k) of a (P, n, c) and b (P, n, k)."""
    normal = np.swapaxes(a, 1, 2) @ a
    unknowns = normal.shape[1]
    # What landmarks leave undetermined stays where it is.
    strength = REGULARISATION * np.maximum(np.trace(normal, axis1=1, axis2=2), 1.0)
    ridge = strength[:, None, None] * np.eye(unknowns)
    return np.asarray(np.linalg.solve(normal + ridge, np.swapaxes(a, 1, 2) @ b))


def _fit(pairs: _Pairs, outline: Outline, coefficients: int) -> Lens:
    """Return the lens with so many coefficients that fits the pairs' landmarks best."""
    found = np.zeros(2)
    for _ in range(STEPS):
        information, score = pairs.information(Lens(outline, *found.tolist()), coefficients)
        # A larger coefficient adds its column to the residual, so the step is the negative solution.
        step = -np.linalg.lstsq(information.sum(axis=0), score.sum(axis=0), rcond=1e-9)[0]
        found[:coefficients] = np.clip(found[:coefficients] + step, -LARGEST, LARGEST)
        if np.abs(step).max() < 1e-6:
            break
    return Lens(outline, *found.tolist())


def _information_root(pairs: _Pairs, lens: Lens, coefficients: int) -> NDArray[np.float64]:
    """Return a root (2, 2) of the information on a lens, from the scatter of the pairs' scores."""
    information, scores = pairs.information(lens, coefficients)
    inverse = np.linalg.pinv(information.sum(axis=0))
    covariance = ERROR_INFLATION**2 * inverse @ scores.T @ scores @ inverse + ABSENT_DEVIATION**2 * np.eye(coefficients)
    root = np.eye(2) / ABSENT_DEVIATION
    root[:coefficients, :coefficients] = np.linalg.cholesky(np.linalg.inv(covariance)).T
    return root
