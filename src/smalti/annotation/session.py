"""A session with people about a project: one method for each request of the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Self

from smalti.agents.matcher import Matcher
from smalti.annotation import messages as say
from smalti.annotation.answer_requests import AnswerRequests
from smalti.annotation.known_pairs import Measures
from smalti.annotation.open_session import NOT_MEASURED
from smalti.annotation.opening import open_project
from smalti.annotation.view_requests import ViewRequests
from smalti.building.build import Location
from smalti.building.build_settings import BuildSettings
from smalti.errors import UnknownNameError
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import FamilyName
from smalti.notebook_html import draw_card, say_answers, say_error
from smalti.progress import Progress, Silence, progress_of
from smalti.project.facts import Method, Registration

QueueName = Literal["all", "doubtful"]


class Session(AnswerRequests, ViewRequests):
    """Questions to people about one project. Its methods may be called from any thread.

    The state is a function of the log of answers. An answer is on disk before anything else is done with it.
    """

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
        known_share: float = 0.0,
        check_landmarks: bool = False,
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
            known_share: about this share of each person's questions is about pairs whose answer is known, to measure
                the person; the matcher's landmarks are then shown for no pair.
            check_landmarks: the last of four or more landmarks of an answer is left out of the link, and compared with
                the mosaic.
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
            source,
            output,
            settings,
            queue=queue_named(queue),
            measures=Measures(known_share, check_landmarks),
            matcher=matcher,
            moved_to=moved_to,
            progress=shown,
        )

    @classmethod
    def prepare(
        cls,
        source: Location,
        output: str | Path | None = None,
        settings: BuildSettings | None = None,
        *,
        queue: say.Queue = say.Queue.ALL,
        measures: Measures = NOT_MEASURED,
        matcher: Matcher | None = None,
        moved_to: str | Path | None = None,
        progress: Progress | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> Self:
        """Open a session by settings; `on_change` is called whenever its state has changed."""
        progress = Silence() if progress is None else progress
        settings = BuildSettings() if settings is None else settings
        measures.check_method(settings.method)
        opened = open_project(source, output, settings, source=moved_to, matcher=matcher, progress=progress)
        try:
            return cls(opened, queue, progress, on_change, measures)
        except BaseException:
            opened.project.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

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


def queue_named(name: str) -> say.Queue:
    """Look a queue up by its name."""
    if name not in list(say.Queue):
        raise UnknownNameError("queue", name, tuple(say.Queue))
    return say.Queue(name)
