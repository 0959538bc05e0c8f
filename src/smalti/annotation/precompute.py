"""Work done while a person looks at a question: the states after possible answers, and the predicted error.

The prediction over many answers takes a while. It is computed in pieces, between which others may use the engine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import numpy as np

from smalti.active_loop import ActiveLoop
from smalti.annotation.answer_history import AnswerState, Hypothetical, name_of
from smalti.annotation.messages import ErrorAfter, Prediction
from smalti.annotation.session_state import AnyLoop, steps_to_question
from smalti.errors import SmaltiError
from smalti.paper.paper_loop import PaperLoop
from smalti.records import Answer, Author, Pair, Verdict
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.expected_gain import ExpectedGain
from smalti.suggestion.pair_survey import SurveyedPairs
from smalti.suggestion.predicted_error import TINY
from smalti.suggestion.strategy import Smalti

T = TypeVar("T")

IDLE_SECONDS = 0.7
"""Precomputation waits until the page has been silent for this long. Otherwise the page would wait for a step."""


class Precomputation:
    """Precomputes in its own thread, step by step, and stops when the question is answered.

    A precomputed state is the same function of the same answers, so whether it was ready in time changes no result.
    """

    def __init__(
        self, engine: threading.RLock, prefetch: Callable[[Pair], None], on_prediction: Callable[[], None]
    ) -> None:
        """`engine` is locked during every step. `prefetch` is called with pairs that may be asked next.

        `on_prediction` is called as soon as the prediction over further answers is known.
        """
        self._engine = engine
        self._prefetch = prefetch
        self._on_prediction = on_prediction
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="precompute")
        self._state: AnswerState | None = None
        self._asked = time.monotonic()
        self.states: dict[Hypothetical, AnyLoop] = {}
        # A thread of its own, so that a drawn answer does not wait for the prediction.
        self._drawing = ThreadPoolExecutor(1, thread_name_prefix="drawing")
        self._drawn: Answer | None = None
        self._predicted: tuple[AnswerState, Prediction] | None = None

    def look_ahead(self, answer_state: AnswerState, asked: Pair | None) -> None:
        """Begin to compute what follows a state with a question. Results for other states are dropped."""
        self._state = answer_state
        self._drawn = None
        self.states = {}
        self._predicted = None
        self.wait()
        self._thread.submit(self._run, answer_state, asked)

    def prediction(self, answer_state: AnswerState) -> Prediction | None:
        """Return the prediction for a state at once; None if it is not known yet."""
        predicted = self._predicted
        return predicted[1] if predicted is not None and predicted[0] is answer_state else None

    def wait(self) -> None:
        """Postpone precomputation, because somebody needs the engine now."""
        self._asked = time.monotonic()

    def precompute_answer(self, answer_state: AnswerState, answer: Answer, after: AnyLoop) -> None:
        """Begin to compute the state after an answer that a person is about to give. It replaces any earlier one."""
        self._drawn = answer
        self._drawing.submit(self._precompute_drawn, answer_state, answer, after)

    def close(self) -> None:
        """Stop, and end the threads."""
        self._state = None
        for thread in (self._drawing, self._thread):
            thread.shutdown(wait=True, cancel_futures=True)

    def _run(self, answer_state: AnswerState, asked: Pair | None) -> None:
        # A hypothetical answer that the engine refuses is not precomputed. The real answer will be refused with a
        # message.
        for verdict in (Verdict.NO, Verdict.UNSURE):
            with suppress(SmaltiError, _OvertakenError):
                if asked is not None:
                    answer = Answer(asked, verdict, author=Author.PERSON)
                    self._precompute_answer(answer_state, answer, answer_state.loop.record(answer))
        with suppress(SmaltiError, _OvertakenError):
            self._predict(answer_state)

    def _precompute_drawn(self, answer_state: AnswerState, answer: Answer, after: AnyLoop) -> None:
        with suppress(SmaltiError, _OvertakenError):
            self._precompute_answer(answer_state, answer, after)

    def _precompute_answer(self, answer_state: AnswerState, answer: Answer, after: AnyLoop) -> None:
        # In pieces: a request that comes meanwhile waits for one piece only.
        for compute in steps_to_question(after):
            if answer.landmarks is not None and self._drawn is not answer:
                raise _OvertakenError
            self._step(answer_state, compute)
        if after.best is not None:
            self._prefetch(after.best.pair)
        self._step(answer_state, lambda: after.predicted_error_px)
        # Keep only the latest of several drawn yes answers, because each state is large.
        kept = {name: state for name, state in self.states.items() if name[2] is not answer.verdict}
        self.states = {**kept, name_of(answer_state.key, answer): after}

    def _predict(self, answer_state: AnswerState) -> None:
        """Predict many answers ahead, last, because no question waits for it. The paper's method has no prediction."""
        loop = answer_state.loop
        if isinstance(loop, PaperLoop):
            return
        self._step(answer_state, lambda: loop.prediction)
        prediction = self._step(answer_state, lambda: describe_prediction(loop, lambda: self._pause(answer_state)))
        self._predicted = answer_state, prediction
        self._on_prediction()

    def _step(self, answer_state: AnswerState, compute: Callable[[], T]) -> T:
        """Compute something as soon as nobody needs the engine. Raise if the question was answered meanwhile."""
        self._await_idle(answer_state)
        with self._engine:
            self._check(answer_state)
            return compute()

    def _pause(self, answer_state: AnswerState) -> None:
        """Release the engine, in the middle of a step, to whoever needs it."""
        self._engine.release()
        try:
            self._await_idle(answer_state)
        finally:
            self._engine.acquire()
        self._check(answer_state)

    def _await_idle(self, answer_state: AnswerState) -> None:
        while self._state is answer_state and time.monotonic() - self._asked < IDLE_SECONDS:
            time.sleep(0.05)

    def _check(self, answer_state: AnswerState) -> None:
        if self._state is not answer_state:
            raise _OvertakenError


