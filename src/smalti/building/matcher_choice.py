"""Choose the registration methods of a sequence by a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from smalti.agents.agent import Agent, prefetch
from smalti.agents.guided import NARROW_STRIP, GuidedKeypointAgent
from smalti.agents.matcher import CallableAgent, DenseAgent, KeypointAgent, Matcher
from smalti.agents.registration_methods import (
    KEYPOINTS,
    LEARNED,
    OWN,
    PIXELS,
    SPOTS,
    MethodCounts,
    MethodsInTurn,
    PairKind,
    RegistrationMethod,
)
from smalti.agents.spot_agent import FullerAgent, SpotAgent
from smalti.building.frame_views import FrameViews
from smalti.building.learned_matcher import LearnedKeypoints, learned_agent
from smalti.engine.links import map_in_pixels
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.project.entries import AnswerEntry, Role
from smalti.project.facts import Fact, Registration, Text
from smalti.project.project import Project
from smalti.records import Answer, Landmarks, Pair
from smalti.registration.learned_weights import INSTALL, find_weights, require_weights

TRIALS = 6
"""Triangles (n, n + 1, n + 2), spread over the sequence, that are registered with every method."""

GOOD_SHARE, GOOD_LANDMARKS = 0.9, 200
"""Share of matched pairs and median number of landmarks from which on keypoints are good enough.

A pair that such keypoints do not match does not overlap.
"""

CLEARLY_MORE, CLEARLY_CLOSER = 0.1, 0.7
"""A method is better if it registers this share of the pairs more, or else if its closing error is this much smaller.

The second number is the ratio of the closing errors of the triangles. Keypoints are faster and need no initial
position.
"""

LESS_WORTH = 0.8
"""A yes of the methods that do not do best in the trial, compared with a yes of the one that does."""

FAILED_OFTEN = 0.2
"""Share of a sequence's pairs that no method could match, from which on other methods are worth being installed."""

NOTHING_PX = 1e6
"""Closing error if there are no triangles."""

KEYPOINT_SECONDS, SPOT_SECONDS, SECONDS_PER_PIXEL, LEARNED_SECONDS_PER_PIXEL = 0.05, 0.02, 4e-7, 2e-6
"""Processor seconds of a pair by keypoints, by spots, and by all pixels and by learned keypoints for each pixel of a
frame (`benchmarks/near_matches.py`, `fluorescence.py`, `dense.py` and `learned.py`). Their ratio decides, and it is
much the same on all machines."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one registration method in the trial."""

    share: float  # of the pairs that were registered
    landmarks: float  # median
    closing_px: float  # median over the triangles: distance between the composed and the direct map

    @property
    def is_good(self) -> bool:
        """Tell whether no other method is needed."""
        return self.share >= GOOD_SHARE and self.landmarks >= GOOD_LANDMARKS

    def is_better_than(self, other: Trial) -> bool:
        """Tell whether this method is clearly better."""
        if abs(self.share - other.share) > CLEARLY_MORE:
            return self.share > other.share
        return self.closing_px < CLEARLY_CLOSER * other.closing_px


@dataclass(frozen=True, slots=True)
class Trials(Fact):
    """The trials of a project, kept with it."""

    NAME: ClassVar[str] = "trials of registration methods"

    by_method: dict[Text, Trial]  # of keypoints alone where these are good


