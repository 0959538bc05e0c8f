"""What further answers would bring: told while people look, and nobody waits for it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from smalti.annotation import foresight
from smalti.annotation.outlook import describe_outlook
from smalti.suggestion.lessons import Lessons
from tests.annotation.people import answer_next, give, opened

PATIENCE_SECONDS = 60


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(foresight, "CALM_SECONDS", 0.1)


def wait_for_outlook(session):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while session.outlook is None:
        assert time.monotonic() < deadline, "nothing was foretold"
        time.sleep(0.02)
    return session.outlook


def test_the_outlook_is_what_the_engine_says(folder):
    with opened(folder) as session:
        answer_next(session, 2)
        told, engine = wait_for_outlook(session), session._ledger.loop.outlook
        assert (told.bound_px, told.worth_going_on) == (engine.bound_px, engine.worth_going_on)
        assert [(after.answers - 2, after.predicted_px) for after in told.ahead] == list(engine.ahead_px.items())
        assert told.answers == session.state().errors[-1].answers == 2


def test_an_answer_makes_the_outlook_unknown_until_that_is_told_anew(folder):
    with opened(folder) as session:
        before = wait_for_outlook(session)
        told = threading.Event()
        session._foresight._on_outlook = told.set
        answer_next(session)
        assert session.outlook is None
        assert told.wait(PATIENCE_SECONDS)
        assert session.outlook is not None
        assert session.outlook != before


def test_an_answer_that_comes_while_it_is_foretold_does_not_wait_for_the_rest(folder, monkeypatch):
    supposed, suppose = [], Lessons.suppose

    def slow(lessons, n):
        supposed.append(n)
        time.sleep(0.05)
        return suppose(lessons, n)

    monkeypatch.setattr(Lessons, "suppose", slow)
    with opened(folder) as session:
        question = session.question()
        while not supposed:
            time.sleep(0.005)
        give(session, question.i, question.j, "no")
        assert len(supposed) < 10


def test_with_the_papers_strategy_too_the_outlook_goes_on_where_the_errors_end(folder):
    with opened(folder, strategy="paper") as session:
        answer_next(session)
        told, now = wait_for_outlook(session), session.state().predicted_px
        assert 0 < told.ahead[-1].predicted_px <= told.ahead[0].predicted_px <= now < told.bound_px


def test_a_loop_that_does_not_learn_has_an_outlook(folder):
    with opened(folder, strategy="paper") as session:
        loop = replace(session._ledger.loop, learns=False)
        told = describe_outlook(loop, lambda: None)
        assert [after.answers for after in told.ahead] == [5, 10, 20]
        assert told.bound_px > told.ahead[0].predicted_px


def test_the_target_is_met_by_the_bound_and_not_by_the_error(folder):
    with opened(folder) as session:
        error, bound = session.state().predicted_px, wait_for_outlook(session).bound_px
    for target, met in ((0.5 * (error + bound), False), (1.01 * bound, True)):
        with opened(folder, target_px=target) as session:
            state = session.state()
            assert (state.target_met, state.stopped is not None) == (met, met)


def test_without_a_target_none_is_met(folder):
    with opened(folder) as session:
        assert not session.state().target_met
