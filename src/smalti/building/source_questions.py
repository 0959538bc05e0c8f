"""Questions to an agent, each asked once: answers are stored and never asked for again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import zip_longest

from smalti.agents.agent import Agent, ask, judge, prefetch
from smalti.errors import LandmarkError
from smalti.frame_numbers import FrameNumbers
from smalti.project.answer_store import Store
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Author, Expectation, Landmarks, Pair


class Questions:
    """Asks in engine numbers, which count only the usable frames. Stores answers in source numbers."""

    def __init__(
        self,
        store: Store,
        agent_of: Callable[[Role], Agent],
        numbers: FrameNumbers,
        learn: Callable[[AnswerEntry], None] = lambda entry: None,
    ) -> None:
        """`learn` gets every answer that the log has, in its order, and every one that comes."""
        self._store = store
        self._agent_of = agent_of
        self._numbers = numbers
        self._learn = learn
        self._entries = {entry.answer.pair: entry for entry in store.answers()}
        # A retry stands for what was answered before, but that was asked, and is asked again when a build goes on.
        self._retries = {pair: entry for pair, entry in self._entries.items() if entry.role is Role.RETRY}
        for given in store.log():
            if given.answer is not None:
                learn(given.answer)
                if given.pair in self._retries and given.answer.role is not Role.RETRY:
                    self._entries[given.answer.answer.pair] = given.answer

    def ask(self, pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
        """Return the agent's answer on a pair, or the stored one."""
        return self.ask_of_source(self._numbers.pair_in_source(pair), role, expected).of_pair(pair)

    def ask_of_source(self, pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
        """Do the same in source numbers."""
        known = self._retries if role is Role.RETRY else self._entries
        if pair not in known:
            began = time.perf_counter()
            answer = judge(ask(self._agent_of(role), pair, expected), 1.0 if expected is None else expected.overlap)
            entry = AnswerEntry(answer, role, time.perf_counter() - began)
            self._store.keep_answer(entry)
            known[pair] = entry
            self._learn(entry)
        return known[pair].answer

    def prefetch(self, pairs: Iterable[Pair], role: Role, expected: Sequence[Expectation | None] = ()) -> None:
        """Let the agent work ahead on pairs that will be asked about soon, if they have no answer yet."""
        in_source = zip_longest(map(self._numbers.pair_in_source, pairs), expected)
        asked = self._retries if role is Role.RETRY else self._entries
        left = [(pair, known) for pair, known in in_source if pair not in asked]
        prefetch(self._agent_of(role), [pair for pair, _ in left], [known for _, known in left])

    def asking(self, role: Role, link_of: Callable[[Landmarks], object]) -> Agent:
        """Return these questions as an agent that asks in one role; `link_of` is that of the loop that asks."""
        return _Asking(self, role, link_of)

    def attempts(self, *roles: Role) -> int:
        """Return the number of questions asked in these roles."""
        return sum(entry.role in roles for entry in self._entries.values())

    def failed(self) -> list[Pair]:
        """Return the pairs between frames that the engine knows about which no registration method could tell."""
        failed = (entry for entry in self._entries.values() if entry.answer.is_failure and entry.role is not Role.RETRY)
        pairs = (entry.answer.pair for entry in failed)
        return [self._numbers.pair_in_engine(pair) for pair in pairs if self._numbers.knows(pair)]

    def given_after(self, chain: Collection[Pair]) -> list[Answer]:
        """Return what was answered after the chain, in the order in which it came."""
        found = []
        for pair, entry in (self._entries | self._retries).items():
            if self._numbers.knows(pair):
                answer = entry.answer.of_pair(self._numbers.pair_in_engine(pair))
                if counts_after_chain(entry, answer.pair, chain):
                    found.append(answer)
        return found

    def landmarks(self) -> dict[Pair, Landmarks]:
        """Return the landmarks of every yes between frames that the engine knows."""
        found = {}
        for pair, entry in (self._entries | self._retries).items():
            if entry.answer.landmarks is not None and self._numbers.knows(pair):
                inner = self._numbers.pair_in_engine(pair)
                found[inner] = entry.answer.landmarks.of_pair(inner)
        return found


def counts_after_chain(entry: AnswerEntry, pair: Pair, chain: Collection[Pair]) -> bool:
    """Tell whether an answer on a pair, in the numbers of the engine like the chain, counts after the chain.

    A person may answer about a pair that the matcher failed to chain. If the chain does not use this answer, it counts
    like all others: otherwise it would be lost, and the pair would be asked again and again.
    """
    by_person = entry.role is not Role.ASIDE and entry.answer.author is Author.PERSON
    return pair not in chain and (entry.role.is_after_chain or by_person)


def usable(answer: Answer, link_of: Callable[[Landmarks], object]) -> Answer:
    """Return an answer of the log, or "cannot tell" in its place if no link can be made of its landmarks.

    Whatever is in a log must open: another method, another version or another program may have written it.
    """
    try:
        if answer.landmarks is not None:
            link_of(answer.landmarks)
    except LandmarkError as error:
        return Answer.unsure(answer.pair, str(error), answer.author)
    return answer


class _Asking:
    def __init__(self, questions: Questions, role: Role, link_of: Callable[[Landmarks], object]) -> None:
        self._questions, self._role, self._link_of = questions, role, link_of

    def answer(self, pair: Pair) -> Answer:
        return usable(self._questions.ask(pair, self._role), self._link_of)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        return usable(self._questions.ask(pair, self._role, expected), self._link_of)

    def prefetch(self, pairs: Iterable[Pair], expected: Sequence[Expectation | None] = ()) -> None:
        self._questions.prefetch(pairs, self._role, expected)
