"""Everything before the first question: read frames, detect keypoints, register the chain, compute appearance."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop
from smalti.agents.agent import Agent
from smalti.agents.matcher import DenseAgent, Matcher
from smalti.appearance.keypoint_likeness import likeness_of, pack_likeness, unpack_likeness
from smalti.appearance.patch_words import grid_signatures
from smalti.appearance.visual_words import signatures_of
from smalti.building.build_settings import BuildSettings
from smalti.building.chain import Chain, register_chain
from smalti.building.frame_views import FrameViews
from smalti.building.keyframes import USUAL_SHARE, Frame, KeyframeChooser, parse_share
from smalti.building.matcher_choice import Matchers, choose_matchers
from smalti.building.raster import Places, places_of
from smalti.building.source_questions import Questions
from smalti.compiled import cores
from smalti.errors import InputError, ProjectError, UsageError
from smalti.frame_numbers import FrameNumbers
from smalti.frames.pixels import in_gray
from smalti.frames.quality import ENOUGH_SPOTS, FrameMeasure, measure_views, unusable
from smalti.frames.source import FrameSource
from smalti.frames.video import VideoSource
from smalti.geometry.homographies import family_named
from smalti.geometry.linear_maps import linear_family_named
from smalti.geometry.outline import Outline
from smalti.interchange.checksums import GradualDigests
from smalti.loop_setup import StopRule
from smalti.overlap.pair_likeness import PairLikeness
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.paper.paper_loop import PaperLoop
from smalti.progress import Progress
from smalti.project.array_cache import Cache
from smalti.project.entries import BETWEEN, FrameEntry, Role, number_usable
from smalti.project.facts import FieldOfView, Keyframes, Registration, RegistrationFacts, SourceDigests
from smalti.project.project import Project
from smalti.records import Answer, Expectation, Pair
from smalti.registration.constellation import Stars
from smalti.registration.dense import DenseSettings
from smalti.registration.keypoints import NO_KEYPOINTS, SIFT_MATCHES, Keypoints, find_keypoints
from smalti.registration.learned_keypoints import LEARNED_MATCHES
from smalti.rendering.frame_survey import Survey

LAID_BY_A_PERSON = DenseSettings(least_shared=0.08, least_excess=6.0, least_likeness=0.2)
"""Thresholds where a person has found the place: it need not be told from others, and the person sees the result."""

LONGEST_BASELINE = 64
"""The longest baseline of dense registration, in frames at video rate. Later, a scope's light and its scene change."""


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """The state before the first question, and the agent."""

    frames: tuple[FrameEntry, ...]
    numbers: FrameNumbers
    places: tuple[int, ...]  # of all frames in the sequence, those that are missing counted
    agent: Agent  # the matcher for frames far apart, in source numbers
    by_pixels: DenseAgent  # aligns frames that a person has laid over each other
    stars_of: Callable[[int], Stars]  # the spots of a frame of the source
    questions: Questions
    chain: Chain
    start: ActiveLoop | PaperLoop
    matches_near: bool  # whether pairs whose place is known are matched faster
    tries_again: bool  # whether pairs that were not matched are tried again where their place is known


