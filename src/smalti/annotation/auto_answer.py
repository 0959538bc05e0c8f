"""The matcher beside a person: its answer on any pair, and the questions that it answers by itself."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from smalti.agents.agent import Agent, ask
from smalti.annotation.answer_history import AnswerHistory
from smalti.annotation.landmark_messages import write_matched
from smalti.annotation.messages import Proposal
from smalti.annotation.session_state import AnyLoop, Surprise, surprise_of
from smalti.project.answer_store import Store
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Pair, Verdict

REMEMBERED = 256


class AutoAnswerer:
    """Asks the matcher, one pair at a time, and remembers its answers."""

    def __init__(self, agent: Agent, answer_history: AnswerHistory, engine: threading.RLock) -> None:
        """`engine` is locked while the answer history is read or changed."""
        self._agent = agent
        self._answer_history = answer_history
        self._engine = engine
        self._matching = threading.Lock()
        self._answers: OrderedDict[Pair, tuple[Answer, float]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self.answered = 0

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

    def work(self, store: Store, on_answer: Callable[[], None], on_end: Callable[[], None]) -> None:
        """Start a thread that answers the best questions until one needs a person. At most one thread runs."""
        if self.is_working or self._stopping.is_set():
            return
        self.answered = 0

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
        """Answer the best question unless it needs a person. Return whether it was answered."""
        with self._engine:
            best, stop = self._answer_history.loop.best, self._answer_history.loop.stop_reason()
            if self._stopping.is_set() or best is None or stop is not None:
                return False
            pair = self._answer_history.outer(best.pair)
            answer, seconds = self._ask(pair)
            if not self._is_sure(answer):
                return False
            store.keep_answer(AnswerEntry(answer, Role.LOOP, seconds))
            self._answer_history.take_up()
            self.answered += 1
            return True

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
            expected = self._answer_history.loop.expect(self._answer_history.inner(pair))
        with self._matching:
            if pair not in self._answers:
                began = time.perf_counter()
                answer = ask(self._agent, pair, expected)
                self._answers[pair] = answer, time.perf_counter() - began
                if len(self._answers) > REMEMBERED:
                    self._answers.popitem(last=False)
            return self._answers[pair]


SURE_LANDMARKS = 30
"""Number of consistent matches from which on the paper's matcher is accepted."""

DOUBTFUL_OVERLAP = 0.15
"""From this probability of overlap on, a matcher that finds nothing may have missed an overlap.

Suppose it misses every third overlap. At this probability one no of twenty is then wrong, and fewer below it.
"""


def is_sure(answer: Answer, loop: AnyLoop, earlier: Sequence[Surprise]) -> bool:
    """Tell whether the matcher's answer can be accepted without a person.

    A yes needs many landmarks and must agree with the mosaic. A no must not be surprising. A matcher that failed has
    said that it cannot tell. `earlier` are the surprises of the answers so far.
    """
    if answer.verdict is Verdict.UNSURE:
        return False
    if answer.landmarks is None:
        return loop.likely(answer.pair).reasons["overlap"] < DOUBTFUL_OVERLAP
    if len(answer.landmarks) < SURE_LANDMARKS:
        return False
    return not surprise_of(loop, answer.landmarks, answer.author).is_more_than(earlier)
