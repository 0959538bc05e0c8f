"""Model the answers: how often an agent says *yes* to each kind of pair, and what other answers say about pairs.

The frames of a refused pair are not where they would overlap. A neighbouring pair has nearly the same relative
position, so it is less likely to overlap too. The relative positions of the two pairs are correlated normal variables.
The chain tells by how much they can differ. Given that one position is not in its box, the other one is less likely to
be in its own. The answers to unrelated pairs do not affect each other.

A matcher that fails may have missed an overlap. So its failure says less than a no: `share_found` is the share of
overlaps that it finds, learned from what became of its attempts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.engine.covariance import Covariance
from smalti.engine.equations import System
from smalti.engine.relative_position import PairCentres
from smalti.records import PairNumbers
from smalti.suggestion.pair_survey import REACHES, SurveyedPairs

PRIOR_YES = np.array([50.0, 0.5, 0.1, 0.0, 0.0])
PRIOR_NO = np.array([1.0, 3.0, 3.0, 1.0, 1.0])
"""Prior pseudo-counts of answers, for each kind of pair."""

ROUNDS = 3
"""Rounds in which every "no" is attributed to the kinds that the refused pair may be of."""

TRUSTED = 0.98
"""Probability that a "no" is right: agents miss a pair now and then."""

FOUND, MISSED = 4.0, 2.0
"""Prior pseudo-counts of overlaps that a matcher finds and misses."""

NODES = 12
"""Positions at which the boxes of two pairs are compared, along each axis."""

FURTHEST = 4.0
"""Standard deviations beyond which a position is ignored."""


def acceptance(system: System, refused: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rate of yes (k,) for each kind of pair.

    "Yes" is counted from the links. "No" is counted from the refused pairs; `refused` (r, k) is each one's probability
    of every kind.
    """
    outline = system.outline
    offset = np.abs(system.offsets) * outline.unit
    furthest = (offset / (outline.width, outline.height)).max(axis=1)
    yes = PRIOR_YES + np.bincount(np.searchsorted(REACHES / 2.0, furthest), minlength=len(PRIOR_YES))
    rates: NDArray[np.float64] = yes / (yes + PRIOR_NO)
    for _ in range(ROUNDS):
        kind_share = refused * (1.0 - rates)
        no = (kind_share / np.maximum(kind_share.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)).sum(axis=0)
        rates = yes / (yes + PRIOR_NO + no)
    return rates


def share_found(matched: int, overlap: NDArray[np.float64]) -> float:
    """Return the share of overlaps that a matcher finds.

    It matched so many pairs, and failed at others, each with a probability of overlap (r,) before it failed.
    """
    share = FOUND / (FOUND + MISSED)
    for _ in range(ROUNDS):
        missed = overlap * (1.0 - share) / np.maximum(1.0 - overlap * share, np.finfo(np.float64).tiny)
        share = (FOUND + matched) / (FOUND + MISSED + matched + float(missed.sum()))
    return share