class Matchers:
    """The registration methods of a sequence, and the agents that ask them."""

    def __init__(
        self,
        methods: Sequence[RegistrationMethod],
        *,
        far: int | None = None,
        near: Agent | None = None,
        guided: Mapping[str, Agent] | None = None,
        learned: LearnedKeypoints | None = None,
    ) -> None:
        """Take the methods, the best one first; the first `far` of them register frames far apart.

        `near` is asked about pairs whose place is known, None if that makes it no faster. Of pairs that were not
        matched before their place was known, methods ask the `guided` agents, by their names.
        """
        self.name = methods[0].name
        self.matches_near = near is not None
        self.tries_again = guided is not None
        self.learned = learned
        guided = {} if guided is None else guided
        self.counts = MethodCounts()
        of_kind = {
            PairKind.NEIGHBOURS: methods,
            PairKind.FAR: methods[:far],
            PairKind.KNOWN: methods[:far] if near is None else [replace(methods[0], agent=near)],
            PairKind.LEFT: [replace(one, agent=guided.get(one.name, one.agent)) for one in methods],
        }
        self._agents = {kind: MethodsInTurn(chosen, kind, self.counts) for kind, chosen in of_kind.items()}

    @property
    def is_dense(self) -> bool:
        """Whether appearance uses all pixels too."""
        return self.name == PIXELS

    @property
    def far(self) -> Agent:
        """The agent for frames far apart."""
        return self._agents[PairKind.FAR]

    def of_role(self, role: Role) -> Agent:
        """Return the agent for a role."""
        return self._agents[kind_of(role)]

    def take(self, entry: AnswerEntry) -> None:
        """Learn from an answer of the log what the methods find."""
        self.counts.take(kind_of(entry.role), entry.answer)


def kind_of(role: Role) -> PairKind:
    """Return the kind of the pairs that are asked about in a role."""
    if role is Role.NEAR:
        return PairKind.KNOWN
    if role is Role.RETRY:
        return PairKind.LEFT
    return PairKind.FAR if role is Role.LOOP else PairKind.NEIGHBOURS


def choose_matchers(
    project: Project,
    frame_views: FrameViews,
    matcher: Matcher | None,
    registration: Registration,
    numbers: FrameNumbers,
) -> Matchers:
    """Return the user's matcher, or the registration methods that suit this sequence."""
    if matcher is not None:
        agent = CallableAgent(matcher, project.source.read, project.outline)
        return Matchers([RegistrationMethod(OWN, agent, KEYPOINT_SECONDS)])
    keypoints = KeypointAgent(project.cache.keypoints, project.outline)
    spots = SpotAgent(frame_views.stars, project.outline)
    dense = DenseAgent(frame_views.prepared)
    weights = require_weights() if registration == "learned" else find_weights()
    learned = None if weights is None else LearnedKeypoints(project.cache.folder, frame_views.read_gray, weights)
    pixels = project.source.width * project.source.height
    methods = [
        RegistrationMethod(KEYPOINTS, keypoints, KEYPOINT_SECONDS),
        RegistrationMethod(PIXELS, dense, SECONDS_PER_PIXEL * pixels, looks_near=True),
    ]
    if learned is not None:
        seconds = LEARNED_SECONDS_PER_PIXEL * pixels
        methods.insert(1, RegistrationMethod(LEARNED, learned_agent(learned, project.outline), seconds))
    near_keypoints = GuidedKeypointAgent(project.cache.keypoints, frame_views.read_gray, project.outline)
    guided: dict[str, Agent] = {KEYPOINTS: near_keypoints, PIXELS: DenseAgent(frame_views.prepared, NARROW_STRIP)}
    if registration != "auto":
        name = {"keypoints": KEYPOINTS, "learned": LEARNED, "dense": PIXELS}[registration]
        [only] = [method for method in methods if method.name == name]
        near = None if name == PIXELS else only.agent
        return Matchers([only], near=near, guided=guided, learned=learned if name == LEARNED else None)
    trials = _trials(project, methods, keypoints, numbers.used)
    methods = rank_by_trials(methods, trials)
    near = keypoints if methods[0].name == KEYPOINTS else None
    if trials.by_method[KEYPOINTS].is_good:
        methods.insert(1, RegistrationMethod(SPOTS, spots, SPOT_SECONDS, value=LESS_WORTH))
        return Matchers(methods, far=1, near=near, guided=guided)
    # A few keypoints among many spots tell the map less precisely than the spots.
    fuller = FullerAgent(keypoints, spots)
    methods = [replace(one, agent=fuller) if one.name == KEYPOINTS else one for one in methods]
    guided[KEYPOINTS] = FullerAgent(near_keypoints, spots)
    return Matchers(methods, near=near, guided=guided, learned=learned)


