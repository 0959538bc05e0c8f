"""What a strategy is, and ours: the probability of a yes times what it would teach of the whole mosaic, by its cost."""

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


class Strategy(Protocol):
    """Ranks the pairs that may be asked."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return at most `top` candidates, best first; none if it has nothing to ask."""
        ...


@runtime_checkable
class JointStrategy(Strategy, Protocol):
    """A strategy that ranks pairs for a batch: each pair is the best one if those before it are asked as well."""

    @property
    def joint(self) -> bool:
        """Whether it does."""
        ...


@dataclass(frozen=True, slots=True)
class Smalti:
    """Asks the largest P(yes) · expected drop of the squared error / expected cost.

    Costs are in any unit, the same for both: a person's no is soon said, a yes takes ten landmarks.
    """

    name: str = "smalti"
    cost_of_yes: float = 1.0
    cost_of_no: float = 1.0
    joint: bool = True

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best pairs, chosen jointly: each is the best if those before it are asked as well."""
        considered = CandidatePairs.of(view)
        if not len(considered.candidates.pairs):
            return []
        candidates = considered.candidates
        return [
            Suggestion(
                Pair(*map(int, candidates.pairs[best])),
                worth,
                reasons={
                    "overlap": float(considered.likely[best]),
                    "position": float(candidates.position[best]),
                    "external": float(candidates.external[best]),
                    "drop_px2": drop,
                },
            )
            for best, worth, drop, _ in self.choose(considered.expected_gain(view), top)
        ]

    def choose(self, expected_gain: ExpectedGain, count: int) -> Iterator[tuple[int, float, float, ExpectedGain]]:
        """Yield candidates one by one: its number, its worth, the drop by a yes, and what is left to be learned."""
        for _ in range(min(count, len(expected_gain.likely))):
            gains = expected_gain.gains
            worth = self.worth(expected_gain.likely, gains)
            best = int(np.argmax(worth))
            if worth[best] <= 0.0:
                return
            found = best, float(worth[best]), float(gains[best])
            if count > 1:
                expected_gain = expected_gain.suppose(best)
            yield (*found, expected_gain)

    def worth(self, likely: NDArray[np.float64], gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what candidates are ranked by (n,): the expected drop of the squared error, px², by its cost."""
        cost = likely * self.cost_of_yes + (1.0 - likely) * self.cost_of_no
        worth: NDArray[np.float64] = likely * gains / cost
        return worth
