"""Compute the expected gain of an answer: by how much a yes would lower the error of the whole mosaic.

The error is measured at the middle of what two frames share. It is the mean, over the pairs that are likely to overlap,
of the squared distance by which the mosaic misplaces that point. Let H be the covariance of all maps' increments, C_ab
the 2 × 16 matrix that turns the increments of a and b into that distance (`PredictedLinks`), and w_ab the probability
of overlap. The error is tr(M H) with M = Σ w_ab C_abᵀ C_ab / Σ w_ab. A yes about a pair whose link has the matrix A
leaves H - H Aᵀ K⁻¹ A H with the innovation covariance K = I + A H Aᵀ. So it lowers the error by

    tr(K⁻¹ A H M H Aᵀ) = E |K^(-1/2) A H y|²,    E y yᵀ = M

The right side is a mean over random loads y = Σ √w_ab C_abᵀ ε_ab with signs ε. H y is solved once. Then a candidate
costs two small products, whatever the number of pairs in M.

A yes between two mosaics has another gain: it places all frames of the smaller one. Until then these frames count as
lost (`LOST`), weighted by their share of all frames.
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
"""Random loads. They give the drop to some 10 %, with nearly the same error for similar pairs."""

PAIRS_OF_LOADS = 2000
"""Pairs in M, drawn in proportion to their contribution to the error."""

ENOUGH_PAIRS = 500
"""Pairs of these from which the variance of the squared error is computed."""

LOST = 0.3
"""Share of a frame's side: half of a squared error of this size counts, and less of larger ones."""

POINTS = 4
"""Points that stand for all landmarks of a predicted link. They have the moments of what two frames share."""

ROUNDING = 1e-12
"""Relative rounding error of a covariance, as a share of its trace."""

LEAST_SHARE = 0.05
"""Share of a frame's side that two overlapping frames have in common at least."""

ENOUGH_LOOPS = 5
"""If there are at least this many links between non-consecutive frames, only they predict the next one's precision."""


@dataclass(frozen=True, eq=False)
class ExpectedGain:
    """The candidates and the gain of a yes about each. An immutable value: `suppose` returns a new one."""

    covariance: Covariance
    links: PredictedLinks  # of the candidates (n)
    yes_probability: NDArray[np.float64]  # (n,): probability of a yes
    predicted: NDArray[np.float64]  # (n, 8, 8): A H Aᵀ
    moved: NDArray[np.float64]  # (n, 8, LOADS): A H y
    joining: NDArray[np.float64]  # (n,): px², the gain of joining two mosaics; 0 for pairs on one mosaic
    squared_error: float  # px², mean over the error pairs
    variation: float  # variance of the squared error over its squared mean, before any answer is supposed
    supposed: tuple[NDArray[np.float64], ...] = ()  # (n, 8, 8) each: root of what a supposed answer takes from A H Aᵀ

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        covariance: Covariance,
        candidates: SurveyedPairs,
        yes_probability: NDArray[np.float64],
        error_pairs: SurveyedPairs,
        weight: NDArray[np.float64],
    ) -> ExpectedGain:
        """Compute the gain of candidates with probabilities (n,), for the error over `error_pairs` of weight (m,)."""
        outline = estimate.outline
        chosen, factor = draw(weight * error_pairs.centres.spread, weight, PAIRS_OF_LOADS)
        middles = shared_points(error_pairs.centres.chosen(chosen), outline)[0].mean(axis=1, keepdims=True)
        errors = covariance.predicted_links(error_pairs.pairs[chosen], middles)
        loads = errors.loads(estimate.frames, factor[:, None, None] * _signs()[: len(chosen)])
        moves = covariance.carry(loads)
        moves /= math.sqrt(LOADS)
        # E yᵀ H y = tr M H. The variance of a sum of squared normal variables is 2 tr (M H)².
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
        joining = _joining_gain(estimate, candidates)
        moved = links.moved(moves)
        moved[joining > 0.0] = 0.0
        return cls(
            covariance,
            links,
            yes_probability,
            covariance.of_predicted_links(links),
            moved,
            joining,
            expected,
            doubled / max(expected**2, np.finfo(np.float64).tiny),
        )

    @property
    def gains(self) -> NDArray[np.float64]:
        """The drop of the squared error (n,), px², after a yes about each candidate."""
        return _squared_drops(_innovation(self.predicted), self.moved) + self.joining

    def of_some(self, chosen: NDArray[np.int64]) -> ExpectedGain:
        """Return the expected gain of some candidates, before any answer is supposed."""
        return replace(
            self,
            links=self.links[chosen],
            yes_probability=self.yes_probability[chosen],
            predicted=self.predicted[chosen],
            moved=self.moved[chosen],
            joining=self.joining[chosen],
        )

    def suppose(self, n: int) -> ExpectedGain:
        """Return the expected gain after n is asked; its link counts in proportion to its P(yes)."""
        part = float(self.yes_probability[n])
        asked = np.where(np.arange(len(self.yes_probability)) == n, 0.0, self.yes_probability)
        if self.joining[n] > 0.0:
            # The answer decides for all candidates between these two mosaics.
            ends = self.covariance.part[self.links.pairs]
            same = (np.sort(ends, axis=1) == np.sort(ends[n])).all(axis=1)
            return replace(
                self, yes_probability=asked, joining=np.where(same, (1.0 - part) * self.joining, self.joining)
            )
        rows = 2 * POINTS
        root = np.linalg.cholesky(_innovation(part * self.predicted[n]))
        loads = self.links[n : n + 1].loads(self.covariance.frames, np.eye(rows)[None])
        crossed = self.links.moved(self.covariance.carry(loads))  # A H A_nᵀ
        crossed[self.joining > 0.0] = 0.0
        for earlier in self.supposed:
            crossed -= earlier @ earlier[n].T
        common = math.sqrt(part) * crossed @ np.linalg.inv(root).T
        explained = np.linalg.solve(root, math.sqrt(part) * self.moved[n])
        # No answer can explain more than the whole variance. Rounding could, and would grow from answer to answer.
        own = np.diagonal(self.predicted, axis1=1, axis2=2)
        common *= _limit_to_total(own, np.sum(common**2, axis=2))[..., None]
        explained *= _limit_to_total(np.array(self.squared_error), np.sum(explained**2))
        return replace(
            self,
            yes_probability=asked,
            predicted=_clipped(self.predicted - common @ np.swapaxes(common, 1, 2)),
            moved=self.moved - common @ explained,
            squared_error=max(self.squared_error - float(np.sum(explained**2)), 0.0),
            supposed=(*self.supposed, common),
        )


