"""What an agent answers *yes* to, and what a *no* says about neighbouring pairs.

A refused pair's frames are not where they would overlap. What lies to them as the chain says is therefore not there
either: the places of two pairs are normal variables of which the chain tells how far they may differ, and given that
the one is not in its box, the other is less likely to be in its own. Pairs that have nothing to do with each other tell
nothing of each other.
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

YES_IMAGINED = np.array([50.0, 0.5, 0.1, 0.0, 0.0])
NO_IMAGINED = np.array([1.0, 3.0, 3.0, 1.0, 1.0])
"""Answers of each kind of pair that are imagined to have been given before any was."""

ROUNDS = 3
"""In which refusals are put down to the kinds of pairs that they are likely to have been."""


def acceptance(system: System, refused: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how often each kind of pair (k,) gets a yes: by the links, and by what refused pairs may be (r, k)."""
    outline = system.outline
    offset = np.abs(system.offsets) * outline.unit
    furthest = (offset / (outline.width, outline.height)).max(axis=1)
    yes = YES_IMAGINED + np.bincount(np.searchsorted(REACHES / 2.0, furthest), minlength=len(YES_IMAGINED))
    rates: NDArray[np.float64] = yes / (yes + NO_IMAGINED)
    for _ in range(ROUNDS):
        blamed = refused * (1.0 - rates)
        no = (blamed / np.maximum(blamed.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)).sum(axis=0)
        rates = yes / (yes + NO_IMAGINED + no)
    return rates


TRUSTED = 0.98
"""Of refusals: agents miss a pair now and then."""

NODES = 12
"""Places at which the boxes of two pairs are compared, along each axis."""

FURTHEST = 4.0
"""Standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class NoAnswers:
    """The pairs that were refused, and where the mosaic has the centre of i in j."""

    covariance: Covariance
    pairs: PairNumbers  # (r, 2)
    centres: PairCentres

    def discount(self, surveyed: SurveyedPairs, reach: float, accepted: float) -> NDArray[np.float64]:
        """Return how much less likely every pair (n,) is to be within reach, as a factor.

        The reach is in frame sizes; of the pairs that are within it, so many would have been accepted.
        """
        left = np.ones(len(surveyed.pairs))
        if not len(self.pairs):
            return left
        size = reach * np.array([surveyed.centres.outline.width, surveyed.centres.outline.height])
        place, refused_at = surveyed.centres.mean[:, 0], self.centres.mean[:, 0]
        # Boxes that are thought to lie beside each other do not share much.
        refusal, pair = np.nonzero(_are_near(place, refused_at, size))
        factors = _left(
            place[pair] - surveyed.centres.outline.centre,
            surveyed.centres.cov[pair, 0, ::2],
            refused_at[refusal] - surveyed.centres.outline.centre,
            self.centres.cov[refusal, 0, ::2],
            self._difference(surveyed.pairs[pair], self.pairs[refusal]),
            size,
            TRUSTED * accepted,
        )
        np.multiply.at(left, pair, factors)
        return left

    def _difference(self, pairs: PairNumbers, refused: PairNumbers) -> NDArray[np.float64]:
        """Return the variance (n, 2), px², by which two pairs' places differ: that of i to i and of j to j."""
        variance = np.zeros(pairs.shape)
        for side in range(2):
            ends = np.column_stack([pairs[:, side], refused[:, side]])
            apart = ends[:, 0] != ends[:, 1]
            variance[apart] += self.covariance.of_pairs(ends[apart]).cov[:, 0, ::2]
        return variance


@compiled
def _are_near(
    place: NDArray[np.float64], refused_at: NDArray[np.float64], size: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Tell of refusals at (r, 2) and pairs at (n, 2) whether they are less than the size apart (r, n)."""
    near = np.empty((len(refused_at), len(place)), dtype=np.bool_)
    for r in range(len(refused_at)):
        for n in range(len(place)):
            along, across = abs(place[n, 0] - refused_at[r, 0]), abs(place[n, 1] - refused_at[r, 1])
            near[r, n] = along < size[0] and across < size[1]
    return near


@compiled
def _left(
    place: NDArray[np.float64],
    variance: NDArray[np.float64],
    refused_at: NDArray[np.float64],
    refused_variance: NDArray[np.float64],
    difference: NDArray[np.float64],
    size: NDArray[np.float64],
    trusted: float,
) -> NDArray[np.float64]:
    """Return what is left of P^pos (n,) of a normal place, given that another is not in its box; along x times y."""
    result = np.empty(len(place))
    for n in range(len(place)):
        both, refused = 1.0, 1.0
        for axis in range(2):
            half, own, other = size[axis] / 2.0, variance[n, axis], refused_variance[n, axis]
            common = min(max((own + other - difference[n, axis]) / 2.0, 0.0), math.sqrt(own * other))
            both *= _given_own(place[n, axis], own, refused_at[n, axis], other, common, half)
            refused *= _inside(refused_at[n, axis], math.sqrt(other), half)
        result[n] = min((1.0 - trusted * both) / (1.0 - trusted * refused), 1.0)
    return result


@compiled
def _given_own(place: float, own: float, refused_at: float, other: float, common: float, half: float) -> float:
    """Return how probably the other is in its box, given that the own place is in its own."""
    deviation, slope = math.sqrt(own), common / own
    unsure = math.sqrt(max(other - slope * common, 1e-6 * other))
    # Only where the place may be; the middle of each of equal parts will do.
    first, last = max(-half, place - FURTHEST * deviation), min(half, place + FURTHEST * deviation)
    if first >= last:
        nearest = min(max(place, -half), half)
        return _inside(refused_at + slope * (nearest - place), unsure, half)
    total, inside = 0.0, 0.0
    for node in range(NODES):
        x = first + (node + 0.5) / NODES * (last - first) - place
        weight = math.exp(-0.5 * x * x / own)
        inside += weight * _inside(refused_at + slope * x, unsure, half)
        total += weight
    return inside / total


@compiled
def _inside(mean: float, deviation: float, half: float) -> float:
    scale = 1.0 / (deviation * math.sqrt(2.0))
    return 0.5 * (math.erf((half - mean) * scale) + math.erf((half + mean) * scale))
