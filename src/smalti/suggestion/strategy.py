"""Rank pairs: the Strategy interface, and ours, `Smalti`: P(yes) times expected gain over expected cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from smalti.records import Pair, Suggestion
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.expected_gain import ExpectedGain
from smalti.suggestion.state_view import View

CHOSEN_JOINTLY = 256
"""Candidates among which the questions of a batch are chosen jointly: the best ones by themselves."""


class Strategy(Protocol):
    """Ranks the pairs that may be asked."""

    @property
    def name(self) -> str:
        """The name that users give and see."""
        ...

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return at most `top` candidates, best first; none if no pair is useful."""
        ...


@runtime_checkable
class JointStrategy(Strategy, Protocol):
    """A strategy that ranks a batch: each pair is the best one if those before it are asked as well."""

    @property
    def joint(self) -> bool:
        """Whether it ranks jointly."""
        ...


@dataclass(frozen=True, slots=True)
class Smalti:
    """Ranks by P(yes) · expected drop of the squared error / expected cost.

    Costs are in any unit, the same for both. A person says "no" quickly; a yes takes about ten landmarks.
    """

    name: str = "smalti"
    cost_of_yes: float = 1.0
    cost_of_no: float = 1.0
    joint: bool = True

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best pairs, chosen jointly: each is the best if those before it are asked as well."""
        candidates = CandidatePairs.of(view)
        surveyed = candidates.surveyed
        if not len(surveyed.pairs):
            return []
        return [
            Suggestion(
                Pair(*map(int, surveyed.pairs[best])),
                gain_per_cost,
                reasons={
                    "overlap": float(candidates.yes_probability[best]),
                    "position": float(surveyed.position[best]),
                    "external": float(surveyed.external[best]),
                    "drop_px2": drop,
                },
            )
            for best, gain_per_cost, drop, _ in self.choose(candidates.expected_gain(view), top)
        ]

    def choose(self, expected_gain: ExpectedGain, count: int) -> Iterator[tuple[int, float, float, ExpectedGain]]:
        """Yield the best candidates: number, gain per cost, drop after a yes, expected gain of the rest."""
        numbers = np.arange(len(expected_gain.yes_probability))
        if count > 1 and len(numbers) > CHOSEN_JOINTLY:
            # Answers hardly raise the gain of others: what is not among the best now will not be asked in this batch.
            alone = self.gain_per_cost(expected_gain.yes_probability, expected_gain.gains)
            numbers = np.sort(np.argsort(-alone, kind="stable")[:CHOSEN_JOINTLY])
            expected_gain = expected_gain.of_some(numbers)
        for _ in range(min(count, len(numbers))):
            gains = expected_gain.gains
            gain_per_cost = self.gain_per_cost(expected_gain.yes_probability, gains)
            best = int(np.argmax(gain_per_cost))
            if gain_per_cost[best] <= 0.0:
                return
            found = int(numbers[best]), float(gain_per_cost[best]), float(gains[best])
            if count > 1:
                expected_gain = expected_gain.suppose(best)
            yield (*found, expected_gain)

    def gain_per_cost(self, yes_probability: NDArray[np.float64], gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the ranking value (n,): the expected drop of the squared error, px², over the expected cost."""
        cost = yes_probability * self.cost_of_yes + (1.0 - yes_probability) * self.cost_of_no
        gain_per_cost: NDArray[np.float64] = yes_probability * gains / cost
        return gain_per_cost