class _OvertakenError(Exception):
    """The question was answered before everything was precomputed."""


FARTHEST = 20
"""Answers to predict ahead."""

BOUND_LATER = 1.3
"""Ratio of the bound to the error once a few answers have closed loops. Before, a single drift determines the error."""


def describe_prediction(loop: ActiveLoop, pause: Callable[[], None]) -> Prediction:
    """Return the prediction as a message. `pause` is called after each hypothetical answer."""
    prediction, given = loop.prediction, len(loop.answers)
    ahead = prediction.predict_ahead(pause)
    return Prediction(
        answers=given,
        bound_px=prediction.bound_px,
        ahead=[ErrorAfter(answers=given + more, predicted_px=px) for more, px in ahead.items()],
        worth_going_on=prediction.is_progress(ahead),
    )


def error_after_yes_px(loop: ActiveLoop, pair: Pair) -> float:
    """Return the predicted error after a yes on any pair. It does not change for a yes that would join two mosaics."""
    now, view = loop.predicted_error_px, loop.view
    pairs = np.array([[pair.i, pair.j]])
    candidates = CandidatePairs.of(view)
    if loop.is_settled(pair) or not view.are_joined(pairs)[0] or not candidates.weight.any():
        return now
    surveyed = SurveyedPairs.of(view, pairs)
    expected_gain = ExpectedGain.of(
        view.estimate, view.covariance, surveyed, np.ones(1), candidates.error_pairs, candidates.weight
    )
    left = 1.0 - float(expected_gain.gains[0]) / max(expected_gain.squared_error, TINY)
    known = loop.prediction.expected_gain
    return now if known is None else loop.prediction.error_left_px(min(max(left, 0.0), 1.0) * known.squared_error)


def bounds_ahead_px(loop: ActiveLoop) -> Iterator[float]:
    """Yield the bound of the error (probability 0.9), now and after each of the next answers."""
    prediction = loop.prediction
    yield prediction.bound_px
    if prediction.expected_gain is None:
        return
    later = min(prediction.bound_px / max(prediction.error_px, TINY), BOUND_LATER)
    for *_, after in Smalti().choose(prediction.expected_gain, FARTHEST):
        yield later * prediction.error_left_px(after.squared_error)