def prepare(
    project: Project,
    source: FrameSource,
    settings: BuildSettings,
    matcher: Matcher | None,
    progress: Progress,
    least_part: int = 1,
    *,
    until_enough: bool = False,
) -> Preparation:
    """Read the frames, register the chain and compute appearance. Results stored in the project are used again.

    No questions are asked about parts of fewer than `least_part` frames that nothing joins to the others. If the
    settings have neither a budget nor a target, questions are asked `until_enough`: while they are worth their time.
    """
    frame_views = FrameViews(source, settings.mask, project.finder)
    with timed(project, "reading"):
        frames = _read(project, source, frame_views, settings.keyframes, progress)
        numbers = number_usable(frames)
    asked = _registration(project, settings.registration)
    with timed(project, "chain"):
        matchers = choose_matchers(project, frame_views, matcher, asked, numbers)
    if settings.keyframes == "auto" and matchers.is_dense and any(frame.is_between for frame in frames):
        # Where contrast is low, a camera is followed less surely than all pixels of all frames are registered.
        with timed(project, "reading"):
            frames = _read(project, source, frame_views, "all", progress, again=True)
            numbers = number_usable(frames)
        matchers = choose_matchers(project, frame_views, matcher, asked, numbers)
    with timed(project, "chain"):
        questions = Questions(project.store, matchers.of_role, numbers, matchers.take)
        project.store.keep_fact(RegistrationFacts(asked, matchers.name))
        longest_baseline = LONGEST_BASELINE if matchers.is_dense else 0
        places = tuple(places_of([frame.label for frame in frames]))
        used = Places([places[number] for number in numbers], places[-1] + 1)
        chain = _register(project, questions, used, progress, longest_baseline)
    with timed(project, "appearance"):
        appearance = _appearance(project, frame_views, matchers, numbers, settings)
    spent = questions.attempts(Role.CHAIN, Role.BRIDGE, Role.CHECK)
    budget = settings.loop_budget(len(numbers), spent)
    if chain.raster is not None and settings.budget is None:
        budget = 0  # all neighbours were asked about, and other tiles do not overlap
    stop_rule = StopRule(
        budget,
        settings.target_px,
        when_enough=until_enough and settings.budget is None and settings.target_px is None,
    )
    start = _begin(project, chain, appearance, numbers, settings, stop_rule, least_part)
    matches_near = matchers.matches_near and chain.raster is None
    by_pixels = DenseAgent(frame_views.prepared, LAID_BY_A_PERSON)
    return Preparation(
        tuple(frames),
        numbers,
        places,
        matchers.far,
        by_pixels,
        frame_views.stars,
        questions,
        chain,
        start,
        matches_near,
        matchers.tries_again,
    )


@contextmanager
def timed(project: Project, stage: str) -> Iterator[None]:
    """Add the time of the block to that of a stage."""
    began = time.perf_counter()
    try:
        yield
    finally:
        project.store.add_seconds(stage, time.perf_counter() - began)


def _read(
    project: Project,
    source: FrameSource,
    frame_views: FrameViews,
    keyframes: str,
    progress: Progress,
    *,
    again: bool = False,
) -> list[FrameEntry]:
    store, cache = project.store, project.cache
    while store.discarded:
        progress.say(store.discarded.pop())
    cache.say, cache.find_again = progress.say, partial(_find_again, frame_views)
    if store.fact(FieldOfView) is None:
        project.keep_mask(frame_views.field, frame_views.finder)
    frames, known = store.frames(), store.fact(SourceDigests)
    is_known = not again and _is_known(project, frames)
    if not is_known or known is None:
        digests = GradualDigests(source.files)
        if not is_known:
            share = _share(keyframes, source, frames)
            frames, chosen = read_frames(source, frame_views, cache, project.survey(), progress, digests, share)
            if chosen is not None:
                store.keep_fact(chosen)
        found = zip([file.name for file in source.files], digests.finish(), strict=True)
        _keep_digests(project, source, SourceDigests(tuple(found)), known)
        store.keep_frames(frames)
    for warning in source.warnings:
        progress.say(f"{source.path}: {warning}")
    if sum(not frame.reason for frame in frames) < 2:
        worst = next(frame for frame in frames if frame.reason)
        raise InputError(f"{source.path}: fewer than two frames are usable; {worst.label} is {worst.reason}")
    return frames


def _is_known(project: Project, frames: Sequence[FrameEntry]) -> bool:
    """Tell whether nothing is left to be read."""
    if any(frame.is_between for frame in frames) and project.store.fact(Keyframes) is None:
        return False
    return bool(frames) and all(project.cache.has_keypoints(frame.number) for frame in frames if not frame.reason)