def rank_by_trials(methods: Sequence[RegistrationMethod], trials: Trials) -> list[RegistrationMethod]:
    """Return the methods with what the trial says of them: the best one first, the others in their order."""
    best, *others = methods
    for method in others:
        trial = trials.by_method.get(method.name)
        if trial is not None and trial.is_better_than(trials.by_method[best.name]):
            best = method
    found = []
    for method in (best, *(one for one in methods if one is not best)):
        trial = trials.by_method.get(method.name)
        share = method.share if trial is None else trial.share
        found.append(replace(method, share=share, value=1.0 if method is best else LESS_WORTH))
    return found


def missing_method(project: Project) -> str:
    """Return what to install if pairs often failed that learned keypoints could match; empty otherwise."""
    trials, answers = project.store.fact(Trials), project.store.answers()
    if find_weights() is not None or trials is None or trials.by_method[KEYPOINTS].is_good:
        return ""
    failed = sum(entry.answer.is_failure for entry in answers)
    if failed < FAILED_OFTEN * len(answers):
        return ""
    return (
        f"{failed} of {len(answers)} pairs could not be matched; learned keypoints may match more of them: run "
        f"`{INSTALL}`, then build into a new folder"
    )


def _trials(
    project: Project, methods: Sequence[RegistrationMethod], keypoints: KeypointAgent, used: Sequence[int]
) -> Trials:
    """Return the trial of keypoints, and of the other methods if keypoints are not good. The result is stored."""
    known = project.store.fact(Trials)
    missing = known is None or not {method.name for method in methods} <= known.by_method.keys()
    if known is None or (missing and not known.by_method[KEYPOINTS].is_good):
        first = np.unique(np.linspace(0, max(len(used) - 3, 0), TRIALS).round().astype(int))
        triangles = [used[n : n + 3] for n in first]
        tried, answers = _try(keypoints, triangles, project.outline)
        by_method = {KEYPOINTS: tried}
        if not tried.is_good:
            least = tried.share - CLEARLY_MORE  # with a smaller share, another method is not better
            for method in methods[1:]:
                by_method[method.name], _ = _try(method.agent, triangles, project.outline, least)
        keypoints.remember(answers)  # most of these pairs are of the chain
        known = Trials(by_method)
        project.store.keep_fact(known)
    return known


def _try(
    agent: Agent, triangles: Sequence[Sequence[int]], outline: Outline, least_share: float = 0.0
) -> tuple[Trial, list[Answer]]:
    """Return the result of an agent, and its answers; stop once it cannot register `least_share` of the pairs."""
    # The pairs farthest apart first: if any, they fail.
    sides = [Pair(*two) for frames in triangles for two in combinations(frames, 2)]
    pairs = sorted(set(sides), key=lambda pair: (pair.i - pair.j, pair.i))
    prefetch(agent, pairs)
    answers: list[Answer] = []
    found: dict[Pair, Landmarks] = {}
    for pair in pairs:
        answers.append(agent.answer(pair))
        landmarks = answers[-1].landmarks
        if landmarks is not None:
            found[pair] = landmarks
        if len(pairs) - len(answers) + len(found) < least_share * len(pairs):
            break
    counts = [len(landmarks) for landmarks in found.values()]
    closing = []
    for frames in triangles:
        closed = [found[pair] for two in combinations(frames, 2) if (pair := Pair(*two)) in found]
        if len(closed) == 3:
            closing.append(_closing_px(closed, outline))
    trial = Trial(
        share=len(counts) / max(len(answers), 1),
        landmarks=float(np.median(counts)) if counts else 0.0,
        closing_px=float(np.median(closing)) if closing else NOTHING_PX,
    )
    return trial, answers


def _closing_px(sides: Sequence[Landmarks], outline: Outline) -> float:
    """Return the RMS distance between the composed and the direct map, over the middle of a frame."""
    first_from_second, first_from_third, second_from_third = (map_in_pixels(side, outline) for side in sides)
    points = outline.scaled(0.5).corners
    off = apply_map(first_from_second @ second_from_third, points) - apply_map(first_from_third, points)
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))
