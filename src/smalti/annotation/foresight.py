"""Work done while a person looks at a question: what would come of each answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from smalti.annotation.course import Foreseen, Moment
from smalti.annotation.supposition import count_answers, suppose_yes
from smalti.errors import SmaltiError
from smalti.loop import ActiveLoop
from smalti.records import Answer, Author, Pair, Verdict


class Foresight:
    """Computes ahead in a thread of its own, step by step, and gives up when the question is answered.

    What is foreseen is the same function of the same answers: whether it was ready in time changes no result.
    """

    def __init__(self, engine: threading.RLock, prefetch: Callable[[Pair], None]) -> None:
        """`engine` is held during every step; `prefetch` is told which pairs may be asked next."""
        self._engine = engine
        self._prefetch = prefetch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foresight")
        self._moment: Moment | None = None
        self.states: dict[Foreseen, ActiveLoop] = {}
        self._more: dict[str, tuple[int, bool]] = {}

    def look_ahead(self, moment: Moment) -> None:
        """Begin to compute what follows on a state; what followed on others is forgotten."""
        self._moment = moment
        self.states = {}
        self._thread.submit(self._run, moment)

    def count(self, moment: Moment, target_px: float) -> tuple[int, bool] | None:
        """Return how many answers the target is away and whether even so many are not enough; None if overtaken."""
        if moment.key not in self._more:

            def step(loop: ActiveLoop, pair: Pair) -> ActiveLoop | None:
                with self._engine:
                    if self._moment is not moment:
                        return None
                    after = loop.record(suppose_yes(loop, pair))
                    _ = after.predicted_error_px, after.best
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
            try:
                with self._engine:
                    if self._moment is not moment or moment.loop.best is None:
                        return
                    pair = moment.loop.best.pair
                    if verdict is Verdict.YES:
                        answer = suppose_yes(moment.loop, pair)
                    else:
                        answer = Answer(pair, verdict, author=Author.PERSON)
                    after = moment.loop.record(answer)
                    _ = after.predicted_error_px
                    if verdict is not Verdict.YES:
                        self.states[(moment.key, pair, verdict)] = after
                    best = after.best
                if best is not None:
                    self._prefetch(best.pair)
            except SmaltiError:
                continue