def shared_points(centres: PairCentres, outline: Outline) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return four points of j (n, 4, 2), in units, for what both frames show if they overlap, and its area share (n,).

    The points have the mean and the second moments of the shared area.
    """
    size = np.array([outline.width, outline.height])
    position = centres.mean[:, 0] - outline.centre
    bound = np.clip(np.abs(position), size / 2.0, (1.0 - LEAST_SHARE) * size)
    offset = mean_between(position, np.sqrt(centres.cov[:, 0, ::2]), bound)
    shared = np.maximum(size - np.abs(offset), LEAST_SHARE * size)
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    points = (offset[:, None] / 2.0 + corners * shared[:, None] / math.sqrt(12.0)) / outline.unit
    return points, (shared / size).prod(axis=1)


def landmarks_of_a_frame(estimate: Estimate) -> float:
    """Return the landmarks, over their variance in px², that a link of two coinciding frames is expected to have.

    It is the median, over the links, of their landmarks over the share of area that their frames have in common. If
    there are `ENOUGH_LOOPS` links between non-consecutive frames, only these count.
    """
    system, outline = estimate.system, estimate.outline
    loops = np.diff(system.ends, axis=1)[:, 0] > 1
    chosen = loops if loops.sum() >= ENOUGH_LOOPS else np.ones(len(loops), dtype=np.bool_)
    if not chosen.any():
        return 1.0
    weights = estimate.solution.weights.links / outline.unit
    links = [system.links[n] for n in np.flatnonzero(chosen)]
    # A landmark on a curve determines one of two coordinates.
    told = zip(links, weights[chosen], strict=True)
    count = np.array([np.sum(0.5 * link.coordinates * (weight / link.sigma) ** 2) for link, weight in told])
    offset = system.offsets[chosen] * outline.unit
    shared = np.maximum(1.0 - np.abs(offset) / (outline.width, outline.height), LEAST_SHARE)
    return float(np.median(count / shared.prod(axis=1)))


def _joining_gain(estimate: Estimate, candidates: SurveyedPairs) -> NDArray[np.float64]:
    """Return the gain (n,), px², of a yes that joins two mosaics: the frames of the smaller one count as lost now."""
    part = estimate.part[candidates.pairs]
    smaller = np.bincount(estimate.part)[part].min(axis=1)
    lost = LOST**2 * estimate.outline.area
    gain: NDArray[np.float64] = np.where(part[:, 0] != part[:, 1], lost * smaller / estimate.frames, 0.0)
    return gain


def draw(
    contribution: NDArray[np.float64], weight: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw pairs in proportion to their contribution to the error; return their numbers and the roots of their weights
    (m,).

    If at most `count` pairs contribute, all of them are returned. The weights of all pairs sum to one.
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
    """Return random signs, the same for every state."""
    return np.random.default_rng(0).choice(np.array([-1.0, 1.0]), size=(PAIRS_OF_LOADS, 2, LOADS))


@compiled_sums
def _squared_drops(innovation: NDArray[np.float64], moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return |K^(-1/2) A H y|² (n,) of K (n, k, k) and A H y (n, k, m), with the Cholesky factor, row by row."""
    count, rows, loads = moved.shape
    drops, root, left = np.zeros(count), np.zeros((rows, rows)), np.empty((rows, loads))
    for n in range(count):
        squares = 0.0
        for a in range(rows):
            own = left[a]
            for x in range(loads):
                own[x] = moved[n, a, x]
            for b in range(a + 1):
                total = innovation[n, a, b]
                for c in range(b):
                    total -= root[a, c] * root[b, c]
                if b == a:
                    # K is I plus a positive semidefinite matrix, so no pivot is below 1. Only rounding could make one
                    # smaller.
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
        drops[n] = squares
    return drops


def _limit_to_total(total: NDArray[np.float64], explained: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return factors that keep the explained variances below the total ones."""
    share = np.ones_like(explained)
    np.divide(np.maximum(total, 0.0), explained, out=share, where=explained > total)
    return np.sqrt(share)


def _innovation(predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return K = I + A H Aᵀ (..., k, k). A share of the trace is added so that rounding keeps it positive definite."""
    rounding = ROUNDING * np.trace(predicted, axis1=-2, axis2=-1)[..., None, None]
    innovation: NDArray[np.float64] = predicted + (1.0 + rounding) * np.eye(predicted.shape[-1])
    return innovation


def _clipped(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return covariances (n, k, k) with negative eigenvalues, which come from rounding, set to 0."""
    values, vectors = np.linalg.eigh(covariances)
    clipped: NDArray[np.float64] = (vectors * np.maximum(values, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2)
    return clipped
