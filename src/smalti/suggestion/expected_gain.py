"""What answers would teach: by how much each is expected to lower the error of the whole mosaic.

The error is the mean over the pairs that matter, those that are likely to overlap, of the squared distance by which the
mosaic misplaces the middle of what both frames show. With H the covariance of all maps' increments, C_ab the 2 × 16
matrix that turns those of a and b into that distance (`Relations`) and w_ab the probability of overlap, it is tr(M H)
with M = Σ w_ab C_abᵀ C_ab / Σ w_ab. A yes about a pair whose link has the matrix A leaves H - H Aᵀ K⁻¹ A H with
K = I + A H Aᵀ, and so lowers it by

    tr(K⁻¹ A H M H Aᵀ) = E |K^(-1/2) A H y|²,    E y yᵀ = M

The right side is a mean over random loads y = Σ √w_ab C_abᵀ ε_ab with signs ε: H y is solved for once, and a candidate
then costs two small products, whatever the number of pairs that matter.

A yes between two mosaics that nothing joins teaches something else: where all frames of the smaller one lie. Until then
these count as lost (`LOST`), in the share that they are of all frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled_sums
from smalti.engine.covariance import Covariance
from smalti.engine.estimate import Estimate
from smalti.engine.link_prediction import PredictedLinks
from smalti.engine.relative_position import PairCentres
from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import mean_between
from smalti.suggestion.pair_survey import SurveyedPairs

LOADS = 64
"""Random loads: the drop is known to some 10 %, with much the same error for pairs that are alike."""

PAIRS_OF_LOADS = 2000
"""Pairs that matter, drawn in proportion to what they add to the error."""

ENOUGH_PAIRS = 500
"""Of these, to tell how much the squared error may vary."""

LOST = 0.3
"""Of a frame's side: where half of the squared error counts, and of larger ones less."""

POINTS = 4
"""That stand for all landmarks of a link that is thought of: they have the moments of what two frames share."""

ROUNDING = 1e-12
"""Of a covariance's trace: its digits end there."""

LEAST_SHARE = 0.05
"""Of a frame's side: two frames that overlap share so much at least."""

ENOUGH_LOOPS = 5
"""Links between frames that are not consecutive from which on they tell what the next will be like."""


