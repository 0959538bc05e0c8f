"""What all requests of a session share: its parts, the lock of the engine, and the question that is asked now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from smalti.annotation import messages as say
from smalti.annotation.answer_history import AnswerHistory
from smalti.annotation.auto_answer import AutoAnswerer
from smalti.annotation.known_pairs import KnownPair, KnownPairs, Measures
from smalti.annotation.landmark_messages import person_named, write_given
from smalti.annotation.leases import Leases
from smalti.annotation.opening import Opened
from smalti.annotation.overview import describe_people, describe_state, make_question
from smalti.annotation.page_pictures import Pictures
from smalti.annotation.pair_maps import PairMatrix
from smalti.annotation.precompute import Precomputation
from smalti.progress import Progress
from smalti.project.entries import Role
from smalti.records import Pair

NOT_MEASURED = Measures()


class OpenSession:
    """A session once it is open: its state and its next question."""

    def __init__(
        self,
        opened: Opened,
        queue: say.Queue,
        progress: Progress,
        on_change: Callable[[], None] | None = None,
        measures: Measures = NOT_MEASURED,
    ) -> None:
        """Go to the state of the stored answers. `on_change` is called whenever the state has changed."""
        self.project = opened.project
        self._opened = opened
        self._queue = queue
        self._on_change = on_change if on_change is not None else lambda: None
        self._engine = threading.RLock()
        self._answer_history = AnswerHistory(opened, progress)
        # The matcher reads frames too, and only one thread at a time may read a source.
        self._shown = opened.again()
        self._pictures = Pictures(self._shown, self._answer_history.numbers.used)
        self._pictures.prepare(progress)
        preparation = opened.preparation
        self._auto_answerer = AutoAnswerer(preparation.agent, preparation.by_pixels, self._answer_history, self._engine)
        self._leases = Leases()
        self._measures = measures
        self._known_pairs = KnownPairs(measures.known_share, opened.settings.seed)
        self._people: dict[str, str] = {}  # who answers in each page
        self._measured: tuple[int, list[say.MeasuredPerson]] | None = None  # of the latest revision
        self._precomputation = Precomputation(self._engine, self._prefetch, self._on_change)
        # Compute what the first page will ask for.
        _ = self._answer_history.loop.best
        self._matrices: dict[tuple[say.MapKind, int], PairMatrix] = {}  # of the latest revision
        self._go_to_next()

    @property
    def revision(self) -> int:
        """Grows with every entry of the log."""
        return self._answer_history.history.revision

    @property
    def prediction(self) -> say.Prediction | None:
        """The prediction over further answers; None until it is known. `on_change` is called then."""
        return self._precomputation.prediction(self._answer_history.state_history.now)

    @property
    def is_working(self) -> bool:
        """Whether the matcher is answering questions now."""
        return self._auto_answerer.is_working

    def state(self) -> say.State:
        """Return the numbers of the state."""
        with self._engine_first():
            auto_answerer, settings = self._auto_answerer, self._opened.settings
            working = say.Progress(name="the matcher answers", done=auto_answerer.answered, total=0)
            return describe_state(
                self._answer_history,
                self.project,
                queue=self._queue,
                target_px=settings.target_px,
                working=working if auto_answerer.is_working else None,
                stop=auto_answerer.stopped,
                sheets=self._pictures.sheets,
                people=self._measured_people(),
            )

    def question(self, page: str = "", person: str | None = None) -> say.Question | None:
        """Return the question with the largest expected gain for its cost, about the frames `i` and `j`.

        Several pages are asked different questions. In the queue of doubtful pairs it is the one about which the
        matcher could not tell just now. None while the matcher is at work, or where no question is left.

        A share of the questions may be about known pairs, other ones for every `person`; None: as last in this page.
        """
        with self._engine_first():
            if person is not None:
                self._people[page] = person_named(person)
            inner = None if self._auto_answerer.is_working else self._asked_pair(page)
            known = None if inner is None else self._known_pair(page)
            if known is not None:
                self._leases.take(page, None)
                return self._ask_known(known)
            self._leases.take(page, inner)
            return None if inner is None else self._ask(inner, page)

    def leave(self, page: str) -> None:
        """Give the question of a page that was closed back."""
        self._leases.take(page, None)
        self._people.pop(page, None)

    def look(self, i: int, j: int, page: str = "") -> say.Question:
        """Return any pair as a question."""
        with self._engine_first():
            return self._ask(self._answer_history.inner(Pair(i, j)), page)

    def close(self) -> None:
        """Stop precomputation, and close the files."""
        self._auto_answerer.stop()
        self._precomputation.close()
        self._pictures.close()
        self._answer_history.keep_predictions()
        self._shown.close()
        self.project.close()

    @contextmanager
    def _engine_first(self) -> Iterator[None]:
        """Lock the engine before precomputation gets it."""
        self._precomputation.wait()
        with self._engine:
            yield

    def _asked_pair(self, page: str = "") -> Pair | None:
        """Return the pair, in engine numbers, that the person at a page is asked about now."""
        entries, loop = self._answer_history.history.entries, self._answer_history.loop
        latest = entries[-1].answer if entries and self._queue is say.Queue.DOUBTFUL else None
        if latest is not None and latest.role is Role.LOOP and latest.answer.is_failure:
            return self._answer_history.inner(latest.answer.pair)
        return self._leases.free(loop, page)

    def _ask(self, inner: Pair, page: str) -> say.Question:
        answer_history = self._answer_history
        known = answer_history.history.answer_of(answer_history.outer(inner))
        given = None if known is None else write_given(known)
        return make_question(
            answer_history.loop,
            inner,
            answer_history.numbers,
            answer_history.frames,
            revision=self.revision,
            suggested=inner == self._asked_pair(page),
            answer=given,
        )

    def _measured_people(self) -> list[say.MeasuredPerson]:
        if self._measured is None or self._measured[0] != self.revision:
            self._measured = self.revision, describe_people(self._answer_history, self.project)
        return self._measured[1]

    def _known_pair(self, page: str) -> KnownPair | None:
        return self._known_pairs.next(self._answer_history, self._people.get(page, ""))

    def _ask_known(self, known: KnownPair) -> say.Question:
        """Return a known pair as a question like any other, without its answer."""
        answer_history = self._answer_history
        return make_question(
            known.before,
            known.pair,
            answer_history.numbers,
            answer_history.frames,
            revision=self.revision,
            suggested=True,
            answer=None,
            is_known=True,
        )

    def _go_to_next(self, *, matcher_first: bool = True) -> None:
        """Go to the next question. The matcher answers if it may; otherwise precompute the states that may follow."""
        if self._queue is say.Queue.DOUBTFUL and matcher_first:
            self._auto_answerer.work(self.project.store, self._on_change, self._after_auto_answer)
        else:
            self._precomputation.look_ahead(self._answer_history.state_history.now, self._asked_pair())

    def _after_auto_answer(self) -> None:
        self._precomputation.look_ahead(self._answer_history.state_history.now, self._asked_pair())
        self._on_change()

    def _prefetch(self, inner: Pair) -> None:
        outer = self._answer_history.outer(inner)
        self._pictures.prefetch((outer.i, outer.j))