def _share(asked: str, source: FrameSource, frames: Sequence[FrameEntry]) -> float | None:
    """Return which share of the view is new in the next keyframe; None if all frames are used."""
    share = parse_share(asked)
    if share is not None or asked == "all":
        return share
    # A project that uses all frames goes on doing so: its contrast is low, or an older Smalti has begun it.
    uses_all = len(frames) > 0 and not any(frame.is_between for frame in frames)
    return USUAL_SHARE if isinstance(source, VideoSource) and not uses_all else None


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


def _register(
    project: Project, questions: Questions, places: Places, progress: Progress, longest_baseline: int
) -> Chain:
    frames = len(places.shown)
    with progress.stage("chain", frames - 1) as step:

        def ask(pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
            if role is Role.CHAIN:
                step()
            return questions.ask(pair, role, expected)

        return register_chain(frames, project.outline, ask, 2 * frames, longest_baseline, places, questions.prefetch)


def _appearance(
    project: Project, frame_views: FrameViews, matchers: Matchers, numbers: FrameNumbers, settings: BuildSettings
) -> WeightedSignatures | PairLikeness:
    """Return what appearance says: how alike learned keypoints are where others are not good and weights are installed,
    else words of patches where frames are registered by all pixels, else how alike keypoints are.

    The paper's method has its own words, of keypoints.
    """
    learned = matchers.learned
    if settings.method == "paper" or (matchers.is_dense and learned is None):
        return WeightedSignatures(_signatures(project, frame_views, matchers, numbers, settings.seed))
    name = "likeness" if learned is None else "learned-likeness"
    packed = project.cache.array(name)
    likeness = None if packed is None else unpack_likeness(packed, len(numbers))
    if likeness is None:
        found = map(project.cache.keypoints if learned is None else learned.of, numbers)
        matched = SIFT_MATCHES if learned is None else LEARNED_MATCHES
        likeness = likeness_of(found, len(numbers), settings.seed, matched)
        project.cache.keep_array(name, pack_likeness(likeness))
    return PairLikeness(likeness)


def _signatures(
    project: Project, frame_views: FrameViews, matchers: Matchers, numbers: FrameNumbers, seed: int
) -> NDArray[np.float64]:
    signatures = project.cache.array("signatures")
    if signatures is None or len(signatures) != len(numbers):
        if matchers.is_dense:
            signatures = grid_signatures(
                lambda chosen: (frame_views.read_gray(numbers.in_source(frame)) for frame in chosen), len(numbers), seed
            )
        else:
            signatures = signatures_of(map(project.cache.keypoints, numbers), project.outline, seed)
        project.cache.keep_array("signatures", signatures)
    return signatures


def _begin(
    project: Project,
    chain: Chain,
    appearance: WeightedSignatures | PairLikeness,
    numbers: FrameNumbers,
    settings: BuildSettings,
    stop_rule: StopRule,
    least_part: int,
) -> ActiveLoop | PaperLoop:
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
        near = min(numbers, key=lambda one: abs(one - number))
        raise UsageError(f"reference frame {number}: is not used, name another frame, such as {near}, or auto")
    return numbers.in_engine(number)


NOT_DECODED = "cannot be decoded"

AHEAD = 2
"""Frames read ahead of the keypoint detection, per core."""

FEWEST_KEYPOINTS = 10
MOST_BARE = 0.1
RICH_SHARE, USUAL_KEYPOINTS = 0.25, 100
"""Frames with hardly any keypoints are at fault if they are at most a share of all, or if so large a share has so many.
Otherwise the contrast is low throughout."""


def read_frames(
    source: FrameSource,
    frame_views: FrameViews,
    cache: Cache,
    survey: Survey,
    progress: Progress,
    digests: GradualDigests,
    share: float | None = None,
) -> tuple[list[FrameEntry], Keyframes | None]:
    """Read all frames, store the keypoints of those that the engine uses, and return why it does not use the others.

    With a `share`, keyframes are chosen, and returned too. `digests` read in step.
    """
    outline = Outline.of_pixels(source.width, source.height)
    chooser = None if share is None else KeyframeChooser(share, outline, frame_views.field)
    measures: dict[int, FrameMeasure] = {}
    with progress.stage("reading", len(source)) as step, ThreadPoolExecutor(cores()) as pool:
        detection = _Detection(cache, survey, pool)
        for frame in _measured(source, frame_views):
            measures[frame.number] = frame.measured
            for chosen in (frame,) if chooser is None else chooser.take(frame):
                detection.begin(chosen)
            digests.advance(frame.number / len(source))
            step()
        for chosen in () if chooser is None else chooser.finish():
            detection.begin(chosen)
        detection.finish()
    if len(measures) < 2:
        raise InputError(f"{source.path}: fewer than two frames can be decoded; check the file in a player")
    reasons = _reasons(len(source), measures, chooser)
    for number in set(range(len(source))) - measures.keys():
        cache.keep_keypoints(number, NO_KEYPOINTS)
    used = [number for number in measures if number not in reasons]
    counts = {number: len(cache.keypoints(number)) for number in used}
    bare = [
        number for number, count in counts.items() if count < FEWEST_KEYPOINTS and measures[number].spots < ENOUGH_SPOTS
    ]
    rich = sum(count >= USUAL_KEYPOINTS for count in counts.values())
    every = len(measures) if chooser is None else len(used)
    if len(bare) <= MOST_BARE * every or rich >= RICH_SHARE * every:
        reasons |= dict.fromkeys(bare, "no detail that could be matched")
    frames = [FrameEntry(n, label, reasons.get(n, "")) for n, label in enumerate(source.labels)]
    return frames, None if chooser is None else chooser.record


def _measured(source: FrameSource, frame_views: FrameViews) -> Iterator[Frame]:
    """Yield the frames in gray, with their masks and measures."""
    seen: deque[tuple[int, NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_] | None]] = deque()

    def views() -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_] | None]]:
        for number, image in source.read_many(range(len(source))):
            gray, mask = in_gray(image), frame_views.mask(number, image)
            seen.append((number, image, gray, mask))
            yield gray, mask

    for measured in measure_views(views()):
        yield Frame(*seen.popleft(), measured)


