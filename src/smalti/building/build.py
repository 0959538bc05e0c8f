"""From a video to a consistent mosaic: the whole path on one page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from smalti.active_loop import ActiveLoop
from smalti.agents.matcher import Matcher
from smalti.building.build_settings import BuildSettings
from smalti.building.compile_ahead import compiling_ahead
from smalti.building.delivery import deliver
from smalti.building.preparation import Preparation, prepare, timed
from smalti.building.source_questions import usable
from smalti.errors import InputError, OutputError
from smalti.frames.source import check_frame_size, open_source
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import FamilyName
from smalti.interchange.regular_files import kind_of
from smalti.paper.paper_loop import PaperLoop
from smalti.progress import Progress, progress_of
from smalti.project.entries import Role
from smalti.project.facts import Method, QuestionsAskedBy, Registration
from smalti.project.project import Project
from smalti.records import Author, as_numbers
from smalti.suggestion.sure_pairs import unmatched_pairs

LARGEST_BATCH, FRAMES_OF_LARGEST = 64, 8
"""The largest batch, and the least number of frames for each of its questions. A matcher answers faster than the engine
adjusts and chooses."""

FRAMES_OF_SMALLEST, SHARE_OF_ANSWERS = 40, 0.5
"""The first batches are small, because the first answers change the mosaic most: one question for so many frames, and
this share of the answers so far."""

KNOWN = 0.005
"""Share of a frame's diagonal. With a smaller error, pairs that surely overlap are found near their expected place."""

NEAR_PER_FRAME = 3
"""Such pairs for each frame, at most."""

RETRIED_PER_FRAME = 1
"""Pairs that were not matched before their place was known, for each frame, at most."""

Location = str | Path | Sequence[str | Path]


@compiling_ahead()
def build(
    source: Location,
    output: str | Path | None = None,
    *,
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
    budget: int | None = None,
    target_px: float | None = None,
    keyframes: str | float = "auto",
    seed: int = 0,
    progress: Progress | bool = False,
) -> Project:
    """Build the mosaic of a video or of images, or continue a build that was interrupted.

    Args:
        source: a video, a folder of images, a pattern such as `shots/*.tif`, or a list of images.
        output: the project's folder; by default the input's name with `.smalti`, in the current folder.
        matcher: takes two images (h, w, 3) and returns points (n, 2) of both, or None. Without one, Smalti matches
            keypoints, or all pixels where contrast is low.
        every: use every K-th frame.
        start: the first frame: its number such as `"120"`, or for videos a time such as `"12.5s"` or `"1:02"`.
        end: the frame after the last one, likewise.
        max_size: reduce frames to this longer side, in pixels.
        mask: where frames show the scene: `"auto"`, `"none"`, the path of an image, or that of a folder
            with an image for every frame.
        registration: of pairs: by `"keypoints"`, or `"dense"`, by all pixels; `"auto"` tries both. Unused with a
            `matcher`.
        method: `"paper"` is the published method without changes.
        family: the maps of frames.
        reference: the number of the frame that gives the mosaic its position, rotation and scale; `"auto"` takes the
            middle one.
        budget: the number of questions after the chain. Without it and without `target_px`, a build stops when the
            next questions are not worth their time, after 3 matching attempts per frame at the latest.
        target_px: stop when the 90 % bound on the error is below this.
        keyframes: of a video: `"auto"` chooses frames by what they show, `"all"` uses all; or the share of the view
            that is new in the next keyframe, such as 0.25. Images are all used unless a share is given.
        seed: of the random numbers for comparing the appearance of frames.
        progress: True shows bars.
    """
    settings = BuildSettings(
        SourceSettings(every, start, end, max_size),
        mask=str(mask),
        registration=registration,
        method=method,
        family=family,
        reference=str(reference),
        budget=budget,
        target_px=target_px,
        seed=seed,
        keyframes=str(keyframes),
    )
    with beginning(source, output, settings, matcher, "smalti build") as project:
        _run(project, settings, matcher, progress_of(progress))
        # It may be looked at for hours, while somebody else goes on.
        project.unlock()
    return project


