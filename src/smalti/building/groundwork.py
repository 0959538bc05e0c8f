"""What comes before the first question: frames read, chain registered, looks known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from smalti.agents.agent import Agent
from smalti.agents.matcher import Matcher
from smalti.appearance.grid import grid_signatures
from smalti.appearance.words import signatures_of
from smalti.building.chain import Chain, register_chain
from smalti.building.matching import Matchers, choose_matchers
from smalti.building.progress import Progress
from smalti.building.questions import Questions
from smalti.building.reading import read_frames
from smalti.building.settings import BuildSettings, Registration
from smalti.building.sight import Sight
from smalti.errors import InputError, UsageError
from smalti.frames.source import FrameSource
from smalti.geometry.family import family_named as linear_family_named
from smalti.geometry.maps import family_named
from smalti.loop import ActiveLoop, StopRule
from smalti.overlap.signatures import WeightedSignatures
from smalti.paper.paper_loop import PaperLoop
from smalti.project.entries import FrameEntry, Role
from smalti.project.project import Project
from smalti.records import Answer, Expectation, Pair

LONGEST_TIE = 64
"""Frames on, at video rate, that all pixels register directly: later, a scope's light and its scene have changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Groundwork:
    """The state before the first question, and who is asked."""

    frames: tuple[FrameEntry, ...]
    used: tuple[int, ...]  # numbers in the source of the frames that the engine knows
    agent: Agent  # the matcher of frames far apart, in numbers of the source
    questions: Questions
    chain: Chain
    start: ActiveLoop | PaperLoop


def lay_groundwork(
    project: Project,
    source: FrameSource,
    settings: BuildSettings,
    matcher: Matcher | None,
    progress: Progress,
    least_part: int = 1,
) -> Groundwork:
    """Read the frames, register the chain, look at them. What is in the project already is not done again.

    Parts of fewer than `least_part` frames that nothing joins are not asked about.
    """
    sight = Sight(source, settings.mask)
    with timed(project, "reading"):
        frames = _read(project, source, sight, progress)
        used = tuple(frame.number for frame in frames if not frame.reason)
    with timed(project, "chain"):
        matchers = choose_matchers(project, sight, matcher, _registration(project, settings.registration), used)
        questions = Questions(project.store, matchers.of_role, used)
        project.store.keep_facts(registered_by=matchers.name)
        longest_tie = LONGEST_TIE if matchers.is_dense else 0
        chain = _register(project, questions, len(used), progress, longest_tie)
    with timed(project, "looks"):
        looks = _looks(project, sight, matchers, used, settings.seed)
    start = _begin(project, chain, looks, used, settings, questions, least_part)
    return Groundwork(tuple(frames), used, matchers.far, questions, chain, start)


@contextmanager
def timed(project: Project, stage: str) -> Iterator[None]:
    """Add what happens to the time spent in a stage."""
    began = time.perf_counter()
    try:
        yield
    finally:
        project.store.add_seconds(stage, time.perf_counter() - began)


def _read(project: Project, source: FrameSource, sight: Sight, progress: Progress) -> list[FrameEntry]:
    store, cache = project.store, project.cache
    if not store.fact("mask_is_known"):
        project.keep_mask(sight.field)
    frames = store.frames()
    if not frames or not all(cache.has_keypoints(frame.number) for frame in frames):
        frames = read_frames(source, sight, cache, progress)
        store.keep_frames(frames)
    for warning in source.warnings:
        progress.say(f"{source.path}: {warning}")
    if sum(not frame.reason for frame in frames) < 2:
        worst = next(frame for frame in frames if frame.reason)
        raise InputError(f"{source.path}: fewer than two frames are usable; {worst.label} is {worst.reason}")
    return frames


def _registration(project: Project, asked: Registration) -> Registration:
    """Return how pairs are registered: as asked for, or as before; a project from before there was a choice stays."""
    if asked == "auto":
        asked = project.store.fact("registration") or ("keypoints" if project.store.answers() else "auto")
    project.store.keep_facts(registration=asked)
    return asked


def _register(project: Project, questions: Questions, frames: int, progress: Progress, longest_tie: int) -> Chain:
    with progress.stage("chain", frames - 1) as step:

        def ask(pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
            if role is Role.CHAIN:
                step()
            return questions.ask(pair, role, expected)

        return register_chain(frames, project.outline, ask, 2 * frames, longest_tie)


def _looks(project: Project, sight: Sight, matchers: Matchers, used: Sequence[int], seed: int) -> WeightedSignatures:
    signatures = project.cache.array("signatures")
    if signatures is None:
        if matchers.is_dense:
            signatures = grid_signatures(lambda numbers: (sight.look(used[n]) for n in numbers), len(used), seed)
        else:
            signatures = signatures_of(map(project.cache.keypoints, used), project.outline, seed)
        project.cache.keep_array("signatures", signatures)
    return WeightedSignatures(signatures)


def _begin(
    project: Project,
    chain: Chain,
    looks: WeightedSignatures,
    used: Sequence[int],
    settings: BuildSettings,
    questions: Questions,
    least_part: int,
) -> ActiveLoop | PaperLoop:
    spent = questions.attempts(Role.CHAIN, Role.BRIDGE, Role.CHECK)
    stop_rule = StopRule(settings.loop_budget(len(used), spent), settings.target_px)
    reference = _reference(settings.reference, used)
    if settings.method == "paper":
        return PaperLoop.start(
            len(used),
            project.outline,
            chain.links,
            external=looks,
            family=linear_family_named("affine" if settings.family == "projective" else settings.family),
            reference=reference,
            stop_rule=stop_rule,
        )
    return ActiveLoop.start(
        len(used),
        project.outline,
        chain.links,
        external=looks,
        family=family_named(settings.family),
        reference=reference,
        stop_rule=stop_rule,
        least_part=least_part,
    )


def _reference(wanted: str, used: Sequence[int]) -> int | Literal["auto"]:
    """Return the frame that the mosaic is to be seen from, in the numbers of the engine."""
    if wanted == "auto":
        return "auto"
    number = int(wanted)
    if number not in used:
        raise UsageError(f"reference frame {number}: is not among the frames that are used, name another one or auto")
    return used.index(number)
