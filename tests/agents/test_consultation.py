"""Agents that are told where to look, and agents that ask others."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.agents.agent import IMPROBABLE, Anywhere, Consultation, ask, judge
from smalti.records import Answer, Author, Expectation, Landmarks, Pair, Verdict

PAIR = Pair(2, 5)
EXPECTED = Expectation(np.eye(2, 3), 4.0)
POINTS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


class Deaf:
    """Says yes or no, and cannot be told anything."""

    def __init__(self, says, reason=""):
        self.says, self.reason, self.asked = says, reason, 0

    def answer(self, pair):
        self.asked += 1
        return Answer.yes(Landmarks(pair, POINTS, POINTS), self.reason) if self.says else Answer.no(pair, self.reason)


class Listening(Deaf):
    """Notes what it is told."""

    heard = None

    def answer_expecting(self, pair, expected):
        self.heard = expected
        return self.answer(pair)


def test_what_is_expected_reaches_those_who_want_to_know_and_nobody_else():
    listening, deaf = Listening(True), Deaf(True)
    for agent in (listening, deaf):
        assert ask(agent, PAIR, EXPECTED).verdict is Verdict.YES
    assert listening.heard is EXPECTED


def test_who_is_told_nothing_is_asked_all_the_same():
    listening = Listening(True)
    assert ask(listening, PAIR, None).verdict is Verdict.YES
    assert listening.heard is None


def test_the_first_who_says_yes_is_believed_and_the_next_is_not_asked():
    agents = [Deaf(False), Deaf(True, "mine"), Deaf(True, "not mine")]
    assert Consultation(agents).answer(PAIR).reason == "mine"
    assert [agent.asked for agent in agents] == [1, 1, 0]


def test_a_no_says_why_nobody_found_anything():
    answer = Consultation([Deaf(False, "too dark"), Deaf(False, "too flat")]).answer(PAIR)
    assert (answer.verdict, answer.reason) == (Verdict.NO, "too dark; too flat")


@pytest.mark.parametrize("expected", [None, EXPECTED])
def test_a_consultation_passes_on_what_is_expected(expected):
    listening = Listening(True)
    ask(Consultation([listening]), PAIR, expected)
    assert listening.heard is expected


def test_somebody_can_be_asked_without_being_told():
    listening = Listening(True)
    ask(Consultation([Anywhere(listening)]), PAIR, EXPECTED)
    assert (listening.asked, listening.heard) == (1, None)


@pytest.mark.parametrize(("expected", "times"), [(None, 1), (EXPECTED, 2)])
def test_who_was_told_nothing_is_not_asked_the_same_again(expected, times):
    listening = Listening(False, "too dark")
    answer = ask(Consultation([listening, Anywhere(listening)]), PAIR, expected)
    assert listening.asked == times
    assert answer.reason == "; ".join(["too dark"] * times)


def test_who_finds_nothing_has_said_no_only_where_an_overlap_is_improbable():
    failed = Answer.unsure(PAIR, "too dark")
    below, above = judge(failed, IMPROBABLE - 0.01), judge(failed, IMPROBABLE)
    assert (below.verdict, below.reason) == (Verdict.NO, "too dark")
    assert above is failed
    # What a person says stays as it is.
    by_person = Answer.unsure(PAIR, author=Author.PERSON)
    assert judge(by_person, 0.0) is by_person


def test_several_who_cannot_tell_cannot_tell():
    class Failing:
        def answer(self, pair):
            return Answer.unsure(pair, "too flat")

    answer = Consultation([Deaf(False, "elsewhere"), Failing()]).answer(PAIR)
    assert (answer.verdict, answer.reason) == (Verdict.UNSURE, "elsewhere; too flat")
