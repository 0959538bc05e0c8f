"""Work done while a person looks at a question: what would come of each answer, and of many more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from smalti.annotation.course import Foreseen, Moment, name_of
from smalti.annotation.messages import Outlook
from smalti.annotation.outlook import describe_outlook
from smalti.annotation.states import AnyLoop, steps_to_question
from smalti.errors import SmaltiError
from smalti.paper.paper_loop import PaperLoop
from smalti.records import Answer, Author, Pair, Verdict

T = TypeVar("T")

CALM_SECONDS = 0.7
"""Nothing is computed ahead until the page has asked for nothing that long: it would wait for the step."""


class Foresight:
    """Computes ahead in a thread of its own, step by step, and gives up when the question is answered.

    What is foreseen is the same function of the same answers: whether it was ready in time changes no result.
    """

    def __init__(
        self, engine: threading.RLock, prefetch: Callable[[Pair], None], on_outlook: Callable[[], None]
    ) -> None:
        """`engine` is held during every step; `prefetch` is told which pairs may be asked next.

        `on_outlook` is called as soon as it is known what further answers would bring.
        """
        self._engine = engine
        self._prefetch = prefetch
        self._on_outlook = on_outlook
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foresight")
        self._moment: Moment | None = None
        self._asked = time.monotonic()
        self.states: dict[Foreseen, AnyLoop] = {}
        # Of its own: what is drawn is not to wait for what is foretold.
        self._drawing = ThreadPoolExecutor(1, thread_name_prefix="drawing")
        self._drawn: Answer | None = None
        self._foretold: tuple[Moment, Outlook] | None = None

    def look_ahead(self, moment: Moment) -> None:
        """Begin to compute what follows on a state; what followed on others is forgotten."""
        self._moment = moment
        self._drawn = None
        self.states = {}
        self._foretold = None
        self.wait()
        self._thread.submit(self._run, moment)

    def outlook(self, moment: Moment) -> Outlook | None:
        """Return what further answers would bring to a state, None where that is not known yet; at once."""
        foretold = self._foretold
        return foretold[1] if foretold is not None and foretold[0] is moment else None

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
            self._foretell(moment)

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

    def _foretell(self, moment: Moment) -> None:
        """Look many answers ahead; last, because no question waits for it. The paper's method does not."""
        loop = moment.loop
        if isinstance(loop, PaperLoop):
            return
        self._step(moment, lambda: loop.outlook)
        outlook = self._step(moment, lambda: describe_outlook(loop, lambda: self._pause(moment)))
        self._foretold = moment, outlook
        self._on_outlook()

    def _step(self, moment: Moment, compute: Callable[[], T]) -> T:
        """Compute something as soon as nobody needs the engine; raise where the question was answered meanwhile."""
        self._await_calm(moment)
        with self._engine:
            self._check(moment)
            return compute()

    def _pause(self, moment: Moment) -> None:
        """Leave the engine, in the middle of a step, to whoever needs it."""
        self._engine.release()
        try:
            self._await_calm(moment)
        finally:
            self._engine.acquire()
        self._check(moment)

    def _await_calm(self, moment: Moment) -> None:
        while self._moment is moment and time.monotonic() - self._asked < CALM_SECONDS:
            time.sleep(0.05)

    def _check(self, moment: Moment) -> None:
        if self._moment is not moment:
            raise _OvertakenError


class _OvertakenError(Exception):
    """The question was answered before all was foreseen."""
