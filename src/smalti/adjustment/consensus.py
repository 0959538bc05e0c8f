"""Which links contradict the others, decided by all of them at once.

A least-squares mosaic spreads a wrong link over its neighbours until they look as wrong as it does. Here landmarks lose
weight with their residual, and the residual that is tolerated shrinks step by step from one that tolerates all to what
links typically show: the many that agree decide, however far off the few are. Both affine maps and homographies are
tried, and the ones under which more links agree are believed: perspective makes honest affine links contradict each
other, and homographies have too much freedom where frames share but a rim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.perspective import anneal_perspective, residual_px
from smalti.adjustment.refinement import refine
from smalti.geometry.affine import square
from smalti.records import Homographies, Landmarks, Pair

TOLERATED = 6.0
"""Residuals of a link that are tolerated at last, in units of the median one: relief has heavy tails."""

STRICTLY_TOLERATED = 2.5
"""The same while it is open who is right."""

SMALLEST_TOLERANCE = 0.008
"""In diagonals of a frame: less than that bends nothing that anybody would see."""

SHRINKING = 1.4
"""By which factor the tolerated residual shrinks, at most, with every step."""

MOST_STEPS = 40
SETTLED = 0.98
"""A tolerance that shrinks by less than this factor has settled."""

CONTRADICTING = 1.5
"""Tolerances by which a link must miss the mosaic of those that agree to contradict it."""

SMALLEST_WEIGHT = 1e-8
"""No link is dropped while the decision is open: frames stay connected."""


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """How far each link is from the mosaic of those that agree."""

    residuals_px: dict[Pair, float]
    tolerance_px: float

    @property
    def weights(self) -> dict[Pair, float]:
        """Between 0 and 1: a quarter for a link that is off by the tolerance."""
        return {pair: float(_weights(value, self.tolerance_px)) for pair, value in self.residuals_px.items()}

    @property
    def contradicting(self) -> list[Pair]:
        """The links that cannot be right if the others are, the worst first."""
        beyond = [pair for pair, value in self.residuals_px.items() if value > CONTRADICTING * self.tolerance_px]
        return sorted(beyond, key=lambda pair: (-self.residuals_px[pair], pair))

    @property
    def agreeing(self) -> float:
        """How many links agree, in sum of weights."""
        return sum(self.weights.values())


def find_consensus(adjustment: Adjustment, landmarks: Mapping[Pair, Landmarks]) -> Consensus:
    """Judge the links of an adjustment that have landmarks; others, such as guesses, only keep frames connected."""
    judged = {pair: landmarks[pair] for pair in adjustment.links if pair in landmarks}
    smallest = SMALLEST_TOLERANCE * 2.0 * adjustment.outline.outer_half_side
    start = square(refine(adjustment).mosaic_from_frame)
    loose = [pair for pair in adjustment.links if pair not in judged]

    def with_perspective(begin: Homographies) -> Consensus:
        fitted = anneal_perspective(begin, adjustment.outline, list(judged.values()), loose, adjustment.reference)
        return _consensus(fitted, judged, smallest)

    first = with_perspective(start)
    if not first.contradicting:
        return first
    affine = _anneal_affine(adjustment, judged, start, smallest)
    found = [_consensus(affine, judged, smallest), first, with_perspective(affine)]
    # Where equally many agree, fewer tolerated pixels count for more.
    return max(found, key=lambda consensus: (round(consensus.agreeing, 1), -consensus.tolerance_px))


def _consensus(maps: Homographies, judged: Mapping[Pair, Landmarks], smallest: float) -> Consensus:
    residuals = {pair: residual_px(maps, record) for pair, record in judged.items()}
    values = np.array(list(residuals.values()))
    return Consensus(residuals, max(TOLERATED * float(np.median(values)), smallest) if len(values) else smallest)


def _anneal_affine(
    adjustment: Adjustment, judged: Mapping[Pair, Landmarks], maps: Homographies, smallest: float
) -> Homographies:
    tolerance = np.inf
    for _ in range(MOST_STEPS):
        residuals = {pair: residual_px(maps, record) for pair, record in judged.items()}
        values = np.array(list(residuals.values()))
        if tolerance == np.inf:
            tolerance = max(float(values.max(initial=0.0)), smallest)
        weights = _weights(values, tolerance)
        wanted = max(STRICTLY_TOLERATED * _median(values, weights), smallest)
        if wanted > SETTLED * tolerance:
            break
        tolerance = max(wanted, tolerance / SHRINKING)
        weighed = dict(zip(residuals, np.maximum(_weights(values, tolerance), SMALLEST_WEIGHT).tolist(), strict=True))
        everything = {pair: weighed.get(pair, 1.0) for pair in adjustment.links}
        maps = square(refine(adjustment.weighted(everything)).mosaic_from_frame)
    return maps


def _weights(residuals: NDArray[np.float64] | float, tolerance: float) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = (tolerance**2 / (np.asarray(residuals) ** 2 + tolerance**2)) ** 2
    return weights


def _median(residuals: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the median residual, every link counting by its weight."""
    order = np.argsort(residuals, kind="stable")
    share = np.cumsum(weights[order])
    return float(residuals[order][np.searchsorted(share, share[-1] / 2)])
