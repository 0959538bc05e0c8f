"""What every loop does with answers, whatever adjusts them; `active_loop.py` and `paper/paper_loop.py` add the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from smalti.errors import PairError
from smalti.records import Answer, Author, Landmarks, Pair, Suggestion

LinkT = TypeVar("LinkT")


class AnsweredLoop(ABC, Generic[LinkT]):
    """A state after some answers, as a value: `record` returns the next state and does not change this one."""

    if TYPE_CHECKING:  # fields or properties in the two loops

        @property
        def frames(self) -> int:
            """N, the number of frames."""

        @property
        def chain(self) -> Mapping[Pair, Landmarks]:
            """The pairs that were registered before the first question."""

        @property
        def answers(self) -> tuple[Answer, ...]:
            """The answers, in the order in which they came."""

        @property
        def links(self) -> Mapping[Pair, LinkT]:
            """The links of every yes."""

        @property
        def strategy(self) -> Any:
            """The strategy that ranks the pairs."""

        @property
        def view(self) -> Any:
            """What the strategy sees."""

    @abstractmethod
    def link_of(self, landmarks: Landmarks) -> LinkT:
        """Return the link of landmarks that the adjustment takes."""

    @abstractmethod
    def _after(self, answers: tuple[Answer, ...], links: Mapping[Pair, LinkT]) -> Self:
        """Return the state after other answers; the same links mean the same mosaic."""

    @property
    def landmarks(self) -> dict[Pair, Landmarks]:
        """The landmarks of the chain and of every yes, accepted or rejected."""
        given = {answer.pair: answer.landmarks for answer in self.answers if answer.landmarks is not None}
        return {**self.chain, **given}

    @cached_property
    def person_pairs(self) -> frozenset[Pair]:
        """The pairs that a person answered yes."""
        return frozenset(
            answer.pair for answer in self.answers if answer.landmarks is not None and answer.author is Author.PERSON
        )

    @cached_property
    def failed_pairs(self) -> frozenset[Pair]:
        """The pairs about which the matcher could not tell, whatever a person said later."""
        return frozenset(answer.pair for answer in self.answers if answer.is_failure)

    @cached_property
    def best(self) -> Suggestion | None:
        """The best question; None if no candidate is left."""
        found = self.suggest(1)
        return found[0] if found else None

    def suggest(self, top: int = 1) -> list[Suggestion]:
        """Return the `top` best questions, best first; empty if no candidate is left."""
        found: list[Suggestion] = self.strategy.rank(self.view, top)
        return found

    def is_settled(self, pair: Pair) -> bool:
        """Tell whether a pair was answered, by any verdict, or belongs to the chain."""
        return pair in self.chain or any(answer.pair == pair for answer in self.answers)

    def record(self, answer: Answer) -> Self:
        """Return the state after this answer; its pair need not be a suggested one."""
        pair = answer.pair
        pair.check_within(self.frames)
        if self.is_settled(pair):
            raise PairError(f"pair {pair} is given twice: forget the earlier answer first")
        answers = (*self.answers, answer)
        if answer.landmarks is None:
            return self._after(answers, self.links)
        return self._after(answers, {**self.links, pair: self.link_of(answer.landmarks)})

    def forget(self, pair: Pair) -> Self:
        """Return the state as if this pair had never been answered."""
        if not any(answer.pair == pair for answer in self.answers):
            raise PairError(f"pair {pair} has no answer to forget")
        answers = tuple(answer for answer in self.answers if answer.pair != pair)
        if pair not in self.links:
            return self._after(answers, self.links)
        return self._after(answers, {other: link for other, link in self.links.items() if other != pair})

    def replay(self, answers: Iterable[Answer]) -> Self:
        """Return the state after all these answers."""
        state = self
        for answer in answers:
            state = state.record(answer)
        return state
