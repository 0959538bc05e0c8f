"""What questions cost a person."""

from __future__ import annotations

import pytest

from smalti.active_loop import ActiveLoop
from smalti.annotation.answer_history import SECONDS_OF_NO, SECONDS_OF_YES, asking_people
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Author, Pair
from smalti.suggestion.strategy import Smalti
from smalti_lab.experiments.worlds import OUTLINE, raster

WORLD = raster(20)
AGENT = WORLD.agent(1)


def started(strategy):
    return ActiveLoop.start(20, OUTLINE, WORLD.chain(AGENT), strategy=strategy)


def given(answer, seconds, author=Author.PERSON):
    return AnswerEntry(Answer(answer.pair, answer.verdict, answer.landmarks, author=author), Role.LOOP, seconds)


YES, NO = AGENT.answer(Pair(2, 17)), Answer.no(Pair(2, 9))


def test_costs_are_the_median_seconds_of_a_persons_answers():
    entries = [given(YES, seconds) for seconds in (20, 30, 40, 50, 600)] + [given(NO, s) for s in (2, 3, 4, 5, 6)]
    strategy = asking_people(started(Smalti()), entries).strategy
    assert (strategy.cost_of_yes, strategy.cost_of_no) == (40.0, 4.0)


@pytest.mark.parametrize(
    "entries", [[], [given(YES, 1.0)], [given(YES, 1.0, Author.MATCHER)] * 9, [given(NO, 0.0)] * 9]
)
def test_what_too_few_answers_tell_is_guessed(entries):
    strategy = asking_people(started(Smalti()), entries).strategy
    assert (strategy.cost_of_yes, strategy.cost_of_no) == (SECONDS_OF_YES, SECONDS_OF_NO)


class Other:
    name = "other"

    def rank(self, view, top):
        return []


def test_other_strategies_know_no_costs():
    strategy = Other()
    assert asking_people(started(strategy), [given(YES, 1.0)] * 9).strategy is strategy