@contextmanager
def beginning(
    source: Location, output: str | Path | None, settings: BuildSettings, matcher: Matcher | None, what: str
) -> Iterator[Project]:
    """Make the project of an input, or go on with the one that is there; `what` is at work on it.

    The project stays open unless the work fails. A new one whose frames or mask cannot be used is deleted: there is
    nothing to go on with.
    """
    location = str(source) if isinstance(source, str | Path) else [str(one) for one in source]
    folder = _default_folder(location) if output is None else Path(output)
    binding = settings.binding() if matcher is None else settings.binding(_name(matcher))
    for path in (location, settings.mask) if isinstance(location, str) else (*location, settings.mask):
        _check_storable(path)
    frames = open_source(location, settings.source)
    is_new = kind_of(folder, OutputError) == "nothing"
    try:
        check_frame_size(frames)
        project = Project.begin(folder, frames, location, binding, what)
    except BaseException:
        frames.close()
        raise
    project.source = frames
    try:
        yield project
    except BaseException as error:
        project.close()
        if is_new and isinstance(error, InputError):
            shutil.rmtree(folder)
        raise


def _run(project: Project, settings: BuildSettings, matcher: Matcher | None, progress: Progress) -> None:
    """Read and register, ask, finish and render. What is in the project already is not done again."""
    # Pairs are matched on all cores at once. Each takes one of them.
    with threadpool_limits(limits=1, user_api="blas"):
        preparation = prepare(project, project.source, settings, matcher, progress, until_enough=True)
        with timed(project, "loop"):
            loop = _ask(project, preparation, settings, progress)
    deliver(project, preparation, loop, progress)


def _ask(
    project: Project, preparation: Preparation, settings: BuildSettings, progress: Progress
) -> ActiveLoop | PaperLoop:
    """Ask the matcher until there is a reason to stop.

    What it answered before is asked again, and answered from memory at once: the state is then what it would be without
    the interruption, to the last bit. Where others have had a say, a person, another method or other maps, all
    answers are taken up first, in the order in which they were given.

    Questions remove the drift. Once the mosaic is known well enough, keypoints of pairs that surely overlap are matched
    near their expected place, which takes a fraction of the time. Then questions go on if they are worth it. Last,
    pairs that were not matched before their place was known are tried again.
    """
    loop, questions, asker = preparation.start, preparation.questions, settings.asker
    before = questions.given_after(loop.chain)
    asked_by = project.store.fact(QuestionsAskedBy)
    others_asked = asked_by is not None and asked_by.asker != asker
    shared = others_asked or any(answer.author is Author.PERSON for answer in before)
    project.store.keep_fact(QuestionsAskedBy("several" if shared else asker))
    largest = min(max(loop.frames // FRAMES_OF_LARGEST, 1), LARGEST_BATCH)

    def batch(answers: int) -> int:
        return min(max(1 + int(SHARE_OF_ANSWERS * answers), loop.frames // FRAMES_OF_SMALLEST), largest)

    with progress.stage("asking", loop.stop_rule.budget or 0) as step:
        for answer in before if shared else ():
            loop = loop.record(usable(answer, loop.link_of))
            step()

        def last(states: Iterator[ActiveLoop], state: ActiveLoop) -> ActiveLoop:
            for after in states:
                state = after
                step()
            return state

        agent = questions.asking(Role.LOOP, loop.link_of)
        if isinstance(loop, ActiveLoop) and preparation.matches_near and settings.budget is None:
            rule = loop.stop_rule
            loop = loop.until(replace(rule, known_px=KNOWN * 2.0 * loop.outline.outer_half_side))
            loop = last(loop.run(agent, batch), loop)
            pairs = loop.sure_pairs(NEAR_PER_FRAME * loop.frames)
            loop = last(loop.ask_about(questions.asking(Role.NEAR, loop.link_of), pairs), loop)
            loop = loop.until(replace(rule, budget=None if rule.budget is None else rule.budget + len(pairs)))
        for state in loop.run(agent, batch):
            loop = state
            step()
        if isinstance(loop, ActiveLoop) and preparation.tries_again and settings.budget is None:
            pairs = unmatched_pairs(loop.view, as_numbers(questions.failed()), RETRIED_PER_FRAME * loop.frames)
            for pair in pairs:
                if loop.is_settled(pair):
                    loop = loop.forget(pair)
            loop = last(loop.ask_about(questions.asking(Role.RETRY, loop.link_of), pairs), loop)
    return loop


def _default_folder(location: str | list[str]) -> Path:
    first = Path(location if isinstance(location, str) else location[0])
    name = first.stem if first.is_file() else first.parent.name if "*" in first.name else first.name
    return Path(f"{name or 'mosaic'}.smalti")


def _check_storable(path: str) -> None:
    """Refuse a path that cannot be kept as text: the project has to find its frames again."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(f"{path}: its name is not UTF-8 text; rename it") from None


def _name(matcher: Matcher) -> str:
    return str(getattr(matcher, "__qualname__", type(matcher).__qualname__))
