"""Questions that are asked once, and those that are tried again where the place is known by then."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from smalti.building.source_questions import Questions
from smalti.frame_numbers import FrameNumbers
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.entries import Role
from smalti.records import Answer, Landmarks, Pair, Verdict

PAIR = Pair(0, 1)
POINTS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


class Agent:
    def __init__(self, finds):
        self.finds, self.asked = finds, 0

    def answer(self, pair):
        self.asked += 1
        return Answer.yes(Landmarks(pair, POINTS, POINTS)) if self.finds else Answer.unsure(pair, "too dark")


@pytest.fixture
def store(tmp_path):
    with closing(Store.create(tmp_path / FILE_NAME)) as store:
        yield store


def questions(store, learn=lambda entry: None):
    agents = {Role.CHAIN: Agent(False), Role.RETRY: Agent(True)}
    return Questions(store, agents.__getitem__, FrameNumbers((0, 1, 2)), learn), agents


def test_a_pair_that_failed_is_asked_again_as_a_retry_and_the_retry_counts(store):
    asking, _ = questions(store)
    assert asking.ask(PAIR, Role.CHAIN).verdict is Verdict.UNSURE
    assert asking.failed() == [PAIR]
    assert asking.ask(PAIR, Role.RETRY).verdict is Verdict.YES
    assert [entry.role for entry in store.answers()] == [Role.RETRY]
    assert set(asking.landmarks()) == {PAIR}
    assert [answer.verdict for answer in asking.given_after(())] == [Verdict.YES]


def test_who_goes_on_gets_the_same_answers_in_both_roles_and_nobody_is_asked(store):
    asking, _ = questions(store)
    asking.ask(PAIR, Role.CHAIN)
    asking.ask(PAIR, Role.RETRY)
    again, agents = questions(store)
    assert again.ask(PAIR, Role.CHAIN).verdict is Verdict.UNSURE
    assert again.ask(PAIR, Role.RETRY).verdict is Verdict.YES
    assert [agent.asked for agent in agents.values()] == [0, 0]


def test_what_is_learned_is_every_answer_of_the_log_in_its_order(store):
    first, second = [], []
    asking, _ = questions(store, first.append)
    for pair, role in ((PAIR, Role.CHAIN), (Pair(1, 2), Role.CHAIN), (PAIR, Role.RETRY)):
        asking.ask(pair, role)
    questions(store, second.append)
    learned = [[(entry.answer.pair, entry.role) for entry in entries] for entries in (first, second)]
    assert learned[0] == learned[1] == [(PAIR, Role.CHAIN), (Pair(1, 2), Role.CHAIN), (PAIR, Role.RETRY)]
