"""Registration methods that are asked in turn, and the order that is learned from what they find."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.agents.agent import IMPROBABLE, ask, judge
from smalti.agents.registration_methods import EXPLORED, MethodCounts, MethodsInTurn, PairKind, RegistrationMethod
from smalti.records import Answer, Author, Expectation, Landmarks, Pair, Verdict

PAIR = Pair(2, 5)
EXPECTED = Expectation(np.eye(2, 3), 4.0)
POINTS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


class Deaf:
    """Says yes or cannot tell, and cannot be told anything."""

    def __init__(self, says, reason=""):
        self.says, self.reason, self.asked = says, reason, 0

    def answer(self, pair):
        self.asked += 1
        found = Landmarks(pair, POINTS, POINTS)
        return Answer.yes(found, self.reason) if self.says else Answer.unsure(pair, self.reason)


class Listening(Deaf):
    """Notes what it is told."""

    heard = None

    def answer_expecting(self, pair, expected):
        self.heard = expected
        return self.answer(pair)


def method(name, agent=None, seconds=0.1, **known):
    return RegistrationMethod(name, agent or Deaf(False), seconds, **known)


def in_turn(*agents, kind=PairKind.FAR, looks_near=False):
    methods = [method(f"method {n}", agent, looks_near=looks_near) for n, agent in enumerate(agents)]
    return MethodsInTurn(methods, kind, MethodCounts())


def answered(name, *failed):
    found = Landmarks(PAIR, POINTS, POINTS, method=name)
    return Answer(PAIR, Verdict.YES, found, failed=failed) if name else Answer(PAIR, Verdict.UNSURE, failed=failed)


def order_after(answers, methods, kind=PairKind.FAR):
    counts = MethodCounts()
    for answer in answers:
        counts.take(kind, answer)
    return [one.name for one in counts.order(kind, methods)]


def test_what_is_expected_reaches_those_who_want_to_know_and_nobody_else():
    listening, deaf = Listening(True), Deaf(True)
    for agent in (listening, deaf):
        assert ask(agent, PAIR, EXPECTED).verdict is Verdict.YES
    assert listening.heard is EXPECTED


def test_who_is_told_nothing_is_asked_all_the_same():
    listening = Listening(True)
    assert ask(listening, PAIR, None).verdict is Verdict.YES
    assert listening.heard is None


def test_the_first_method_that_says_yes_is_believed_and_the_next_is_not_asked():
    agents = [Deaf(False), Deaf(True, "mine"), Deaf(True, "not mine")]
    answer = in_turn(*agents).answer(PAIR)
    assert (answer.reason, answer.method, answer.failed) == ("mine", "method 1", ("method 0",))
    assert [agent.asked for agent in agents] == [1, 1, 0]


def test_where_no_method_finds_anything_the_answer_says_why_and_which_were_tried():
    answer = in_turn(Deaf(False, "too dark"), Deaf(False, "too flat")).answer(PAIR)
    assert (answer.verdict, answer.reason) == (Verdict.UNSURE, "too dark; too flat")
    assert (answer.method, answer.failed) == ("", ("method 0", "method 1"))


@pytest.mark.parametrize("expected", [None, EXPECTED])
def test_what_is_expected_is_passed_on(expected):
    listening = Listening(True)
    ask(in_turn(listening), PAIR, expected)
    assert listening.heard is expected


@pytest.mark.parametrize(
    ("kind", "expected", "times"),
    [(PairKind.NEIGHBOURS, EXPECTED, 2), (PairKind.NEIGHBOURS, None, 1), (PairKind.FAR, EXPECTED, 1)],
)
def test_a_method_that_looks_near_looks_anywhere_next_for_neighbours_that_were_expected_elsewhere(
    kind, expected, times
):
    listening = Listening(False, "too dark")
    answer = ask(in_turn(listening, kind=kind, looks_near=True), PAIR, expected)
    assert listening.asked == times
    assert answer.reason == "; ".join(["too dark"] * times)


def test_of_two_methods_of_equal_worth_the_one_with_less_cost_for_a_yes_is_first():
    cheap, dear = method("cheap", seconds=0.1, share=0.5), method("dear", seconds=1.0, share=0.9)
    assert order_after([], [dear, cheap]) == ["cheap", "dear"]


def test_a_method_that_mostly_fails_is_no_longer_asked_first():
    first, second = method("first", share=0.9), method("second", seconds=0.5, share=0.9, value=0.8)
    fails = [answered("second", "first")] * 60
    assert order_after([], [first, second])[0] == "first"
    assert order_after(fails, [first, second])[0] == "second"


def test_what_was_learned_of_one_kind_of_pairs_does_not_count_for_another():
    first, second = method("first", share=0.9), method("second", seconds=0.5, share=0.9, value=0.8)
    counts = MethodCounts()
    for _ in range(60):
        counts.take(PairKind.FAR, answered("second", "first"))
    assert counts.order(PairKind.NEIGHBOURS, [first, second])[0].name == "first"


def test_a_method_that_finds_nothing_where_others_failed_is_not_asked_there_but_now_and_then():
    methods = [method("cheap"), method("vain", seconds=1.0)]
    counts, asked = MethodCounts(), []
    for _ in range(100):
        names = [one.name for one in counts.order(PairKind.FAR, methods)]
        asked.append("vain" in names)
        counts.take(PairKind.FAR, answered("cheap"))
        counts.take(PairKind.FAR, answered("", *names))
    assert asked[0]
    gaps = np.diff(np.flatnonzero(asked[40:]))
    assert set(gaps.tolist()) == {EXPLORED}


def test_answers_that_name_no_method_teach_nothing():
    methods = [method("one"), method("other")]
    assert order_after([answered("")] * 99, methods) == order_after([], methods)


def test_who_finds_nothing_has_said_no_only_where_an_overlap_is_improbable():
    failed = Answer(PAIR, Verdict.UNSURE, reason="too dark", failed=("keypoints",))
    below, above = judge(failed, IMPROBABLE - 0.01), judge(failed, IMPROBABLE)
    assert (below.verdict, below.reason, below.failed) == (Verdict.NO, "too dark", ("keypoints",))
    assert above is failed
    # What a person says stays as it is.
    by_person = Answer.unsure(PAIR, author=Author.PERSON)
    assert judge(by_person, 0.0) is by_person
