"""Find the exact top K of all pairs and evaluate only a few of them.

The reward of a pair is P^ext times a second factor, which grows with the uncertainty of the pair's relative position
and falls with its distance. The search rules pairs out in three steps:

1. Bounds for two stretches of frames bound the second factor of all pairs between them at once. The external model
lists only the pairs whose P^ext is large enough there.
2. Each listed pair's own distance tightens its bound.
3. The uncertainty of the remaining pairs is computed in decreasing order of their bounds, until the next bound is below
the K-th best reward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange, threads_for
from smalti.engine.relative_position import PairCentres, centre_seen
from smalti.geometry.outline import Outline
from smalti.overlap.external_model import PairwiseModel
from smalti.records import Homographies, PairNumbers, pair_key
from smalti.suggestion.state_view import View

ROUNDING = 1.0 + 1e-9
"""Bounds and rewards are computed in different ways. This factor covers the difference in rounding."""

FIRST_EVALUATED, MOST_EVALUATED = 256, 2**15
"""Pairs evaluated before the others are compared with the threshold again; the number doubles each time."""

DESCENT = 4.0
"""While too few pairs are found, the goal falls by this factor."""

SMALLEST = 1e-9
"""Share of the largest possible reward. If fewer pairs than wanted reach it, all the rest is evaluated."""


class Reward(Protocol):
    """The reward of a pair without the factor P^ext.

    It is at most min(σ_x, w/√2π) · min(σ_y, h/√2π) · exp(-½ max(g_x/σ_x, g_y/σ_y)²). σ is the standard deviation of one
    frame's centre in the other frame, which has w × h px. g is how far its mean lies beyond `reach` frame sizes from
    the centre.
    """

    @property
    def reach(self) -> float:
        """The distance, in frame sizes, beyond which the reward falls."""
        ...

    def of(self, centres: PairCentres, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the reward of pairs (n,), mean of both directions; it may be 0 where it is below `least` (n,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best pairs, best first, and their rewards."""

    pairs: PairNumbers  # (n, 2)
    rewards: NDArray[np.float64]
    evaluated: int  # how many pairs were evaluated in all

    @classmethod
    def nothing(cls) -> Found:
        """Return an empty result."""
        return cls(np.empty((0, 2), dtype=np.int64), np.empty(0), 0)


def search(view: View, external: PairwiseModel, reward: Reward, top: int, *, smallest_share: float = 0.0) -> Found:
    """Return the `top` candidates of largest reward, exactly, best first; equal rewards are ordered by pair.

    Pairs below `smallest_share` of the best reward may be left out.
    """
    if top < 1:
        return Found.nothing()
    state = _Search(view, external, reward, top)
    goal = float(state.bound.max(initial=0.0))
    smallest = SMALLEST * goal
    while True:
        state.evaluate_above(goal)
        # All pairs that were not evaluated have a reward below the goal.
        if state.threshold >= goal or goal == 0.0 or goal <= smallest_share * state.best:
            return state.found
        # Once there are enough pairs, few more have to be evaluated: descend in larger steps.
        goal = max(state.threshold, goal / (DESCENT**2 if state.threshold > 0.0 else DESCENT))
        if goal < smallest:
            goal = state.threshold


