"""The matcher beside a person: its answer on any pair, and the questions that it answers by itself."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from smalti.active_loop import ActiveLoop
from smalti.agents.agent import Agent, ExpectingAgent, ask, judge
from smalti.annotation.answer_history import AnswerHistory
from smalti.annotation.landmark_messages import write_matched
from smalti.annotation.messages import Origin, Proposal
from smalti.annotation.session_state import AnyLoop, Surprise, surprise_of
from smalti.loop_setup import StopReason
from smalti.project.answer_store import Store
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Expectation, Homographies, Pair, Verdict

REMEMBERED = 256


class AutoAnswerer:
    """Asks the matcher, one pair at a time, and remembers its answers."""

    def __init__(
        self, agent: Agent, by_pixels: ExpectingAgent, answer_history: AnswerHistory, engine: threading.RLock
    ) -> None:
        """`engine` is locked while the answer history is read or changed."""
        self._agent, self._by_pixels = agent, by_pixels
        self._answer_history = answer_history
        self._engine = engine
        self._matching = threading.Lock()
        self._answers: OrderedDict[Pair, tuple[Answer, float]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self.answered = 0
        self.stopped: StopReason | None = None  # why it answers no more, unless a question needs a person

    @property
    def is_working(self) -> bool:
        """Whether the matcher is answering questions now."""
        return self._thread is not None

    def propose(self, pair: Pair) -> Proposal:
        """Return the matcher's answer on a pair in source numbers, and whether it is sure."""
        answer, _ = self._ask(pair)
        with self._engine:
            sure = self._is_sure(answer)
        shown = [] if answer.landmarks is None else write_matched(answer.landmarks)
        return Proposal(i=pair.i, j=pair.j, verdict=answer.verdict, landmarks=shown, reason=answer.reason, sure=sure)

    def align(self, pair: Pair, i_from_j: Homographies, sigma_px: float) -> Proposal:
        """Return the answer of all pixels on a pair in source numbers, near a map (3, 3) that a person has found."""
        with self._matching:
            answer = self._by_pixels.answer_expecting(pair, Expectation(i_from_j, sigma_px))
        shown = [] if answer.landmarks is None else write_matched(answer.landmarks, Origin.ALIGNED)
        return Proposal(i=pair.i, j=pair.j, verdict=answer.verdict, landmarks=shown, reason=answer.reason, sure=True)

    def work(self, store: Store, on_answer: Callable[[], None], on_end: Callable[[], None]) -> None:
        """Start a thread that answers the best questions until one needs a person. At most one thread runs."""
        if self.is_working or self._stopping.is_set():
            return
        self.answered, self.stopped = 0, None

        def run() -> None:
            while self._answer_best(store):
                on_answer()
            with self._engine:
                self._thread = None
                if not self._stopping.is_set():
                    on_end()

        self._thread = threading.Thread(target=run, name="auto-answer")
        self._thread.start()

    def wait(self) -> None:
        """Wait until the matcher answers no more questions."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def stop(self) -> None:
        """End the work after the current answer."""
        self._stopping.set()
        self.wait()

    def _answer_best(self, store: Store) -> bool:
        """Ask the matcher the best question, unless it needs a person. Return whether the next one does not either.

        Where the matcher cannot tell, this is kept too: it says something about the matcher and about the overlap.
        """
        with self._engine:
            loop = self._answer_history.loop
            if self._stopping.is_set() or loop.best is None or loop.best.pair in loop.failed_pairs:
                return False
            self.stopped = _why_stop(loop)
            if self.stopped is not None:
                return False
            answer, seconds = self._ask(self._answer_history.outer(loop.best.pair))
            if answer.landmarks is not None and not self._is_sure(answer):
                return False
            store.keep_answer(AnswerEntry(answer, Role.LOOP, seconds))
            self._answer_history.take_up()
            self.answered += 1
            return not answer.is_failure

    def _is_sure(self, answer: Answer) -> bool:
        answer_history = self._answer_history
        return is_sure(
            answer.of_pair(answer_history.inner(answer.pair)),
            answer_history.loop,
            answer_history.state_history.surprises(),
        )

    def _ask(self, pair: Pair) -> tuple[Answer, float]:
        """Return the matcher's answer, and the seconds it took."""
        with self._engine:
            loop, inner = self._answer_history.loop, self._answer_history.inner(pair)
            expected, overlap = loop.expect(inner), loop.likely(inner).reasons["overlap"]
        with self._matching:
            if pair not in self._answers:
                began = time.perf_counter()
                answer = ask(self._agent, pair, expected)
                self._answers[pair] = answer, time.perf_counter() - began
                if len(self._answers) > REMEMBERED:
                    self._answers.popitem(last=False)
            answer, seconds = self._answers[pair]
        return judge(answer, overlap), seconds


def _why_stop(loop: AnyLoop) -> StopReason | None:
    """Return why the matcher answers no more: as in a build, without a target it stops when it is not worth it."""
    stop = loop.stop_reason()
    if stop is None and isinstance(loop, ActiveLoop) and loop.stop_rule.target_px is None:
        return loop.why_enough()
    return stop


SURE_LANDMARKS = 30
"""Number of consistent matches from which on the paper's matcher is accepted."""


def is_sure(answer: Answer, loop: AnyLoop, earlier: Sequence[Surprise]) -> bool:
    """Tell whether the matcher's answer can be accepted without a person.

    A yes needs many landmarks and must agree with the mosaic. A no is sure; it stands for a failure where an overlap is
    improbable. `earlier` are the surprises of the answers so far.
    """
    if answer.landmarks is None:
        return answer.verdict is Verdict.NO
    if len(answer.landmarks) < SURE_LANDMARKS:
        return False
    return not surprise_of(loop, answer.landmarks, answer.author).is_more_than(earlier)
