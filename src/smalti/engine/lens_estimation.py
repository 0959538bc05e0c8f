"""Estimate the lens of a sequence from the residuals of landmarks to the homographies of their pairs.

No mosaic is needed. Each pair has more landmarks than a homography has parameters, and a lens leaves the same pattern
of residuals in all pairs. The coefficients of the lens are parameters that all pairs share. With rows A_l of a pair's
own eight parameters and columns b_l of the coefficients, A_l is projected out of b_l and of the residual. The rest,
summed over all pairs, gives the Gauss-Newton step.

The lens has no, one or two coefficients. One more is accepted only if it explains pairs better that it was not learned
from (two-fold cross-validation). `find_lens` is the entry, `_Pair` does the work of one pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smalti.engine.links import projected_and_rows
from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Landmarks, Points

FEWEST_LANDMARKS = 20
"""A pair with fewer landmarks is not used."""

MOST_LANDMARKS = 120
"""The most landmarks of a pair that are used."""

FEWEST_PAIRS = 8
MOST_PAIRS = 80

STEPS = 6
"""Gauss-Newton steps: the distortion is nearly linear in its coefficients."""

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
    pairs = [_Pair.of(usable[n], outline) for n in chosen]
    if len(pairs) < FEWEST_PAIRS:
        return best, root
    halves = (pairs[::2], pairs[1::2]), (pairs[1::2], pairs[::2])
    before = [np.array([pair.cost(best) for pair in validation]) for _, validation in halves]
    for coefficients in (1, 2):
        learned = [_fit(training, outline, coefficients) for training, _ in halves]
        after = [
            np.array([pair.cost(lens) for pair in validation])
            for lens, (_, validation) in zip(learned, halves, strict=True)
        ]
        gains = np.concatenate(before) - np.concatenate(after)
        error = float(np.std(gains)) * np.sqrt(len(gains))
        if gains.sum() < max(SIGNIFICANT_ERRORS * error, LEAST_GAIN * float(np.concatenate(before).sum())):
            break
        found = _fit(pairs, outline, coefficients)
        if found.folds:
            break
        best, before, root = found, after, _information_root(pairs, found, coefficients)
    return best, root


class _Pair:
    """The landmarks of a pair, in distorted pixels."""

    def __init__(self, points_i: Points, points_j: Points, outline: Outline) -> None:
        self.points_i, self.points_j, self.outline = points_i, points_j, outline

    @classmethod
    def of(cls, record: Landmarks, outline: Outline) -> _Pair:
        some = np.unique(np.linspace(0, len(record) - 1, min(len(record), MOST_LANDMARKS)).round().astype(int))
        return cls(record.points_i[some], record.points_j[some], outline)

    def cost(self, lens: Lens) -> float:
        """Return the robust squared residuals, px², of the best homography between undistorted points."""
        _, off, _ = self._fit(lens)
        squared = np.sum(off**2, axis=1) * self.outline.unit**2
        return float(np.sum(squared / (1.0 + squared / TOLERATED_PX**2)))

    def information(self, lens: Lens, coefficients: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the information (c, c) on c coefficients and their score (c,), the pair's own map projected out."""
        i_from_j, off, rows = self._fit(lens)
        by_i, by_j = (lens.by_coefficients(points) / self.outline.unit for points in (self.points_i, self.points_j))
        # The lens moves the points of i, and through the map also those of j.
        mapped = self._in_units(self.points_j, lens) @ i_from_j[:, :2].T + i_from_j[:, 2]
        projected = mapped[:, :2] / mapped[:, 2:]
        slopes = (i_from_j[:2, :2] - projected[:, :, None] * i_from_j[2, :2]) / mapped[:, 2][:, None, None]
        columns = (by_i - slopes @ by_j)[:, :, :coefficients]
        root = 1.0 / np.sqrt(1.0 + np.sum(off**2, axis=1) * (self.outline.unit / TOLERATED_PX) ** 2)
        a = (rows * root[:, None, None]).reshape(-1, 8)
        b = (columns * root[:, None, None]).reshape(-1, coefficients)
        q, _ = np.linalg.qr(a)
        b -= q @ (q.T @ b)
        return b.T @ b, b.T @ (off * root[:, None]).ravel()

    def _fit(self, lens: Lens) -> tuple[Homographies, Points, NDArray[np.float64]]:
        """Return the pair's map, residuals of landmarks (n, 2) and their derivatives (n, 2, 8), in units."""
        points_i, points_j = self._in_units(self.points_i, lens), self._in_units(self.points_j, lens)
        ones = np.ones((len(points_j), 1))
        affine, *_ = np.linalg.lstsq(np.hstack([points_j, ones]), points_i, rcond=None)
        i_from_j = np.vstack([affine.T, [0.0, 0.0, 1.0]])
        for _ in range(4):
            projected, rows = projected_and_rows(i_from_j, points_j)
            off = points_i - projected
            root = 1.0 / np.sqrt(1.0 + np.sum(off**2, axis=1) * (self.outline.unit / TOLERATED_PX) ** 2)
            step, *_ = np.linalg.lstsq(
                (rows * root[:, None, None]).reshape(-1, 8), (off * root[:, None]).ravel(), rcond=1e-9
            )
            moved = np.eye(3)
            moved.ravel()[:8] += step
            i_from_j = i_from_j @ moved
            i_from_j /= i_from_j[2, 2]
        projected, rows = projected_and_rows(i_from_j, points_j)
        return i_from_j, points_i - apply_map(i_from_j, points_j), rows

    def _in_units(self, points: Points, lens: Lens) -> Points:
        return (lens.undistort(points) - self.outline.centre) / self.outline.unit


def _fit(pairs: Sequence[_Pair], outline: Outline, coefficients: int) -> Lens:
    """Return the lens with so many coefficients that fits the pairs' landmarks best."""
    found = np.zeros(2)
    for _ in range(STEPS):
        contributions = [pair.information(Lens(outline, *found.tolist()), coefficients) for pair in pairs]
        information = np.sum([one for one, _ in contributions], axis=0)
        score = np.sum([one for _, one in contributions], axis=0)
        # A larger coefficient adds its column to the residual, so the step is the negative solution.
        step = -np.linalg.lstsq(information, score, rcond=1e-9)[0]
        found[:coefficients] = np.clip(found[:coefficients] + step, -LARGEST, LARGEST)
        if np.abs(step).max() < 1e-6:
            break
    return Lens(outline, *found.tolist())


def _information_root(pairs: Sequence[_Pair], lens: Lens, coefficients: int) -> NDArray[np.float64]:
    """Return a root (2, 2) of the information on a lens, from the scatter of the pairs' scores."""
    contributions = [pair.information(lens, coefficients) for pair in pairs]
    inverse = np.linalg.pinv(np.sum([one for one, _ in contributions], axis=0))
    scores = np.array([one for _, one in contributions])
    covariance = ERROR_INFLATION**2 * inverse @ scores.T @ scores @ inverse + ABSENT_DEVIATION**2 * np.eye(coefficients)
    root = np.eye(2) / ABSENT_DEVIATION
    root[:coefficients, :coefficients] = np.linalg.cholesky(np.linalg.inv(covariance)).T
    return root
