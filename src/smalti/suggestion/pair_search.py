"""The exact top K of all pairs, of which hardly any is looked at.

The reward of a pair is P^ext times something that grows with the uncertainty of where its frames lie to each other and
falls off with their distance. So what is known of two stretches of frames bounds the second factor for all their pairs
at once, and the external model is asked only for the pairs whose P^ext is large enough to matter there. Of those, the
pair's own distance tightens the bound, and only where that does not rule it out either is the uncertainty of the pair
itself computed: in decreasing order of the bounds, until the next one is below the worst of the best K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange, threads_for
from smalti.engine.relative_position import PairCentres, projected_centre
from smalti.geometry.outline import Outline
from smalti.overlap.external_model import PairwiseModel
from smalti.records import Homographies, PairNumbers, pair_key
from smalti.suggestion.state_view import View

ROUNDING = 1.0 + 1e-9
"""Bounds are computed along another path than rewards: leave room for their rounding."""

FIRST_EVALUATED, MOST_EVALUATED = 256, 2**15
"""Pairs that are evaluated before looking again which others are ruled out; twice as many each time."""

DESCENT = 4.0
"""While too few pairs are found, those that reach a smaller reward by this factor are looked at next."""

FAINTEST = 1e-9
"""Of the largest conceivable reward: when fewer pairs than wanted reach this, all that are left are looked at."""


class Reward(Protocol):
    """What a pair is worth but for P^ext, at most min(σ_x, w/√2π) · min(σ_y, h/√2π) · exp(-½ max(g_x/σ_x, g_y/σ_y)²).

    σ is the standard deviation of one frame's centre in the other, of w × h px, and g how far its mean lies beyond
    `reach` frame sizes from the centre.
    """

    @property
    def reach(self) -> float:
        """Return the distance, in frame sizes, from which on the reward falls off."""
        ...

    def of(self, centres: PairCentres, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what pairs (n,) are worth, mean of both directions; 0 will do for what is below `least` (n,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best pairs, best first, and what they are worth."""

    pairs: PairNumbers  # (n, 2)
    rewards: NDArray[np.float64]
    evaluated: int

    @classmethod
    def nothing(cls) -> Found:
        """Begin."""
        return cls(np.empty((0, 2), dtype=np.int64), np.empty(0), 0)


def search(view: View, external: PairwiseModel, reward: Reward, top: int, *, faintest_share: float = 0.0) -> Found:
    """Return the `top` candidates of largest reward, exactly, best first; equal rewards by pair.

    Those below `faintest_share` of the best are not looked for.
    """
    if top < 1:
        return Found.nothing()
    hunt = _Hunt(view, external, reward, top)
    goal = float(hunt.bound.max(initial=0.0))
    faintest = FAINTEST * goal
    while True:
        hunt.look_at_those_reaching(goal)
        # Whatever was not looked at is worth less than the goal.
        if hunt.threshold >= goal or goal == 0.0 or goal <= faintest_share * hunt.best:
            return hunt.found
        # Once there are enough, those after the best hardly change what has to be looked at: fewer halts will do.
        goal = max(hunt.threshold, goal / (DESCENT**2 if hunt.threshold > 0.0 else DESCENT))
        if goal < faintest:
            goal = hunt.threshold


@dataclass
class _Hunt:
    """The best pairs so far."""

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
        """What a pair must be worth to be among the best."""
        rewards = self.found.rewards
        return float(rewards[self.top - 1]) if len(rewards) >= self.top else 0.0

    @property
    def best(self) -> float:
        """What the best pair is worth, 0 while there is none."""
        return float(self.found.rewards[0]) if len(self.found.rewards) else 0.0

    def look_at_those_reaching(self, goal: float) -> None:
        """Take in the pairs whose bound is at least the goal, but for those that were evaluated before."""
        least = np.full_like(self.bound, np.inf)
        np.divide(goal / ROUNDING, self.bound, out=least, where=(self.bound >= goal) & (self.bound > 0.0))
        for pairs, probability in self.external.pairs_above(least, self.stretches.starts):
            limit = probability * self._bound_of_pairs(pairs)
            # What is above the goal before was evaluated then, or ruled out; to the rounding, which is looked up.
            chosen = np.flatnonzero((limit >= max(goal, self.threshold)) & (limit <= ROUNDING * self.goal_before))
            doubtful = chosen[limit[chosen] >= self.goal_before]
            if len(doubtful):
                known = doubtful[np.isin(pair_key(*pairs[doubtful].T), self.evaluated)]
                chosen = np.setdiff1d(chosen, known, assume_unique=True)
            chosen = chosen[self.view.may_be_asked(pairs[chosen])]
            self._take_in(pairs[chosen], probability[chosen], limit[chosen])
        self.goal_before = goal

    def _take_in(self, pairs: PairNumbers, probability: NDArray[np.float64], limit: NDArray[np.float64]) -> None:
        """Evaluate pairs in decreasing order of what they may be worth, until the next cannot be among the best."""
        order = np.argsort(-limit, kind="stable")
        size = FIRST_EVALUATED
        while len(order):
            some, order = order[:size], order[size:]
            self._evaluate(pairs[some], probability[some])
            # A pair whose bound equals the threshold may tie with it and come first by its numbers.
            order = order[: np.searchsorted(-limit[order], -self.threshold, side="right")]
            size = min(2 * size, MOST_EVALUATED)

    def _evaluate(self, pairs: PairNumbers, probability: NDArray[np.float64]) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.nan_to_num(self.threshold / probability, nan=0.0) / ROUNDING
        rewards = self.reward.of(self.view.covariance.of_pairs(pairs), least)
        # P^ext itself only of those that its bound has not ruled out by now.
        left = np.flatnonzero(ROUNDING * probability * rewards >= self.threshold)
        worth = self.external.of_pairs(pairs[left]) * rewards[left]
        self.found = merge(self.found, pairs[left], worth, self.top, evaluated=len(pairs))
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
    """Return the best `top` of what was found and of these pairs; equal rewards are ordered by pair."""
    together, worth = np.concatenate([found.pairs, pairs]), np.concatenate([found.rewards, rewards])
    order = np.lexsort((together[:, 1], together[:, 0], -worth))[:top]
    return Found(together[order], worth[order], found.evaluated + evaluated)


def _bound(
    deviation: NDArray[np.float64], distance: NDArray[np.float64], outline: Outline, reach: float
) -> NDArray[np.float64]:
    """Return the bound for deviations at most and distances at least these (..., 2), px."""
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
    """Return the bound of pairs (n, 2) by their own distances and their stretches' deviations."""
    result = np.empty(len(pairs))
    for n in prange(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        forth = deviation[stretch_of[i], stretch_of[j]]
        back = deviation[stretch_of[j], stretch_of[i]]
        x, y = projected_centre(maps, inverses, i, j)
        total = _bound_one(x * unit, y * unit, forth[0], forth[1], width, height, reach)
        x, y = projected_centre(maps, inverses, j, i)
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
