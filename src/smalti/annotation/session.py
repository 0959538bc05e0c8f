"""A session with people about a project: one method for each request of the page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

import numpy as np

from smalti.active_loop import ActiveLoop
from smalti.agents.matcher import Matcher
from smalti.annotation import messages as say
from smalti.annotation.answer_history import AnswerHistory
from smalti.annotation.auto_answer import AutoAnswerer
from smalti.annotation.contradiction import find_contradiction, in_words
from smalti.annotation.curve_messages import trace_both
from smalti.annotation.exports import export
from smalti.annotation.finished_mosaic import describe_finished, find_result, read_tile, write_views
from smalti.annotation.landmark_messages import read_answer, read_landmarks, snap_landmark, write_given
from smalti.annotation.leases import Leases
from smalti.annotation.opening import Opened, open_project
from smalti.annotation.overview import (
    describe_act,
    describe_answer,
    describe_mosaic,
    describe_state,
    largest_part,
    list_answers,
    make_question,
    say_learned,
)
from smalti.annotation.page_pictures import Pictures
from smalti.annotation.pair_maps import PairMatrix, matrix_of, reduce
from smalti.annotation.precompute import Precomputation, bounds_ahead_px, error_after_yes_px
from smalti.annotation.session_state import AnyLoop
from smalti.building.build import Location
from smalti.building.build_settings import BuildSettings
from smalti.building.delivery import deliver
from smalti.errors import ChangedMeanwhileError, LandmarkError, UnknownNameError, UsageError
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import FamilyName
from smalti.notebook_html import draw_card, say_answers, say_error
from smalti.progress import Progress, Silence, progress_of
from smalti.project.entries import AnswerEntry, Role
from smalti.project.facts import Method, Registration
from smalti.records import Answer, Author, Pair

HAND_SIGMA = 0.06
"""Standard deviation of where a person lays a frame, in units of the frame (a quarter of width plus height)."""

SMALLEST_DETERMINANT = 1e-6
"""Of a map that a person may have laid a frame by."""

QueueName = Literal["all", "doubtful"]


class Session:
    """Questions to people about one project. Its methods may be called from any thread.

    The state is a function of the log of answers. An answer is on disk before anything else is done with it.
    """

    def __init__(
        self, opened: Opened, queue: say.Queue, progress: Progress, on_change: Callable[[], None] | None = None
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
        self._precomputation = Precomputation(self._engine, self._prefetch, self._on_change)
        # Compute what the first page will ask for.
        _ = self._answer_history.loop.best
        self._matrices: dict[tuple[say.MapKind, int], PairMatrix] = {}  # of the latest revision
        self._go_to_next()

    @classmethod
    def open(
        cls,
        source: Location,
        output: str | Path | None = None,
        *,
        queue: QueueName = "all",
        matcher: Matcher | None = None,
        every: int = 1,
        start: str | None = None,
        end: str | None = None,
        max_size: int | None = None,
        mask: str | Path = "auto",
        registration: Registration = "auto",
        method: Method = "smalti",
        family: FamilyName = "projective",
        reference: int | str = "auto",
        target_px: float | None = None,
        keyframes: str | float = "auto",
        seed: int = 0,
        moved_to: str | Path | None = None,
        progress: Progress | bool = False,
    ) -> Self:
        """Prepare a video, images, or a project's folder for questions. This takes long for a new video.

        Use the session in a `with` block, or close it.

        Args:
            source: a video, a folder of images, a pattern, a list of images, or a project's folder.
            output: the folder of a new project.
            queue: `"doubtful"` asks only about the pairs of which the matcher is not sure; it answers the others.
            matcher: see `smalti.build`, as for all arguments up to `seed`. A project's frames are chosen already:
                leave `every`, `start`, `end`, `max_size`, `mask`, `keyframes` and `seed` out.
            moved_to: where a project's frames are now, if they were moved.
            progress: True shows bars.
        """
        settings = BuildSettings(
            SourceSettings(every, start, end, max_size),
            mask=str(mask),
            registration=registration,
            method=method,
            family=family,
            reference=str(reference),
            target_px=target_px,
            seed=seed,
            keyframes=str(keyframes),
        )
        shown = progress_of(progress)
        return cls.prepare(
            source, output, settings, queue=queue_named(queue), matcher=matcher, moved_to=moved_to, progress=shown
        )

    @classmethod
    def prepare(
        cls,
        source: Location,
        output: str | Path | None = None,
        settings: BuildSettings | None = None,
        *,
        queue: say.Queue = say.Queue.ALL,
        matcher: Matcher | None = None,
        moved_to: str | Path | None = None,
        progress: Progress | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> Self:
        """Open a session by settings; `on_change` is called whenever its state has changed."""
        progress = Silence() if progress is None else progress
        settings = BuildSettings() if settings is None else settings
        opened = open_project(source, output, settings, source=moved_to, matcher=matcher, progress=progress)
        try:
            return cls(opened, queue, progress, on_change)
        except BaseException:
            opened.project.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

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
            )

    def question(self, page: str = "") -> say.Question | None:
        """Return the question with the largest expected gain for its cost, about the frames `i` and `j`.

        Several pages are asked different questions. In the queue of doubtful pairs it is the one about which the
        matcher could not tell just now. None while the matcher is at work, or where no question is left.
        """
        with self._engine_first():
            inner = None if self._auto_answerer.is_working else self._asked_pair(page)
            self._leases.take(page, inner)
            return None if inner is None else self._ask(inner, page)

    def leave(self, page: str) -> None:
        """Give the question of a page that was closed back."""
        self._leases.take(page, None)

    def look(self, i: int, j: int, page: str = "") -> say.Question:
        """Return any pair as a question."""
        with self._engine_first():
            return self._ask(self._answer_history.inner(Pair(i, j)), page)

    def propose(self, i: int, j: int) -> say.Proposal:
        """Return the matcher's answer on a pair."""
        pair = Pair(i, j)
        self._answer_history.inner(pair)
        return self._auto_answerer.propose(pair)

    def align(self, request: say.AlignFrames) -> say.Proposal:
        """Return landmarks of an alignment by all pixels, near where a person has laid frame j over frame i."""
        pair = Pair(request.i, request.j)
        self._answer_history.inner(pair)
        i_from_j = np.array(request.i_from_j).reshape(3, 3)
        if not abs(np.linalg.det(i_from_j)) > SMALLEST_DETERMINANT:
            raise UsageError(f"pair {pair}: this map is flat, lay the frame anew")
        sigma_px = HAND_SIGMA * self.project.outline.unit
        return self._auto_answerer.align(pair, i_from_j, sigma_px)

    def forecast(self, i: int, j: int) -> say.Forecast:
        """Return the expected effect of a yes on a pair, and the number of answers until the target."""
        with self._engine_first():
            loop, pair, revision = self._answer_history.loop, self._answer_history.inner(Pair(i, j)), self.revision
            now_px = loop.predicted_error_px
            after_px = error_after_yes_px(loop, pair) if isinstance(loop, ActiveLoop) else None
        more = self._count_answers(loop)
        return say.Forecast(
            revision=revision,
            i=i,
            j=j,
            now_px=now_px,
            after_yes_px=after_px,
            more=None if more is None else more[0],
            more_is_bound=more is not None and more[1],
        )

    def mosaic(self) -> say.LiveMosaic:
        """Return the map of every frame."""
        with self._engine_first():
            return describe_mosaic(self._answer_history)

    def answers(self) -> list[say.AnswerRow]:
        """Return all answers in force."""
        with self._engine_first():
            return list_answers(self._answer_history)

    def record(self, answer: Answer) -> say.Outcome:
        """Keep an answer, and return the next question and whether the answer contradicts the others.

        The pair need not be the one asked; frames have their numbers in the source.
        """
        with self._engine_first():
            inner = self._answer_history.inner(answer.pair)
            if answer.landmarks is not None:  # those that make no link are refused before they are kept
                self._answer_history.loop.link_of(answer.landmarks.of_pair(inner))
            return self._keep(AnswerEntry(answer, self._answer_history.role_of(answer.pair), 0.0))

    def give(self, request: say.GiveAnswer, page: str = "") -> say.Outcome:
        """Keep a person's answer from the page, and return the next question."""
        pair = Pair(request.i, request.j)
        with self._engine_first():
            self._answer_history.inner(pair)
            entry = read_answer(request, self._answer_history.role_of(pair), self._answer_history.loop)
            return self._keep(entry, request.seen_revision, page)

    def remove(self, request: say.RemoveAnswer, page: str = "") -> say.Outcome:
        """Take an answer back. An answer of the chain is replaced by a person's "cannot tell"."""
        pair = Pair(request.i, request.j)
        with self._engine_first():
            self._answer_history.inner(pair)
            role = self._answer_history.role_of(pair)
            if role.is_after_chain:
                self.project.store.remove_answer(pair, seen_revision=request.seen_revision)
            else:
                answer = Answer.unsure(pair, "removed by a person", Author.PERSON)
                self.project.store.keep_answer(AnswerEntry(answer, role, 0.0), seen_revision=request.seen_revision)
            self._answer_history.take_up()
            return self._outcome(f"removed: frames {pair.i} and {pair.j}", page=page)

    def undo(self, request: say.Step, page: str = "") -> say.Outcome:
        """Take back the last action of a person."""
        with self._engine_first():
            undone = self.project.store.undo(seen_revision=request.seen_revision)
            self._answer_history.take_up()
            return self._outcome(f"undone: {describe_act(undone)}", page=page)

    def redo(self, request: say.Step, page: str = "") -> say.Outcome:
        """Bring back what was undone last."""
        with self._engine_first():
            redone = self.project.store.redo(seen_revision=request.seen_revision)
            self._answer_history.take_up()
            return self._outcome(f"redone: {describe_act(redone)}", page=page)

    def conflict(self, error: ChangedMeanwhileError) -> say.Conflict:
        """Describe what somebody else did meanwhile."""
        with self._engine_first():
            pair = error.pair
            known = None if pair is None else self._answer_history.history.answer_of(pair)
            return say.Conflict(
                explanation=str(error),
                i=0 if pair is None else pair.i,
                j=0 if pair is None else pair.j,
                theirs=None if known is None else write_given(known),
                state=self.state(),
            )

    def check(self, request: say.CheckLandmarks) -> say.Checked:
        """Return what is wrong with landmarks, and whether they would contradict the state."""
        pair = Pair(request.i, request.j)
        with self._engine_first():
            inner, loop = self._answer_history.inner(pair), self._answer_history.loop
            try:
                landmarks = read_landmarks(pair, request.landmarks, loop)
            except LandmarkError as error:
                return say.Checked(problem=str(error), contradiction=None)
            if loop.is_settled(inner):
                return say.Checked(problem=None, contradiction=None)
            answer = Answer.yes(landmarks.of_pair(inner), author=Author.PERSON)
            after = loop.record(answer)
            found = find_contradiction(loop, after, answer, self._answer_history.state_history.surprises())
            if self._queue is say.Queue.ALL or not self._auto_answerer.is_working:
                self._precomputation.precompute_answer(self._answer_history.state_history.now, answer, after)
            return say.Checked(
                problem=None, contradiction=None if found is None else in_words(found, self._answer_history)
            )

    def snap(self, request: say.SnapPoint) -> say.Snapped:
        """Move one side of a landmark to where it correlates best with the other."""
        self._answer_history.inner(Pair(request.i, request.j))
        return snap_landmark(request, self._pictures, self.project.mask)

    def trace(self, request: say.TraceVessel) -> say.TracedVessel:
        """Find the vessel under the strokes that a person has drawn along it in both frames."""
        self._answer_history.inner(Pair(request.i, request.j))
        return trace_both(request, self._pictures, self.project.mask, self._answer_history.loop)

    def pair_map(self, kind: say.MapKind, row: int, column: int, frames: int, size: int) -> say.PairMap:
        """Return a window of a matrix over all pairs."""
        with self._engine_first():
            revision = self.revision
            if (kind, revision) not in self._matrices:
                self._matrices = {known: matrix for known, matrix in self._matrices.items() if known[1] == revision}
                loop = self._answer_history.loop
                self._matrices[kind, revision] = matrix_of(kind, loop)
            matrix = self._matrices[kind, revision]
        return reduce(matrix, kind, row, column, frames, size, revision)

    def frame_jpeg(self, number: int) -> bytes:
        """Return a frame of the source."""
        return self._pictures.frame(number)

    def sheet_jpeg(self, number: int) -> bytes:
        """Return a sheet of small pictures."""
        return self._pictures.sheet(number)

    def mask_png(self) -> bytes:
        """Return the valid pixels of small pictures."""
        return self._pictures.mask()

    def export(self, name: str) -> tuple[str, bytes | Path]:
        """Return media type and content of an export by name. A path is a file that the caller deletes."""
        with self._engine_first():
            placed = largest_part(self._answer_history)
        # Another handle on the same files, because only one thread at a time may read a source.
        with self._opened.again() as project:
            return export(name, project, placed)

    def finish(self, progress: Progress | bool = False) -> None:
        """Finish the mosaic by the answers so far, render it and report; people may go on answering meanwhile."""
        with self._engine_first():
            loop, revision = self._answer_history.loop, self.revision
        with self._opened.again() as project:
            preparation = self._opened.prepare_again(project, Silence())
            deliver(project, preparation, loop, progress_of(progress), revision)
            write_views(project, progress_of(progress))
        with self._engine_first():
            self._answer_history.take_up()
        self._on_change()

    def finished(self) -> say.FinishedMosaic | None:
        """Return the mosaic that was finished last, to be looked at."""
        return describe_finished(self.project)

    def finished_tile(self, version: say.MosaicVersion, level: int, column: int, row: int) -> bytes:
        """Return a tile of it as PNG."""
        return read_tile(self.project.cache.folder, version, level, column, row)

    def result(self, name: str) -> Path:
        """Return a file that was delivered with it."""
        return find_result(self.project, name)

    def _repr_html_(self) -> str:
        """Show where things stand in a notebook."""
        state, question = self.state(), self.question()
        counts = state.counts
        rows = [
            ("usable frames", f"{state.usable} of {state.frames}"),
            ("parts", str(state.parts)),
            ("predicted error", say_error(state.predicted_px, None)),
            ("questions answered", say_answers(counts.yes, counts.no, counts.unsure)),
            ("next question", "none" if question is None else f"{question.i} and {question.j}"),
            ("mosaic", "finished" if state.finished else "not finished: finish() makes it"),
            ("folder", state.folder),
        ]
        return draw_card(f"Session: {state.name}", rows)

    def close(self) -> None:
        """Stop precomputation, and close the files."""
        self._auto_answerer.stop()
        self._precomputation.close()
        self._pictures.close()
        self._answer_history.keep_predictions()
        self._shown.close()
        self.project.close()

    def _count_answers(self, loop: AnyLoop) -> tuple[int, bool] | None:
        """Return the number of answers until the target, and whether even these do not suffice; None without one."""
        target_px = self._opened.settings.target_px
        if target_px is None or not isinstance(loop, ActiveLoop):
            return None
        bounds, count = bounds_ahead_px(loop), 0
        while True:
            with self._engine_first():
                bound_px = next(bounds, None)
            if bound_px is None:
                return max(count - 1, 0), True
            if bound_px <= target_px:
                return count, False
            count += 1

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

    def _keep(self, entry: AnswerEntry, seen_revision: int | None = None, page: str = "") -> say.Outcome:
        """Write an answer to disk, then go to the state after it."""
        self.project.store.keep_answer(entry, seen_revision=seen_revision)
        self._answer_history.take_up(self._precomputation.states)
        return self._outcome(describe_answer(entry.answer.pair, entry.answer.verdict), entry, page)

    def _outcome(self, done: str, given: AnswerEntry | None = None, page: str = "") -> say.Outcome:
        """Continue after a change that is on disk."""
        contradiction = None
        state_history = self._answer_history.state_history
        latest = state_history.now.entry
        if (
            given is not None
            and latest is not None
            and latest.answer.pair == self._answer_history.inner(given.answer.pair)
        ):
            answer = latest.answer
            found = find_contradiction(
                state_history.before.loop, state_history.now.loop, answer, state_history.earlier_surprises()
            )
            contradiction = None if found is None else in_words(found, self._answer_history)
            learned = say_learned(state_history.before, state_history.now, state_history.predicted_px)
            done = done if learned is None else f"{done}. {learned}"
        # After a contradiction the matcher waits: it would build on what may be wrong.
        self._go_to_next(matcher_first=contradiction is None)
        self._on_change()
        return say.Outcome(state=self.state(), question=self.question(page), contradiction=contradiction, done=done)

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


def queue_named(name: str) -> say.Queue:
    """Look a queue up by its name."""
    if name not in list(say.Queue):
        raise UnknownNameError("queue", name, tuple(say.Queue))
    return say.Queue(name)
