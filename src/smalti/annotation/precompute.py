"""Work done while a person looks at a question: the states after each possible answer, and the value of more answers.

What many would bring takes a while, and is computed in pieces between which others have the engine.
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
from smalti.annotation.answer_history import Hypothetical, Moment, name_of
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
"""Nothing is computed ahead until the page has asked for nothing that long: it would wait for the step."""


class Precomputation:
    """Computes ahead in a thread of its own, step by step, and gives up when the question is answered.

    What is foreseen is the same function of the same answers: whether it was ready in time changes no result.
    """

    def __init__(
        self, engine: threading.RLock, prefetch: Callable[[Pair], None], on_prediction: Callable[[], None]
    ) -> None:
        """`engine` is held during every step; `prefetch` is told which pairs may be asked next.

        `on_outlook` is called as soon as it is known what further answers would bring.
        """
        self._engine = engine
        self._prefetch = prefetch
        self._on_prediction = on_prediction
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foresight")
        self._moment: Moment | None = None
        self._asked = time.monotonic()
        self.states: dict[Hypothetical, AnyLoop] = {}
        # Of its own: what is drawn is not to wait for what is foretold.
        self._drawing = ThreadPoolExecutor(1, thread_name_prefix="drawing")
        self._drawn: Answer | None = None
        self._predicted: tuple[Moment, Prediction] | None = None

    def look_ahead(self, moment: Moment) -> None:
        """Begin to compute what follows on a state; what followed on others is forgotten."""
        self._moment = moment
        self._drawn = None
        self.states = {}
        self._predicted = None
        self.wait()
        self._thread.submit(self._run, moment)

    def prediction(self, moment: Moment) -> Prediction | None:
        """Return what further answers would bring to a state, None where that is not known yet; at once."""
        predicted = self._predicted
        return predicted[1] if predicted is not None and predicted[0] is moment else None

    def wait(self) -> None:
        """Let somebody else compute first, who needs it now."""
        self._asked = time.monotonic()

    def foresee(self, moment: Moment, answer: Answer, after: AnyLoop) -> None:
        """Begin to compute the state after an answer that a person is about to give, instead of any before it."""
        self._drawn = answer
        self._drawing.submit(self._foresee_drawn, moment, answer, after)

    def close(self) -> None:
        """Give up."""
        self._moment = None
        for thread in (self._drawing, self._thread):
            thread.shutdown(wait=True, cancel_futures=True)

    def _run(self, moment: Moment) -> None:
        # A supposed answer that the engine refuses is not foreseen: it will be refused in earnest, and said.
        for verdict in (Verdict.NO, Verdict.UNSURE):
            with suppress(SmaltiError, _OvertakenError):
                best = self._step(moment, lambda: moment.loop.best)
                if best is not None:
                    answer = Answer(best.pair, verdict, author=Author.PERSON)
                    self._foresee(moment, answer, moment.loop.record(answer))
        with suppress(SmaltiError, _OvertakenError):
            self._predict(moment)

    def _foresee_drawn(self, moment: Moment, answer: Answer, after: AnyLoop) -> None:
        with suppress(SmaltiError, _OvertakenError):
            self._foresee(moment, answer, after)

    def _foresee(self, moment: Moment, answer: Answer, after: AnyLoop) -> None:
        # Piece by piece: whoever asks meanwhile waits for one piece only.
        for compute in steps_to_question(after):
            if answer.landmarks is not None and self._drawn is not answer:
                raise _OvertakenError
            self._step(moment, compute)
        if after.best is not None:
            self._prefetch(after.best.pair)
        self._step(moment, lambda: after.predicted_error_px)
        # Of several yes that were drawn one after the other, the last: each is large.
        kept = {name: state for name, state in self.states.items() if name[2] is not answer.verdict}
        self.states = {**kept, name_of(moment.key, answer): after}

    def _predict(self, moment: Moment) -> None:
        """Look many answers ahead; last, because no question waits for it. The paper's method does not."""
        loop = moment.loop
        if isinstance(loop, PaperLoop):
            return
        self._step(moment, lambda: loop.prediction)
        prediction = self._step(moment, lambda: describe_prediction(loop, lambda: self._pause(moment)))
        self._predicted = moment, prediction
        self._on_prediction()

    def _step(self, moment: Moment, compute: Callable[[], T]) -> T:
        """Compute something as soon as nobody needs the engine; raise where the question was answered meanwhile."""
        self._await_idle(moment)
        with self._engine:
            self._check(moment)
            return compute()

    def _pause(self, moment: Moment) -> None:
        """Leave the engine, in the middle of a step, to whoever needs it."""
        self._engine.release()
        try:
            self._await_idle(moment)
        finally:
            self._engine.acquire()
        self._check(moment)

    def _await_idle(self, moment: Moment) -> None:
        while self._moment is moment and time.monotonic() - self._asked < IDLE_SECONDS:
            time.sleep(0.05)

    def _check(self, moment: Moment) -> None:
        if self._moment is not moment:
            raise _OvertakenError


class _OvertakenError(Exception):
    """The question was answered before all was foreseen."""


FARTHEST = 20
"""Answers that are looked ahead."""

BOUND_LATER = 1.3
"""Times the error, its bound once a few answers have closed loops; before, one drift decides, and may be any."""


def describe_prediction(loop: ActiveLoop, pause: Callable[[], None]) -> Prediction:
    """Say what further answers would bring; `pause` is called after each that is supposed."""
    prediction, given = loop.prediction, len(loop.answers)
    ahead = prediction.predict_ahead(pause)
    return Prediction(
        answers=given,
        bound_px=prediction.bound_px,
        ahead=[ErrorAfter(answers=given + more, predicted_px=px) for more, px in ahead.items()],
        worth_going_on=prediction.is_progress(ahead),
    )


def error_after_yes_px(loop: ActiveLoop, pair: Pair) -> float:
    """Return the predicted error after a yes about any pair; as now where it would join two mosaics."""
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
    """Yield what the error is below nine times of ten, now and after every one of the next answers."""
    prediction = loop.prediction
    yield prediction.bound_px
    if prediction.expected_gain is None:
        return
    later = min(prediction.bound_px / max(prediction.error_px, TINY), BOUND_LATER)
    for *_, after in Smalti().choose(prediction.expected_gain, FARTHEST):
        yield later * prediction.error_left_px(after.squared_error)
