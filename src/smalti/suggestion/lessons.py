"""What answers would teach: by how much each is expected to lower the error of the whole mosaic.

The error is the mean over the pairs that matter, those that are likely to overlap, of the squared distance by which the
mosaic misplaces the middle of what both frames show. With H the covariance of all maps' increments, C_ab the 2 × 12
matrix that turns those of a and b into that distance (`Relations`) and w_ab the probability of overlap, it is tr(M H)
with M = Σ w_ab C_abᵀ C_ab / Σ w_ab. A yes about a pair whose link has the matrix A leaves H - H Aᵀ K⁻¹ A H with
K = I + A H Aᵀ, and so lowers it by

    tr(K⁻¹ A H M H Aᵀ) = E |K^(-1/2) A H y|²,    E y yᵀ = M

The right side is a mean over random loads y = Σ √w_ab C_abᵀ ε_ab with signs ε: H y is solved for once, and a candidate
then costs two small products, whatever the number of pairs that matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.centres import PairCentres
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.relations import Relations
from smalti.geometry.outline import Outline
from smalti.overlap.truncated import mean_between
from smalti.suggestion.survey import Seen

LOADS = 64
"""Random loads: the drop is known to some 10 %, with much the same error for pairs that are alike."""

PAIRS_OF_LOADS = 2000
"""Pairs that matter, drawn in proportion to what they add to the error."""

ENOUGH_PAIRS = 500
"""Of these, to tell how much the squared error may vary."""

MIDDLE = 2
"""Of the three points of a root of moments: the middle of what two frames share, where the error is taken."""

LEAST_SHARE = 0.05
"""Of a frame's side: two frames that overlap share so much at least."""

ENOUGH_LOOPS = 5
"""Links between frames that are not consecutive from which on they tell what the next will be like."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """Candidates, and what a yes about each would teach; a value that changes as answers are supposed."""

    covariance: LocalCovariance
    links: Relations  # of the candidates (n)
    likely: NDArray[np.float64]  # (n,) how probably each is answered yes
    foretold: NDArray[np.float64]  # (n, 6, 6): A H Aᵀ
    moved: NDArray[np.float64]  # (n, 6, LOADS): A H y
    squared_error: float  # px², of the pairs that matter
    variation: float  # its variance over the square of its mean, before anything is supposed
    supposed: tuple[NDArray[np.float64], ...] = ()  # (n, 6, 6) each: what supposed answers take from A H Aᵀ, as a root

    @classmethod
    def of(
        cls,
        covariance: LocalCovariance,
        candidates: Seen,
        likely: NDArray[np.float64],
        mattering: Seen,
        weight: NDArray[np.float64],
    ) -> Lessons:
        """Take candidates and how likely each is (n,), and the pairs that matter and how much each does (m,)."""
        outline = covariance.adjustment.outline
        chosen, factor = draw(weight * mattering.centres.spread, weight, PAIRS_OF_LOADS)
        points = shared_points(mattering.centres.chosen(chosen), outline)[0]
        errors = covariance.relations(mattering.pairs[chosen], points).of_point(MIDDLE)
        loads = errors.loads(covariance.adjustment.frames, factor[:, None, None] * _signs()[: len(chosen)])
        moves = covariance.carry(loads) / math.sqrt(LOADS)
        # E yᵀ H y = tr M H; and of a sum of squared normal variables the variance is 2 tr (M H)².
        expected = float(np.sum(loads * moves)) / math.sqrt(LOADS)
        some = np.arange(0, len(chosen), max(len(chosen) // ENOUGH_PAIRS, 1))
        doubled = (
            2.0 * float(np.sum((factor[some, None, None] * errors[some].moved(moves)) ** 2)) * len(chosen) / len(some)
        )
        roots, share = shared_points(candidates.centres, outline)
        precision = np.sqrt(landmarks_of_a_frame(covariance.adjustment) * share)
        links = covariance.relations(candidates.pairs, precision[:, None, None] * roots)
        return cls(
            covariance,
            links,
            likely,
            covariance.of_relations(links),
            links.moved(moves),
            expected,
            doubled / expected**2,
        )

    @property
    def gains(self) -> NDArray[np.float64]:
        """By how much a yes about each candidate would lower the squared error (n,), px²."""
        information = self.moved @ np.swapaxes(self.moved, 1, 2)
        taught = np.linalg.solve(self.foretold + np.eye(6), information)
        gains: NDArray[np.float64] = np.trace(taught, axis1=1, axis2=2)
        return gains

    def suppose(self, n: int) -> Lessons:
        """Return the lessons that are left if candidate n is asked: as much of its link as it is likely to be had."""
        part = float(self.likely[n])
        root = np.linalg.cholesky(np.eye(6) + part * self.foretold[n])
        loads = self.links[n : n + 1].loads(self.covariance.adjustment.frames, np.eye(6)[None])
        crossed = self.links.moved(self.covariance.carry(loads))  # A H Aᵀ with that of candidate n
        for earlier in self.supposed:
            crossed -= earlier @ earlier[n].T
        common = math.sqrt(part) * crossed @ np.linalg.inv(root).T
        told = np.linalg.solve(root, math.sqrt(part) * self.moved[n])
        return replace(
            self,
            likely=np.where(np.arange(len(self.likely)) == n, 0.0, self.likely),
            foretold=_clipped(self.foretold - common @ np.swapaxes(common, 1, 2)),
            moved=self.moved - common @ told,
            squared_error=max(self.squared_error - float(np.sum(told**2)), 0.0),
            supposed=(*self.supposed, common),
        )


def shared_points(centres: PairCentres, outline: Outline) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where in j frame i is seen, if they overlap: a root of its points' moments (n, 3, 3), and its share (n,).

    The moments are those of all points that both show, of mass one, in the adjustment's units.
    """
    size = np.array([outline.width, outline.height])
    place = centres.mean[:, 0] - outline.centre
    bound = np.clip(np.abs(place), size / 2.0, (1.0 - LEAST_SHARE) * size)
    offset = mean_between(place, np.sqrt(centres.cov[:, 0, ::2]), bound)
    shown = np.maximum(size - np.abs(offset), LEAST_SHARE * size)
    roots = np.zeros((len(offset), 3, 3))
    roots[:, [0, 1], [0, 1]] = shown / math.sqrt(12.0) / outline.unit
    roots[:, :2, 2] = offset / 2.0 / outline.unit
    roots[:, 2, 2] = 1.0
    return roots, (shown / size).prod(axis=1)