@dataclass(frozen=True, eq=False)
class ExpectedGain:
    """Candidates, and what a yes about each would teach; a value that changes as answers are supposed."""

    covariance: Covariance
    links: PredictedLinks  # of the candidates (n)
    likely: NDArray[np.float64]  # (n,) how probably each is answered yes
    predicted: NDArray[np.float64]  # (n, 8, 8): A H Aᵀ
    moved: NDArray[np.float64]  # (n, 8, LOADS): A H y
    joining: NDArray[np.float64]  # (n,): px², what joining two mosaics is worth; 0 for pairs on one
    squared_error: float  # px², of the pairs that matter
    variation: float  # its variance over the square of its mean, before anything is supposed
    supposed: tuple[NDArray[np.float64], ...] = ()  # (n, 8, 8) each: what supposed answers take from A H Aᵀ, as a root

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        covariance: Covariance,
        candidates: SurveyedPairs,
        likely: NDArray[np.float64],
        mattering: SurveyedPairs,
        weight: NDArray[np.float64],
    ) -> ExpectedGain:
        """Take candidates and how likely each is (n,), and the pairs that matter and how much each does (m,)."""
        outline = estimate.outline
        chosen, factor = draw(weight * mattering.centres.spread, weight, PAIRS_OF_LOADS)
        middles = shared_points(mattering.centres.chosen(chosen), outline)[0].mean(axis=1, keepdims=True)
        errors = covariance.predicted_links(mattering.pairs[chosen], middles)
        loads = errors.loads(estimate.frames, factor[:, None, None] * _signs()[: len(chosen)])
        moves = covariance.carry(loads)
        moves /= math.sqrt(LOADS)
        # E yᵀ H y = tr M H; and of a sum of squared normal variables the variance is 2 tr (M H)².
        expected = float(np.einsum("nem,nem->", loads, moves)) / math.sqrt(LOADS)
        some = np.arange(0, len(chosen), max(len(chosen) // ENOUGH_PAIRS, 1))
        doubled = (
            2.0 * float(np.sum((factor[some, None, None] * errors[some].moved(moves)) ** 2)) * len(chosen) / len(some)
            if len(some)
            else 0.0
        )
        points, share = shared_points(candidates.centres, outline)
        precision = np.sqrt(landmarks_of_a_frame(estimate) * share / POINTS)
        links = covariance.predicted_links(candidates.pairs, points, np.repeat(precision[:, None], POINTS, axis=1))
        joining = _worth_of_joining(estimate, candidates)
        moved = links.moved(moves)
        moved[joining > 0.0] = 0.0
        return cls(
            covariance,
            links,
            likely,
            covariance.of_predicted_links(links),
            moved,
            joining,
            expected,
            doubled / max(expected**2, np.finfo(np.float64).tiny),
        )

    @property
    def gains(self) -> NDArray[np.float64]:
        """By how much a yes about each candidate would lower the squared error (n,), px²."""
        return _taught(_measured(self.predicted), self.moved) + self.joining

    def suppose(self, n: int) -> ExpectedGain:
        """Return the lessons that are left if candidate n is asked: as much of its link as it is likely to be had."""
        part = float(self.likely[n])
        asked = np.where(np.arange(len(self.likely)) == n, 0.0, self.likely)
        if self.joining[n] > 0.0:
            # Whether these two mosaics can be joined will be known then.
            ends = self.covariance.part[self.links.pairs]
            same = (np.sort(ends, axis=1) == np.sort(ends[n])).all(axis=1)
            return replace(self, likely=asked, joining=np.where(same, (1.0 - part) * self.joining, self.joining))
        rows = 2 * POINTS
        root = np.linalg.cholesky(_measured(part * self.predicted[n]))
        loads = self.links[n : n + 1].loads(self.covariance.frames, np.eye(rows)[None])
        crossed = self.links.moved(self.covariance.carry(loads))  # A H Aᵀ with that of candidate n
        crossed[self.joining > 0.0] = 0.0
        for earlier in self.supposed:
            crossed -= earlier @ earlier[n].T
        common = math.sqrt(part) * crossed @ np.linalg.inv(root).T
        told = np.linalg.solve(root, math.sqrt(part) * self.moved[n])
        # No answer tells more than there is to know: only rounding says otherwise, and would grow from one to the next.
        own = np.diagonal(self.predicted, axis1=1, axis2=2)
        common *= _at_most_all(own, np.sum(common**2, axis=2))[..., None]
        told *= _at_most_all(np.array(self.squared_error), np.sum(told**2))
        return replace(
            self,
            likely=asked,
            predicted=_clipped(self.predicted - common @ np.swapaxes(common, 1, 2)),
            moved=self.moved - common @ told,
            squared_error=max(self.squared_error - float(np.sum(told**2)), 0.0),
            supposed=(*self.supposed, common),
        )


def shared_points(centres: PairCentres, outline: Outline) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return four points of j (n, 4, 2), in units, for what both frames show if they overlap, and its share (n,).

    The points have the middle and the moments of all that both show.
    """
    size = np.array([outline.width, outline.height])
    place = centres.mean[:, 0] - outline.centre
    bound = np.clip(np.abs(place), size / 2.0, (1.0 - LEAST_SHARE) * size)
    offset = mean_between(place, np.sqrt(centres.cov[:, 0, ::2]), bound)
    shown = np.maximum(size - np.abs(offset), LEAST_SHARE * size)
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    points = (offset[:, None] / 2.0 + corners * shown[:, None] / math.sqrt(12.0)) / outline.unit
    return points, (shown / size).prod(axis=1)


def landmarks_of_a_frame(estimate: Estimate) -> float:
    """Return how many landmarks, over their variance in px², a link of two frames that coincide is expected to have.

    As many as others for what their frames share; loops are like loops, while there are some.
    """
    system, outline = estimate.system, estimate.outline
    loops = np.diff(system.ends, axis=1)[:, 0] > 1
    chosen = loops if loops.sum() >= ENOUGH_LOOPS else np.ones(len(loops), dtype=np.bool_)
    if not chosen.any():
        return 1.0
    weights = estimate.solution.weights.links / outline.unit
    count = np.array([np.sum((weights[n] / system.links[n].sigma) ** 2) for n in np.flatnonzero(chosen)])
    offset = system.offsets[chosen] * outline.unit
    shown = np.maximum(1.0 - np.abs(offset) / (outline.width, outline.height), LEAST_SHARE)
    return float(np.median(count / shown.prod(axis=1)))


def _worth_of_joining(estimate: Estimate, candidates: SurveyedPairs) -> NDArray[np.float64]:
    """Return what a yes is worth (n,), px², that joins two mosaics: frames of the smaller one are lost now."""
    part = estimate.part[candidates.pairs]
    smaller = np.bincount(estimate.part)[part].min(axis=1)
    lost = LOST**2 * estimate.outline.area
    worth: NDArray[np.float64] = np.where(part[:, 0] != part[:, 1], lost * smaller / estimate.frames, 0.0)
    return worth


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


@compiled_sums
def _taught(measured: NDArray[np.float64], moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return |K^(-1/2) A H y|² (n,), of K (n, k, k) and A H y (n, k, m): by the Cholesky factor, row by row."""
    count, rows, loads = moved.shape
    taught, root, left = np.zeros(count), np.zeros((rows, rows)), np.empty((rows, loads))
    for n in range(count):
        squares = 0.0
        for a in range(rows):
            own = left[a]
            own[:] = moved[n, a]
            for b in range(a + 1):
                total = measured[n, a, b]
                for c in range(b):
                    total -= root[a, c] * root[b, c]
                if b == a:
                    # K is I and what is positive: of such a matrix no pivot is smaller, whatever rounding says.
                    root[a, a] = 1.0 / math.sqrt(max(total, 1.0))
                    break
                root[a, b] = total * root[b, b]
                scale, other = root[a, b], left[b]
                for x in range(loads):
                    own[x] -= scale * other[x]
            scale = root[a, a]
            for x in range(loads):
                own[x] *= scale
                squares += own[x] * own[x]
        taught[n] = squares
    return taught


def _at_most_all(known: NDArray[np.float64], told: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return factors by which what would be told has to be made smaller, not to be more than all there is."""
    share = np.ones_like(told)
    np.divide(np.maximum(known, 0.0), told, out=share, where=told > known)
    return np.sqrt(share)


def _measured(predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return I + A H Aᵀ (..., k, k), with room for the rounding of what is foretold endlessly badly."""
    rounding = ROUNDING * np.trace(predicted, axis1=-2, axis2=-1)[..., None, None]
    measured: NDArray[np.float64] = predicted + (1.0 + rounding) * np.eye(predicted.shape[-1])
    return measured


def _clipped(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return covariances (n, k, k) without what rounding has made negative: little may be left of a large one."""
    values, vectors = np.linalg.eigh(covariances)
    clipped: NDArray[np.float64] = (vectors * np.maximum(values, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2)
    return clipped
