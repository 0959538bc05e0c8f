"""Everything before the first question: read frames, detect keypoints, register the chain, compute appearance."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop, StopRule
from smalti.agents.agent import Agent
from smalti.agents.matcher import Matcher
from smalti.appearance.patch_words import grid_signatures
from smalti.appearance.visual_words import signatures_of
from smalti.building.build_settings import BuildSettings
from smalti.building.chain import Chain, register_chain
from smalti.building.matcher_choice import FrameViews, Matchers, choose_matchers
from smalti.building.source_questions import Questions
from smalti.errors import InputError, ProjectError, UsageError
from smalti.frame_numbers import FrameNumbers
from smalti.frames.pixels import in_gray
from smalti.frames.quality import FrameMeasure, measure_views, unusable
from smalti.frames.source import FrameSource
from smalti.geometry.homographies import family_named
from smalti.geometry.linear_maps import linear_family_named
from smalti.interchange.checksums import GradualDigests
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.paper.paper_loop import PaperLoop
from smalti.progress import Progress, Step
from smalti.project.array_cache import Cache
from smalti.project.entries import FrameEntry, Role, number_usable
from smalti.project.facts import FieldOfView, Registration, RegistrationFacts, SourceDigests
from smalti.project.project import Project
from smalti.records import Answer, Expectation, Pair
from smalti.registration.keypoints import NO_KEYPOINTS, Keypoints, find_keypoints

LONGEST_BASELINE = 64
"""The longest baseline of dense registration, in frames at video rate. Later, a scope's light and its scene change."""


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """The state before the first question, and the agent."""

    frames: tuple[FrameEntry, ...]
    numbers: FrameNumbers
    agent: Agent  # the matcher for frames far apart, in source numbers
    questions: Questions
    chain: Chain
    start: ActiveLoop | PaperLoop


def prepare(
    project: Project,
    source: FrameSource,
    settings: BuildSettings,
    matcher: Matcher | None,
    progress: Progress,
    least_part: int = 1,
) -> Preparation:
    """Read the frames, register the chain and compute appearance. Results stored in the project are used again.

    No questions are asked about parts of fewer than `least_part` frames that nothing joins to the others.
    """
    frame_views = FrameViews(source, settings.mask)
    with timed(project, "reading"):
        frames = _read(project, source, frame_views, progress)
        numbers = number_usable(frames)
    with timed(project, "chain"):
        asked = _registration(project, settings.registration)
        matchers = choose_matchers(project, frame_views, matcher, asked, numbers)
        questions = Questions(project.store, matchers.of_role, numbers)
        project.store.keep_fact(RegistrationFacts(asked, matchers.name))
        longest_baseline = LONGEST_BASELINE if matchers.is_dense else 0
        chain = _register(project, questions, len(numbers), progress, longest_baseline)
    with timed(project, "appearance"):
        appearance = _appearance(project, frame_views, matchers, numbers, settings.seed)
    start = _begin(project, chain, appearance, numbers, settings, questions, least_part)
    return Preparation(tuple(frames), numbers, matchers.far, questions, chain, start)


@contextmanager
def timed(project: Project, stage: str) -> Iterator[None]:
    """Add the time of the block to that of a stage."""
    began = time.perf_counter()
    try:
        yield
    finally:
        project.store.add_seconds(stage, time.perf_counter() - began)


def _read(project: Project, source: FrameSource, frame_views: FrameViews, progress: Progress) -> list[FrameEntry]:
    store, cache = project.store, project.cache
    while store.discarded:
        progress.say(store.discarded.pop())
    cache.say, cache.find_again = progress.say, partial(_find_again, frame_views)
    if store.fact(FieldOfView) is None:
        project.keep_mask(frame_views.field)
    frames, known = store.frames(), store.fact(SourceDigests)
    if not frames or known is None or not all(cache.has_keypoints(frame.number) for frame in frames):
        digests = GradualDigests(source.files)
        if not frames or not all(cache.has_keypoints(frame.number) for frame in frames):
            frames = read_frames(source, frame_views, cache, progress, digests)
        found = zip([file.name for file in source.files], digests.finish(), strict=True)
        _keep_digests(project, source, SourceDigests(tuple(found)), known)
        store.keep_frames(frames)
    for warning in source.warnings:
        progress.say(f"{source.path}: {warning}")
    if sum(not frame.reason for frame in frames) < 2:
        worst = next(frame for frame in frames if frame.reason)
        raise InputError(f"{source.path}: fewer than two frames are usable; {worst.label} is {worst.reason}")
    return frames


def _keep_digests(project: Project, source: FrameSource, found: SourceDigests, known: SourceDigests | None) -> None:
    """Keep the digests of the source's files, or refuse files that have changed since they were read first."""
    if known is not None and [digest for _, digest in known.files] != [digest for _, digest in found.files]:
        raise ProjectError(
            f"{source.path}: has changed since {project.folder} was built from it; restore it from a backup, or build "
            "into another folder"
        )
    project.store.keep_fact(found)


def _find_again(frame_views: FrameViews, number: int) -> Keypoints:
    try:
        return find_keypoints(*frame_views.read_gray(number))
    except InputError:  # it cannot be decoded
        return NO_KEYPOINTS


def _registration(project: Project, asked: Registration) -> Registration:
    """Return the registration method: as asked for, or as before."""
    before = project.store.fact(RegistrationFacts)
    return asked if asked != "auto" or before is None else before.asked


