"""From a video to a consistent mosaic: the whole path on one page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from smalti.agents.agent import Agent
from smalti.agents.matcher import CallableAgent, KeypointAgent, Matcher
from smalti.appearance.words import signatures_of
from smalti.belief import LARGEST_CHI2
from smalti.building.chain import Chain, register_chain
from smalti.building.finish import finish_parts
from smalti.building.outputs import render_mosaics, write_tables
from smalti.building.progress import Progress, Silence
from smalti.building.questions import Questions
from smalti.building.reading import find_mask, read_frames
from smalti.building.results import chain_error_px, judge_links, keep_result, place_asides, place_parts, summarise
from smalti.building.settings import BuildSettings
from smalti.errors import InputError
from smalti.frames.settings import SourceSettings
from smalti.frames.source import FrameSource, open_source
from smalti.loop import ActiveLoop, StopRule
from smalti.overlap.signatures import WeightedSignatures
from smalti.project.entries import FrameEntry, Role
from smalti.project.project import Project
from smalti.records import Answer, Pair
from smalti.report.page import write_report
from smalti.suggestion.strategies import strategy_named

FRAMES_PER_QUESTION = 40
"""A matcher answers faster than the engine chooses in long sequences: one question of a batch for so many frames."""

Location = str | Path | Sequence[str | Path]


def build(
    source: Location,
    output: str | Path | None = None,
    *,
    matcher: Matcher | None = None,
    progress: Progress | None = None,
    every: int = 1,
    start: str | None = None,
    end: str | None = None,
    max_size: int | None = None,
    **options: Any,
) -> Project:
    """Build the mosaic of a video or of images, or go on with a build that was interrupted.

    `output` is the project's folder, by default the input's name with `.smalti` in the current folder. `matcher` takes
    two images (h, w, 3) and returns points (n, 2) of both, or None; without one, keypoints are matched. `options` are
    those of `BuildSettings`: mask, strategy, budget, target_px, finish, seed.
    """
    settings = BuildSettings(SourceSettings(every, start, end, max_size), **options)
    location = str(source) if isinstance(source, str | Path) else [str(one) for one in source]
    folder = _default_folder(location) if output is None else Path(output)
    is_new = not folder.exists()
    with open_source(location, settings.source) as frames:
        binding = {**settings.binding(), "matcher": "keypoints" if matcher is None else _name(matcher)}
        project = Project.begin(folder, frames, location, binding)
        try:
            _run(project, frames, settings, matcher, Silence() if progress is None else progress)
        except BaseException as error:
            project.close()
            if is_new and isinstance(error, InputError):
                # Frames or a mask that cannot be used: there is nothing to go on with.
                shutil.rmtree(folder)
            raise
    return project


def _run(
    project: Project, source: FrameSource, settings: BuildSettings, matcher: Matcher | None, progress: Progress
) -> None:
    """Read, register the chain, ask, finish, render. What is in the project already is not done again."""
    with _timed(project, "reading"):
        frames = _read(project, source, settings, progress)
        used = [frame.number for frame in frames if not frame.reason]
    questions = Questions(project.store, _agent(project, source, matcher), used)
    with _timed(project, "chain"):
        chain = _register(project, questions, len(used), progress)
    with _timed(project, "looks"):
        looks = _looks(project, used, settings.seed)
    with _timed(project, "loop"):
        start = _begin(project, chain, looks, len(used), settings, questions)
        loop = _ask(start, questions, progress)
    with _timed(project, "finish"):
        landmarks = questions.landmarks()
        parts = finish_parts(loop, landmarks, settings.finish)
        placements = place_parts(parts, start, used)
        placements += place_asides(frames, placements, questions)
        keep_result(
            project,
            placements,
            judge_links(loop, parts, used),
            chain_error_px=chain_error_px(start, loop, landmarks, parts),
            **summarise(chain, start, loop, parts, used),
        )
        write_tables(project)
    with _timed(project, "render"):
        mosaics = render_mosaics(project, progress)
    with _timed(project, "report"):
        write_report(project, project.folder / "report.html", mosaics=mosaics)


def _read(project: Project, source: FrameSource, settings: BuildSettings, progress: Progress) -> list[FrameEntry]:
    store, cache = project.store, project.cache
    if not store.fact("mask_is_known"):
        project.keep_mask(find_mask(settings.mask, source))
    frames = store.frames()
    if not frames or not all(cache.has_keypoints(frame.number) for frame in frames):
        frames = read_frames(source, project.mask, cache, progress)
        store.keep_frames(frames)
    for warning in source.warnings:
        progress.say(f"{source.path}: {warning}")
    if sum(not frame.reason for frame in frames) < 2:
        worst = next(frame for frame in frames if frame.reason)
        raise InputError(f"{source.path}: fewer than two frames are usable; {worst.label} is {worst.reason}")
    return frames


def _agent(project: Project, source: FrameSource, matcher: Matcher | None) -> Agent:
    if matcher is None:
        return KeypointAgent(project.cache.keypoints, project.outline)
    return CallableAgent(matcher, source.read, project.outline)


def _register(project: Project, questions: Questions, frames: int, progress: Progress) -> Chain:
    with progress.stage("chain", frames - 1) as step:

        def ask(pair: Pair, role: Role) -> Answer:
            if role is Role.CHAIN:
                step()
            return questions.ask(pair, role)

        return register_chain(frames, project.outline, ask, 2 * frames)


def _looks(project: Project, used: Sequence[int], seed: int) -> WeightedSignatures:
    signatures = project.cache.array("signatures")
    if signatures is None:
        signatures = signatures_of(map(project.cache.keypoints, used), project.outline, seed)
        project.cache.keep_array("signatures", signatures)
    return WeightedSignatures(signatures)


def _begin(
    project: Project,
    chain: Chain,
    looks: WeightedSignatures,
    frames: int,
    settings: BuildSettings,
    questions: Questions,
) -> ActiveLoop:
    spent = questions.attempts(Role.CHAIN, Role.BRIDGE, Role.CHECK)
    return ActiveLoop.start(
        frames,
        project.outline,
        chain.links,
        external=looks,
        strategy=strategy_named(settings.strategy),
        reference=frames // 2,
        stop_rule=StopRule(settings.loop_budget(frames, spent), settings.target_px),
        priors=chain.guesses,
        noise=chain.noise,
        largest_chi2=LARGEST_CHI2,
    )


def _ask(loop: ActiveLoop, questions: Questions, progress: Progress) -> ActiveLoop:
    """Ask until there is a reason to stop.

    What was answered before is asked again, and answered from memory at once:
    the state is then what it would be without the interruption, to the last bit.
    """
    batch = max(1, loop.adjustment.frames // FRAMES_PER_QUESTION)
    with progress.stage("asking", loop.stop_rule.budget or 0) as step:
        for state in loop.run(questions.asking(Role.LOOP), batch):
            loop = state
            step()
    return loop.settle()


def _default_folder(location: str | list[str]) -> Path:
    first = Path(location if isinstance(location, str) else location[0])
    name = first.stem if first.is_file() else first.parent.name if "*" in first.name else first.name
    return Path(f"{name or 'mosaic'}.smalti")


def _name(matcher: Matcher) -> str:
    return str(getattr(matcher, "__qualname__", type(matcher).__qualname__))


@contextmanager
def _timed(project: Project, stage: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        project.store.add_seconds(stage, time.perf_counter() - began)
