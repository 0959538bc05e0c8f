"""What a strategy is."""

from __future__ import annotations

from typing import Protocol

from smalti.records import Pair, Suggestion
from smalti.suggestion.ranking import Found
from smalti.suggestion.view import View


class Strategy(Protocol):
    """Ranks the pairs that may be asked.

    Two attributes it may have besides: `learns`, if the loop is to learn how noisy links are and ask by the refined
    mosaic, and `joint`, if the pairs that it ranks are meant to be asked together.
    """

    @property
    def name(self) -> str:
        """What the command line calls it."""
        ...

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return at most `top` candidates, best first; none if it has nothing to ask."""
        ...


def as_suggestions(found: Found, smallest_reward: float = 0.0) -> list[Suggestion]:
    """Turn what a search found into suggestions, dropping pairs that are worth nothing."""
    return [
        Suggestion(Pair(int(i), int(j)), float(reward))
        for (i, j), reward in zip(found.pairs, found.rewards, strict=True)
        if reward > smallest_reward
    ]