@dataclass
class _Search:
    """The state of a search: the best pairs so far."""

    view: View
    external: PairwiseModel
    reward: Reward
    top: int

    def __post_init__(self) -> None:
        stretches = self.view.covariance.stretches
        outline = self.view.outline
        self.stretches = stretches
        self.found = Found.nothing()
        self.evaluated = np.empty(0, dtype=np.int64)
        self.goal_before = math.inf
        self.stretch_of = stretches.of_frames(np.arange(self.view.frames))
        directed = _bound(stretches.deviation, stretches.distance, outline, self.reward.reach)
        self.bound = (directed + directed.T) / 2 * ROUNDING

    @property
    def threshold(self) -> float:
        """The reward that a pair must reach to be among the best."""
        rewards = self.found.rewards
        return float(rewards[self.top - 1]) if len(rewards) >= self.top else 0.0

    @property
    def best(self) -> float:
        """The best reward so far, 0 if there is none."""
        return float(self.found.rewards[0]) if len(self.found.rewards) else 0.0

    def evaluate_above(self, goal: float) -> None:
        """Evaluate the pairs whose bound reaches the goal, except those that were evaluated before."""
        least = np.full_like(self.bound, np.inf)
        np.divide(goal / ROUNDING, self.bound, out=least, where=(self.bound >= goal) & (self.bound > 0.0))
        for pairs, probability in self.external.pairs_above(least, self.stretches.starts):
            limit = probability * self._bound_of_pairs(pairs)
            # Bounds above the previous goal were handled then. Those within rounding of it are looked up.
            chosen = np.flatnonzero((limit >= max(goal, self.threshold)) & (limit <= ROUNDING * self.goal_before))
            uncertain = chosen[limit[chosen] >= self.goal_before]
            if len(uncertain):
                known = uncertain[np.isin(pair_key(*pairs[uncertain].T), self.evaluated)]
                chosen = np.setdiff1d(chosen, known, assume_unique=True)
            chosen = chosen[self.view.may_be_asked(pairs[chosen])]
            self._evaluate_in_order(pairs[chosen], probability[chosen], limit[chosen])
        self.goal_before = goal

    def _evaluate_in_order(
        self, pairs: PairNumbers, probability: NDArray[np.float64], limit: NDArray[np.float64]
    ) -> None:
        """Evaluate pairs in decreasing order of their bounds, until the next cannot be among the best."""
        order = np.argsort(-limit, kind="stable")
        size = FIRST_EVALUATED
        while len(order):
            some, order = order[:size], order[size:]
            self._evaluate(pairs[some], probability[some])
            # A pair whose bound equals the threshold may tie with it and precede it by its numbers.
            order = order[: np.searchsorted(-limit[order], -self.threshold, side="right")]
            size = min(2 * size, MOST_EVALUATED)

    def _evaluate(self, pairs: PairNumbers, probability: NDArray[np.float64]) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.nan_to_num(self.threshold / probability, nan=0.0) / ROUNDING
        rewards = self.reward.of(self.view.covariance.of_pairs(pairs), least)
        # Compute P^ext itself only for the pairs that its bound does not rule out.
        left = np.flatnonzero(ROUNDING * probability * rewards >= self.threshold)
        with_external = self.external.of_pairs(pairs[left]) * rewards[left]
        self.found = merge(self.found, pairs[left], with_external, self.top, evaluated=len(pairs))
        self.evaluated = np.concatenate([self.evaluated, pair_key(*pairs.T)])

    def _bound_of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        covariance, outline = self.view.covariance, self.view.outline
        maps, inverses = covariance.maps_in_units
        with threads_for(0.1 * len(pairs)):
            bound = _bound_pairs(
                pairs,
                self.stretch_of,
                self.stretches.deviation,
                maps,
                inverses,
                outline.unit,
                outline.width,
                outline.height,
                self.reward.reach,
            )
        return ROUNDING * bound


def merge(found: Found, pairs: PairNumbers, rewards: NDArray[np.float64], top: int, evaluated: int) -> Found:
    """Return the best `top` of the pairs found before and these; equal rewards are ordered by pair."""
    all_pairs, all_rewards = np.concatenate([found.pairs, pairs]), np.concatenate([found.rewards, rewards])
    order = np.lexsort((all_pairs[:, 1], all_pairs[:, 0], -all_rewards))[:top]
    return Found(all_pairs[order], all_rewards[order], found.evaluated + evaluated)


def _bound(
    deviation: NDArray[np.float64], distance: NDArray[np.float64], outline: Outline, reach: float
) -> NDArray[np.float64]:
    """Return the bound for deviations up to and distances from these values on (..., 2), px."""
    size = np.array([outline.width, outline.height])
    largest = np.minimum(deviation, size / math.sqrt(2.0 * math.pi)).prod(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.nan_to_num(np.maximum(distance - reach * size, 0.0) / deviation, nan=0.0).max(axis=-1)
    bound: NDArray[np.float64] = largest * np.exp(-0.5 * beyond**2)
    return bound


@compiled_parallel
def _bound_pairs(
    pairs: PairNumbers,
    stretch_of: NDArray[np.int64],
    deviation: NDArray[np.float64],
    maps: Homographies,
    inverses: Homographies,
    unit: float,
    width: float,
    height: float,
    reach: float,
) -> NDArray[np.float64]:
    """Return the bounds of pairs (n, 2), from their own distances and the deviations of their stretches."""
    result = np.empty(len(pairs))
    for n in prange(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        forth = deviation[stretch_of[i], stretch_of[j]]
        back = deviation[stretch_of[j], stretch_of[i]]
        x, y = centre_seen(maps, inverses, i, j)
        total = _bound_one(x * unit, y * unit, forth[0], forth[1], width, height, reach)
        x, y = centre_seen(maps, inverses, j, i)
        result[n] = 0.5 * (total + _bound_one(x * unit, y * unit, back[0], back[1], width, height, reach))
    return result


@compiled
def _bound_one(x: float, y: float, along: float, across: float, width: float, height: float, reach: float) -> float:
    widest = 1.0 / math.sqrt(2.0 * math.pi)
    largest = min(along, widest * width) * min(across, widest * height)
    if largest <= 0.0:
        return 0.0
    beyond_x = max(abs(x) - reach * width, 0.0) / along
    beyond_y = max(abs(y) - reach * height, 0.0) / across
    beyond = max(beyond_x, beyond_y)
    return largest * math.exp(-0.5 * beyond * beyond)