class _Detection:
    """Detects keypoints in threads, and stores them. Few frames wait at a time."""

    def __init__(self, cache: Cache, survey: Survey, pool: ThreadPoolExecutor) -> None:
        self._cache, self._survey, self._pool = cache, survey, pool
        self._waiting: deque[tuple[int, Future[Keypoints]]] = deque()

    def begin(self, frame: Frame) -> None:
        # Keypoints that an interrupted run has stored are not detected again.
        if not self._cache.has_keypoints(frame.number):
            self._waiting.append((frame.number, self._pool.submit(_look_at, self._survey, frame)))
        if len(self._waiting) > AHEAD * cores():
            self._store()

    def finish(self) -> None:
        while self._waiting:
            self._store()

    def _store(self) -> None:
        number, found = self._waiting.popleft()
        self._cache.keep_keypoints(number, found.result())


def _look_at(survey: Survey, frame: Frame) -> Keypoints:
    # The rendering then need not decode the frame once more to compare its light.
    survey.keep(frame.number, frame.image)
    return find_keypoints(frame.gray, frame.mask)


def _reasons(frames: int, measures: dict[int, FrameMeasure], chooser: KeyframeChooser | None) -> dict[int, str]:
    """Return why the engine does not use frames: what is wrong with them, or that they lie between keyframes."""
    read = sorted(measures)
    reasons = {number: NOT_DECODED for number in range(frames) if number not in measures}
    measured = [measures[number] for number in read]
    if chooser is not None:
        # A camera that stands still repeats itself, and its frames are followed like all others.
        measured = [replace(one, change=math.inf, largest_change=math.inf) for one in measured]
    for place, reason in unusable(measured).items():
        reasons[read[place]] = reason
    if chooser is not None:
        for number in set(read) - chooser.why.keys() - reasons.keys():
            reasons[number] = BETWEEN if number in chooser.tracks else "could not be followed"
    return reasons
