"""Registration methods: who is asked about a pair, in which order, learned from what each has found.

Keypoints, spots, all pixels and a learned matcher register different pairs, at different costs. They are asked in turn
until one finds a map. Suppose a yes of a method is worth v, the method finds a share p of the pairs, and a pair costs
it the share c of what a yes is worth. Of two methods, the one with the larger

    v - c / p

is asked first: exchanging both changes the expected value by just that difference, times both shares. Where this is
negative, the time that a yes takes is worth more than the yes, and the method is not asked. With equal values this is
the classical order, by cost over probability.

Costs are nominal, in processor seconds. A clock would give another order in every run, and so another mosaic. Shares
are counted from the answers in the order of the log, so an interrupted build goes on as if it had not been interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from smalti.agents.agent import Agent, ask, prefetch
from smalti.records import Answer, Expectation, Pair, Verdict

KEYPOINTS, SPOTS, LEARNED, PIXELS = "keypoints", "spots", "learned keypoints", "all pixels"
OWN = "a matcher of one's own"
"""Names of registration methods, as people read them."""

WORTH_SECONDS = 10.0
"""Processor seconds that a yes is worth. A person's answer takes several times as long."""

TRIAL_PAIRS = 6.0
"""The trial counts as so many pairs of neighbours: it has up to 18, which overlap more than later ones."""

FAR_SHARE, FAR_PAIRS = 0.5, 2.0
"""Of the trial's share, what is expected of frames far apart; and as how many pairs this counts."""

SECOND_SHARE, SECOND_PAIRS = 0.25, 4.0
"""What is expected of a method where those before it have failed; and as how many pairs this counts."""

EXPLORED = 16
"""A method that is not worth its time is asked about every so many pairs that nothing else registers."""


class PairKind(StrEnum):
    """Kinds of pairs of which methods find different shares."""

    NEIGHBOURS = "neighbours"  # consecutive frames, and what bridges and checks them
    FAR = "far"  # suggested by the engine
    KNOWN = "known"  # surely overlap, at a place that is known
    LEFT = "left"  # the same, but no method has found a map


@dataclass(frozen=True, slots=True, eq=False)
class RegistrationMethod:
    """A way to register two frames. An agent that implements `ExpectingAgent` gets the expected map."""

    name: str
    agent: Agent
    seconds: float  # nominal processor seconds of a pair
    share: float = 0.5  # of neighbouring pairs that it found in the trial
    value: float = 1.0  # of a yes, 1 for the method that does best in the trial
    looks_near: bool = False  # whether it finds nothing where the expected map is wrong


class MethodCounts:
    """What each method was asked and what it found, from the answers in the order of the log."""

    def __init__(self) -> None:
        self._asked: Counter[tuple[PairKind, str, bool]] = Counter()
        self._found: Counter[tuple[PairKind, str, bool]] = Counter()
        self._failures: Counter[PairKind] = Counter()
        self._failures_before: dict[tuple[PairKind, str], int] = {}  # when the method was asked last

    def take(self, kind: PairKind, answer: Answer) -> None:
        """Count an answer; one that names no method counts for nothing."""
        asked = (*answer.failed, answer.method) if answer.method else answer.failed
        for place, name in enumerate(asked):
            self._asked[kind, name, place == 0] += 1
        if answer.method:
            self._found[kind, answer.method, len(asked) == 1] += 1
        elif asked:
            self._failures[kind] += 1
        for name in asked:
            self._failures_before[kind, name] = self._failures[kind]

    def order(self, kind: PairKind, methods: Sequence[RegistrationMethod]) -> list[RegistrationMethod]:
        """Return the methods to ask about a pair of a kind, in this order; at least one."""
        first, *others = sorted(methods, key=lambda method: -self._merit(kind, method, is_first=True))
        worth = [one for one in others if self._merit(kind, one, is_first=False) > 0.0 or self._is_due(kind, one)]
        return [first, *worth]

    def _merit(self, kind: PairKind, method: RegistrationMethod, *, is_first: bool) -> float:
        share = self._share(kind, method, is_first=is_first)
        return method.value - method.seconds / (WORTH_SECONDS * share)

    def _share(self, kind: PairKind, method: RegistrationMethod, *, is_first: bool) -> float:
        """Return the share of pairs that a method is expected to register, where it is asked first or later."""
        if not is_first:
            expected, pairs = SECOND_SHARE, SECOND_PAIRS
        elif kind is PairKind.FAR:
            expected, pairs = FAR_SHARE * method.share, FAR_PAIRS
        else:
            expected, pairs = method.share, TRIAL_PAIRS
        # Half a pair that was found keeps the share positive.
        known = kind, method.name, is_first
        return (0.5 + pairs * expected + self._found[known]) / (1.0 + pairs + self._asked[known])

    def _is_due(self, kind: PairKind, method: RegistrationMethod) -> bool:
        return self._failures[kind] - self._failures_before.get((kind, method.name), 0) >= EXPLORED - 1


class MethodsInTurn:
    """Asks registration methods in turn, until one says yes."""

    def __init__(self, methods: Sequence[RegistrationMethod], kind: PairKind, counts: MethodCounts) -> None:
        self._methods, self._kind, self._counts = tuple(methods), kind, counts

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with the landmarks of the first method that finds some, or "cannot tell" with all reasons."""
        return self._ask(pair, None)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Answer in the same way; agents that can use the expectation get it."""
        return self._ask(pair, expected)

    def prefetch(self, pairs: Iterable[Pair], expected: Sequence[Expectation | None] = ()) -> None:
        """Let the first method work ahead: the others are asked only where it fails."""
        prefetch(self._counts.order(self._kind, self._methods)[0].agent, pairs, expected)

    def _ask(self, pair: Pair, expected: Expectation | None) -> Answer:
        reasons: list[str] = []
        failed: tuple[str, ...] = ()
        verdict = Verdict.UNSURE
        asked = [(method, expected) for method in self._counts.order(self._kind, self._methods)]
        if expected is not None and self._kind is PairKind.NEIGHBOURS:
            # The camera may have moved otherwise than expected.
            asked += [(method, None) for method, _ in asked if method.looks_near]
        for method, known in asked:
            answer = ask(method.agent, pair, known)
            if answer.landmarks is not None:
                by = answer.landmarks.method or method.name
                return replace(answer, landmarks=replace(answer.landmarks, method=by), failed=failed)
            reasons.append(answer.reason)
            failed, verdict = (*failed, method.name), answer.verdict
        return Answer(pair, verdict, reason="; ".join(reasons), failed=failed)
