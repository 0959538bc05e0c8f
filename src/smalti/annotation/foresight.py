"""Work done while a person looks at a question: what would come of each answer, and of many more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from smalti.annotation.course import Foreseen, Moment
from smalti.annotation.messages import Outlook
from smalti.annotation.outlook import describe_outlook
from smalti.annotation.supposition import count_answers, suppose_yes
from smalti.errors import SmaltiError
from smalti.loop import ActiveLoop
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
        self.states: dict[Foreseen, ActiveLoop] = {}
        self._more: dict[str, tuple[int, bool]] = {}
        self._foretold: tuple[Moment, Outlook] | None = None

    def look_ahead(self, moment: Moment) -> None:
        """Begin to compute what follows on a state; what followed on others is forgotten."""
        self._moment = moment
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

    def count(self, moment: Moment, target_px: float) -> tuple[int, bool] | None:
        """Return how many answers the target is away and whether even so many are not enough; None if overtaken."""
        if moment.key not in self._more:

            def step(loop: ActiveLoop, pair: Pair) -> ActiveLoop | None:
                with self._engine:
                    if self._moment is not moment:
                        return None
                    after = loop.record(suppose_yes(loop, pair))
                    _ = after.error_bound_px, after.best
                    return after

            found = count_answers(moment.loop, target_px, step)
            if self._moment is not moment:
                return None
            self._more = {moment.key: found}
        return self._more[moment.key]

    def close(self) -> None:
        """Give up."""
        self._moment = None
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _run(self, moment: Moment) -> None:
        # A supposed answer that the engine refuses is not foreseen: it will be refused in earnest, and said.
        for verdict in (Verdict.NO, Verdict.UNSURE, Verdict.YES):
            with suppress(SmaltiError, _OvertakenError):
                self._foresee(moment, verdict)
        with suppress(SmaltiError, _OvertakenError):
            self._foretell(moment)

    def _foresee(self, moment: Moment, verdict: Verdict) -> None:
        best = self._step(moment, lambda: moment.loop.best)
        if best is None:
            return
        after = self._step(moment, lambda: moment.loop.record(_suppose(moment.loop, best.pair, verdict)))
        # Piece by piece: whoever asks meanwhile waits for one piece only.
        self._step(moment, lambda: after.external)
        self._step(moment, lambda: after.view.looks)
        self._step(moment, lambda: after.covariance.stretches)
        following = self._step(moment, lambda: after.best)
        if following is not None:
            self._prefetch(following.pair)
        self._step(moment, lambda: after.predicted_error_px)
        if verdict is not Verdict.YES:
            self.states[(moment.key, best.pair, verdict)] = after

    def _foretell(self, moment: Moment) -> None:
        """Look many answers ahead; last, because no question waits for it."""
        self._step(moment, lambda: moment.loop.outlook)
        outlook = self._step(moment, lambda: describe_outlook(moment.loop, lambda: self._pause(moment)))
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


def _suppose(loop: ActiveLoop, pair: Pair, verdict: Verdict) -> Answer:
    return suppose_yes(loop, pair) if verdict is Verdict.YES else Answer(pair, verdict, author=Author.PERSON)