@dataclass(frozen=True, slots=True, eq=False)
class NoAnswers:
    """Pairs that were refused, and the estimated position of the centre of i in j."""

    covariance: Covariance
    pairs: PairNumbers  # (r, 2)
    centres: PairCentres
    found: float = 1.0  # share of the acceptable pairs that the agent finds

    def discount(self, surveyed: SurveyedPairs, reach: float, accepted: float) -> NDArray[np.float64]:
        """Return the factor (n,) by which the "no" answers lower each pair's probability to be within reach.

        `reach` is in frame sizes. `accepted` is the share of pairs within reach that get a yes.
        """
        factor = np.ones(len(surveyed.pairs))
        if not len(self.pairs):
            return factor
        size = reach * np.array([surveyed.centres.outline.width, surveyed.centres.outline.height])
        position, refused_at = surveyed.centres.mean[:, 0], self.centres.mean[:, 0]
        # Boxes whose means lie further apart than one box hardly overlap: skip them.
        refusal, pair = np.nonzero(_are_near(np.ascontiguousarray(position), np.ascontiguousarray(refused_at), size))
        of_one = _discount_factors(
            position[pair] - surveyed.centres.outline.centre,
            surveyed.centres.cov[pair, 0, ::2],
            refused_at[refusal] - surveyed.centres.outline.centre,
            self.centres.cov[refusal, 0, ::2],
            self._difference(surveyed.pairs[pair], self.pairs[refusal]),
            size,
            TRUSTED * self.found * accepted,
        )
        np.multiply.at(factor, pair, of_one)
        return factor

    def _difference(self, pairs: PairNumbers, refused: PairNumbers) -> NDArray[np.float64]:
        """Return the variance (n, 2), px², of two pairs' difference of position: i to i plus j to j."""
        variance = np.zeros(pairs.shape)
        for side in range(2):
            ends = np.column_stack([pairs[:, side], refused[:, side]])
            apart = ends[:, 0] != ends[:, 1]
            variance[apart] += self.covariance.of_pairs(ends[apart]).cov[:, 0, ::2]
        return variance


@compiled
def _are_near(
    position: NDArray[np.float64], refused_at: NDArray[np.float64], size: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return (r, n): whether refused pairs at (r, 2) and pairs at (n, 2) are less than the size apart."""
    near = np.empty((len(refused_at), len(position)), dtype=np.bool_)
    for r in range(len(refused_at)):
        for n in range(len(position)):
            along, across = abs(position[n, 0] - refused_at[r, 0]), abs(position[n, 1] - refused_at[r, 1])
            near[r, n] = along < size[0] and across < size[1]
    return near


@compiled
def _discount_factors(
    position: NDArray[np.float64],
    variance: NDArray[np.float64],
    refused_at: NDArray[np.float64],
    refused_variance: NDArray[np.float64],
    difference: NDArray[np.float64],
    size: NDArray[np.float64],
    trusted: float,
) -> NDArray[np.float64]:
    """Return the factors (n,) on P^pos of normal positions, given that another one is not in its box; x times y."""
    result = np.empty(len(position))
    for n in range(len(position)):
        both, refused = 1.0, 1.0
        for axis in range(2):
            half, own, other = size[axis] / 2.0, variance[n, axis], refused_variance[n, axis]
            common = min(max((own + other - difference[n, axis]) / 2.0, 0.0), math.sqrt(own * other))
            both *= _other_inside_given_own(position[n, axis], own, refused_at[n, axis], other, common, half)
            refused *= _inside(refused_at[n, axis], math.sqrt(other), half)
        result[n] = min((1.0 - trusted * both) / (1.0 - trusted * refused), 1.0)
    return result


@compiled
def _other_inside_given_own(
    position: float, own: float, refused_at: float, other: float, common: float, half: float
) -> float:
    """Return the probability that the other position is in its box, given that this one is in its own."""
    deviation, slope = math.sqrt(own), common / own
    conditional = math.sqrt(max(other - slope * common, 1e-6 * other))
    # Integrate over the part of the box where the position may be, by the midpoint rule.
    first, last = max(-half, position - FURTHEST * deviation), min(half, position + FURTHEST * deviation)
    if first >= last:
        nearest = min(max(position, -half), half)
        return _inside(refused_at + slope * (nearest - position), conditional, half)
    total, inside = 0.0, 0.0
    for node in range(NODES):
        x = first + (node + 0.5) / NODES * (last - first) - position
        weight = math.exp(-0.5 * x * x / own)
        inside += weight * _inside(refused_at + slope * x, conditional, half)
        total += weight
    return inside / total


@compiled
def _inside(mean: float, deviation: float, half: float) -> float:
    scale = 1.0 / (deviation * math.sqrt(2.0))
    return 0.5 * (math.erf((half - mean) * scale) + math.erf((half + mean) * scale))
