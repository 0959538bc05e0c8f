"""What comes before the first question: frames read, chain registered, looks known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from smalti.agents.agent import Agent
from smalti.agents.matcher import CallableAgent, KeypointAgent, Matcher
from smalti.appearance.words import signatures_of
from smalti.belief import LARGEST_CHI2
from smalti.building.chain import Chain, register_chain
from smalti.building.progress import Progress
from smalti.building.questions import Questions
from smalti.building.reading import find_mask, read_frames
from smalti.building.settings import BuildSettings
from smalti.errors import InputError
from smalti.frames.source import FrameSource
from smalti.loop import ActiveLoop, StopRule
from smalti.overlap.signatures import WeightedSignatures
from smalti.project.entries import FrameEntry, Role
from smalti.project.project import Project
from smalti.records import Answer, Pair
from smalti.suggestion.strategies import strategy_named


@dataclass(frozen=True, slots=True, eq=False)
class Groundwork:
    """The state before the first question, and who is asked."""

    frames: tuple[FrameEntry, ...]
    used: tuple[int, ...]  # numbers in the source of the frames that the engine knows
    agent: Agent  # the matcher, in numbers of the source
    questions: Questions
    chain: Chain
    start: ActiveLoop


def lay_groundwork(
    project: Project, source: FrameSource, settings: BuildSettings, matcher: Matcher | None, progress: Progress
) -> Groundwork:
    """Read the frames, register the chain, look at them. What is in the project already is not done again."""
    with timed(project, "reading"):
        frames = _read(project, source, settings, progress)
        used = tuple(frame.number for frame in frames if not frame.reason)
    agent = _agent(project, source, matcher)
    questions = Questions(project.store, agent, used)
    with timed(project, "chain"):
        chain = _register(project, questions, len(used), progress)
    with timed(project, "looks"):
        looks = _looks(project, used, settings.seed)
    start = _begin(project, chain, looks, len(used), settings, questions)
    return Groundwork(tuple(frames), used, agent, questions, chain, start)


@contextmanager
def timed(project: Project, stage: str) -> Iterator[None]:
    """Add what happens to the time spent in a stage."""
    began = time.perf_counter()
    try:
        yield
    finally:
        project.store.add_seconds(stage, time.perf_counter() - began)


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
