"""What further answers would bring: told while people look, and nobody waits for it."""

from __future__ import annotations

import threading
import time

import pytest

from smalti.annotation import precompute
from smalti.annotation.messages import CheckLandmarks
from smalti.suggestion.expected_gain import ExpectedGain
from tests.annotation.people import answer_next, give, marks, opened

PATIENCE_SECONDS = 60


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(precompute, "IDLE_SECONDS", 0.1)


def wait_for_prediction(session):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while session.prediction is None:
        assert time.monotonic() < deadline, "nothing was foretold"
        time.sleep(0.02)
    return session.prediction


def test_the_outlook_is_what_the_engine_says(folder):
    with opened(folder) as session:
        answer_next(session, 2)
        told, engine = wait_for_prediction(session), session._answer_history.loop.prediction
        assert (told.bound_px, told.worth_going_on) == (engine.bound_px, engine.worth_going_on)
        assert [(after.answers - 2, after.predicted_px) for after in told.ahead] == list(engine.ahead_px.items())
        assert told.answers == session.state().errors[-1].answers == 2


def test_an_answer_makes_the_outlook_unknown_until_that_is_told_anew(folder):
    with opened(folder) as session:
        before = wait_for_prediction(session)
        told = threading.Event()
        session._precomputation._on_prediction = told.set
        answer_next(session)
        assert session.prediction is None
        assert told.wait(PATIENCE_SECONDS)
        assert session.prediction is not None
        assert session.prediction != before


def test_an_answer_that_comes_while_it_is_foretold_does_not_wait_for_the_rest(folder, monkeypatch):
    supposed, suppose = [], ExpectedGain.suppose

    def slow(expected_gain, n):
        supposed.append(n)
        time.sleep(0.05)
        return suppose(expected_gain, n)

    monkeypatch.setattr(ExpectedGain, "suppose", slow)
    with opened(folder) as session:
        question = session.question()
        while not supposed:
            time.sleep(0.005)
        give(session, question.i, question.j, "no")
        assert len(supposed) < 10


def test_the_target_is_met_by_the_bound_and_not_by_the_error(folder):
    with opened(folder) as session:
        error, bound = session.state().predicted_px, wait_for_prediction(session).bound_px
    for target, met in ((0.5 * (error + bound), False), (1.01 * bound, True)):
        with opened(folder, target_px=target) as session:
            state = session.state()
            assert (state.target_met, state.stopped is not None) == (met, met)


def test_without_a_target_none_is_met(folder):
    with opened(folder) as session:
        assert not session.state().target_met


def test_what_a_yes_would_remove_is_what_the_question_was_chosen_for(folder):
    with opened(folder) as session:
        question, loop = session.question(), session._answer_history.loop
        left = 1.0 - loop.best.reasons["drop_px2"] / loop.prediction.expected_gain.squared_error
        forecast = session.forecast(question.i, question.j)
        removed = (1.0 - left) * (forecast.now_px**2 - loop.prediction.irreducible_px**2)
        assert forecast.after_yes_px == pytest.approx((forecast.now_px**2 - removed) ** 0.5, rel=1e-6)


def test_a_yes_about_an_answered_pair_removes_nothing(folder):
    with opened(folder) as session:
        forecast = session.forecast(3, 4)
        assert forecast.after_yes_px == forecast.now_px


def test_landmarks_that_are_drawn_are_computed_before_they_are_confirmed(folder):
    with opened(folder) as session:
        question = session.question()
        sheet = marks(question.i, question.j)
        session.check(CheckLandmarks(i=question.i, j=question.j, landmarks=sheet))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(verdict == "yes" for _, _, verdict, _ in session._precomputation.states):
            assert time.monotonic() < deadline, "nothing was foreseen"
            time.sleep(0.02)
        foreseen = next(state for (*_, verdict, _), state in session._precomputation.states.items() if verdict == "yes")
        give(session, question.i, question.j, "yes", sheet)
        assert session._answer_history.loop is foreseen
