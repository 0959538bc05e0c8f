"""What every loop does with answers, whoever adjusts them: `smalti.active_loop` and `smalti.paper` fill in the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from smalti.errors import PairError
from smalti.records import Answer, Author, Landmarks, Pair, Suggestion

LinkT = TypeVar("LinkT")


class AnsweredLoop(ABC, Generic[LinkT]):
    """A state after some answers: a value. `record` returns the next state and leaves this one as it is."""

    if TYPE_CHECKING:  # fields or properties, as either loop likes

        @property
        def frames(self) -> int:
            """N."""

        @property
        def chain(self) -> Mapping[Pair, Landmarks]:
            """The pairs that were registered before the first question."""

        @property
        def answers(self) -> tuple[Answer, ...]:
            """In the order in which they came."""

        @property
        def links(self) -> Mapping[Pair, LinkT]:
            """Of every yes."""

        @property
        def strategy(self) -> Any:
            """Who ranks the pairs."""

        @property
        def view(self) -> Any:
            """What the strategy sees."""

    @abstractmethod
    def link_of(self, landmarks: Landmarks) -> LinkT:
        """Return landmarks as the adjustment takes them."""

    @abstractmethod
    def _after(self, answers: tuple[Answer, ...], links: Mapping[Pair, LinkT]) -> Self:
        """Return the state of other answers; if the links are the same, so is the mosaic."""

    @property
    def landmarks(self) -> dict[Pair, Landmarks]:
        """Those of the chain and of every yes, accepted or rejected."""
        given = {answer.pair: answer.landmarks for answer in self.answers if answer.landmarks is not None}
        return {**self.chain, **given}

    @cached_property
    def person_pairs(self) -> frozenset[Pair]:
        """The pairs of which a person says that they overlap."""
        return frozenset(
            answer.pair for answer in self.answers if answer.landmarks is not None and answer.author is Author.PERSON
        )

    @cached_property
    def best(self) -> Suggestion | None:
        """The pair most worth asking, None where no candidate is left."""
        found = self.suggest(1)
        return found[0] if found else None

    def suggest(self, top: int = 1) -> list[Suggestion]:
        """Return the `top` pairs most worth asking, best first; none where no candidate is left."""
        found: list[Suggestion] = self.strategy.rank(self.view, top)
        return found

    def is_settled(self, pair: Pair) -> bool:
        """Tell whether a pair was answered, however, or belongs to the chain."""
        return pair in self.chain or any(answer.pair == pair for answer in self.answers)

    def record(self, answer: Answer) -> Self:
        """Return the state after this answer; the pair need not be the one suggested."""
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
        """Return the state after a whole log of answers."""
        state = self
        for answer in answers:
            state = state.record(answer)
        return state