def landmarks_of_a_frame(adjustment: Adjustment) -> float:
    """Return how many landmarks, over their variance in px², a link of two frames that coincide is expected to have.

    As many as others for what their frames share; loops are like loops, while there are some.
    """
    terms, ends, outline = adjustment.terms, adjustment.ends, adjustment.outline
    loops = np.diff(ends, axis=1)[:, 0] > 1
    chosen = loops if loops.sum() >= ENOUGH_LOOPS else np.ones(len(ends), dtype=np.bool_)
    count = np.sum(terms.side_j[chosen, 2] ** 2, axis=1)
    offset = terms.measured[chosen, :2, 2] * outline.unit
    shown = np.maximum(1.0 - np.abs(offset) / (outline.width, outline.height), LEAST_SHARE)
    return float(np.median(count / shown.prod(axis=1)))


def draw(
    contribution: NDArray[np.float64], weight: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw pairs in proportion to what they add to the error; return which, and the root of their weights (m,).

    All that count, where they are no more. The weights of all pairs are one in all.
    """
    counted = np.flatnonzero(contribution)
    if len(counted) <= count:
        return counted, np.sqrt(weight[counted] / weight.sum())
    reached = np.cumsum(contribution)
    chosen = np.searchsorted(reached, (np.arange(count) + 0.5) / count * reached[-1])
    drawn = count * contribution[chosen] / reached[-1]
    return chosen, np.sqrt(weight[chosen] / weight.sum() / drawn)


@cache
def _signs() -> NDArray[np.float64]:
    """Return random signs, the same for all states."""
    return np.random.default_rng(0).choice(np.array([-1.0, 1.0]), size=(PAIRS_OF_LOADS, 2, LOADS))


def _clipped(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return covariances (n, k, k) without what rounding has made negative: little may be left of a large one."""
    values, vectors = np.linalg.eigh(covariances)
    clipped: NDArray[np.float64] = (vectors * np.maximum(values, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2)
    return clipped