def _register(project: Project, questions: Questions, frames: int, progress: Progress, longest_baseline: int) -> Chain:
    with progress.stage("chain", frames - 1) as step:

        def ask(pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
            if role is Role.CHAIN:
                step()
            return questions.ask(pair, role, expected)

        return register_chain(frames, project.outline, ask, 2 * frames, longest_baseline)


def _appearance(
    project: Project, frame_views: FrameViews, matchers: Matchers, numbers: FrameNumbers, seed: int
) -> WeightedSignatures:
    signatures = project.cache.array("signatures")
    if signatures is None or len(signatures) != len(numbers):
        if matchers.is_dense:
            signatures = grid_signatures(
                lambda chosen: (frame_views.read_gray(numbers.in_source(frame)) for frame in chosen), len(numbers), seed
            )
        else:
            signatures = signatures_of(map(project.cache.keypoints, numbers), project.outline, seed)
        project.cache.keep_array("signatures", signatures)
    return WeightedSignatures(signatures)


def _begin(
    project: Project,
    chain: Chain,
    appearance: WeightedSignatures,
    numbers: FrameNumbers,
    settings: BuildSettings,
    questions: Questions,
    least_part: int,
) -> ActiveLoop | PaperLoop:
    spent = questions.attempts(Role.CHAIN, Role.BRIDGE, Role.CHECK)
    stop_rule = StopRule(settings.loop_budget(len(numbers), spent), settings.target_px)
    reference = _reference(settings.reference, numbers)
    if settings.method == "paper":
        return PaperLoop.start(
            len(numbers),
            project.outline,
            [landmarks for landmarks in chain.links if landmarks.determine_affine],
            external=appearance,
            family=linear_family_named("affine" if settings.family == "projective" else settings.family),
            reference=reference,
            stop_rule=stop_rule,
        )
    return ActiveLoop.start(
        len(numbers),
        project.outline,
        chain.links,
        external=appearance,
        family=family_named(settings.family),
        reference=reference,
        stop_rule=stop_rule,
        least_part=least_part,
    )


def _reference(wanted: str, numbers: FrameNumbers) -> int | Literal["auto"]:
    """Return the reference frame of the mosaic, in engine numbers."""
    if wanted == "auto":
        return "auto"
    number = int(wanted)
    if number not in numbers:
        raise UsageError(f"reference frame {number}: is not used, name another frame or auto")
    return numbers.in_engine(number)


THREADS = 2
AHEAD = 4
"""Frames read ahead of the keypoint detection."""

FEWEST_KEYPOINTS = 10
MOST_BARE = 0.1
"""Share of all frames. If more have hardly any keypoints, the contrast is low, and the frames are not at fault."""


def read_frames(
    source: FrameSource, frame_views: FrameViews, cache: Cache, progress: Progress, digests: GradualDigests
) -> list[FrameEntry]:
    """Read all frames, store their keypoints, and return which to set aside and why. `digests` read in step."""
    measures: dict[int, FrameMeasure] = {}
    with progress.stage("reading", len(source)) as step, ThreadPoolExecutor(THREADS) as pool:
        numbers: list[int] = []
        views = _through_pool(source, frame_views, cache, pool, numbers, step)
        for place, measured in enumerate(measure_views(views)):
            measures[numbers[place]] = measured
            digests.advance(numbers[-1] / len(source))
    if len(measures) < 2:
        raise InputError(f"{source.path}: fewer than two frames can be decoded; check the file in a player")
    reasons = _reasons(len(source), measures)
    for number in set(range(len(source))) - measures.keys():
        cache.keep_keypoints(number, NO_KEYPOINTS)
    bare = [number for number in measures if number not in reasons and len(cache.keypoints(number)) < FEWEST_KEYPOINTS]
    if len(bare) <= MOST_BARE * len(measures):
        reasons |= dict.fromkeys(bare, "no detail that could be matched")
    return [FrameEntry(n, label, reasons.get(n, "")) for n, label in enumerate(source.labels)]


def _through_pool(
    source: FrameSource,
    frame_views: FrameViews,
    cache: Cache,
    pool: ThreadPoolExecutor,
    numbers: list[int],
    step: Step,
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_] | None]]:
    """Yield the gray frames and their masks in order, while threads detect keypoints. Note each frame's number."""
    waiting: deque[tuple[int, Future[Keypoints] | None]] = deque()

    def finish_one() -> None:
        number, found = waiting.popleft()
        if found is not None:
            cache.keep_keypoints(number, found.result())
        step()

    for number, image in source.read_many(range(len(source))):
        gray, mask = in_gray(image), frame_views.mask(image)
        # Keypoints that an interrupted run has stored are not detected again.
        found = None if cache.has_keypoints(number) else pool.submit(find_keypoints, gray, mask)
        waiting.append((number, found))
        if len(waiting) > AHEAD:
            finish_one()
        numbers.append(number)
        yield gray, mask
    while waiting:
        finish_one()


def _reasons(frames: int, measures: dict[int, FrameMeasure]) -> dict[int, str]:
    read = sorted(measures)
    reasons = {number: "cannot be decoded" for number in range(frames) if number not in measures}
    for place, reason in unusable([measures[number] for number in read]).items():
        reasons[read[place]] = reason
    return reasons
