"""Choose keypoint or dense registration by a trial of both; find the part of each frame that registration uses."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from smalti.agents.agent import Agent, Anywhere, Consultation, prefetch
from smalti.agents.matcher import CallableAgent, DenseAgent, KeypointAgent, Matcher
from smalti.agents.spot_agent import FullerAgent, SpotAgent
from smalti.engine.links import map_in_pixels
from smalti.errors import InputError
from smalti.frame_numbers import FrameNumbers
from smalti.frames.field_of_view import read_mask
from smalti.frames.pixels import in_gray
from smalti.frames.source import FrameSource
from smalti.frames.spots import NO_SPOTS, find_spots
from smalti.frames.visibility import FrameMasks
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.project.entries import Role
from smalti.project.facts import Fact, Registration
from smalti.project.project import Project
from smalti.records import Answer, Landmarks, Pair
from smalti.registration.constellation import Stars
from smalti.registration.dense import Prepared, prepare

TRIALS = 6
"""Triangles (n, n + 1, n + 2), spread over the sequence, that are registered with both methods."""

GOOD_SHARE, GOOD_LANDMARKS = 0.9, 200
"""Share of matched pairs and median number of landmarks from which on keypoints are good enough.

A pair that such keypoints do not match does not overlap.
"""

CLEARLY_MORE, CLEARLY_CLOSER = 0.1, 0.7
"""A method is better if it registers this share of the pairs more, or else if its closing error is this much smaller.

The second number is the ratio of the closing errors of the triangles. Keypoints are faster and need no initial
position.
"""

KEYPOINTS, PIXELS = "keypoints", "all pixels"

NOTHING_PX = 1e6
"""Closing error if there are no triangles."""


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

    NAME: ClassVar[str] = "registration trials"

    keypoints: Trial
    dense: Trial | None  # None where keypoints are good


@dataclass(frozen=True, slots=True, eq=False)
class Matchers:
    """The agents for consecutive frames and their neighbours, and for frames far apart."""

    near: Agent
    far: Agent
    name: str  # of the first agent, in words
    is_dense: bool = False  # whether appearance uses all pixels too
    known: Agent | None = None  # for pairs whose place is known; None if that makes it no faster

    def of_role(self, role: Role) -> Agent:
        """Return the agent for a role."""
        if role is Role.NEAR and self.known is not None:
            return self.known
        return self.far if role.is_after_chain else self.near


def choose_matchers(
    project: Project,
    frame_views: FrameViews,
    matcher: Matcher | None,
    registration: Registration,
    numbers: FrameNumbers,
) -> Matchers:
    """Return the user's matcher, or the matchers that suit this sequence best."""
    if matcher is not None:
        agent = CallableAgent(matcher, project.source.read, project.outline)
        return Matchers(agent, agent, "a matcher of one's own")
    keypoints = KeypointAgent(project.cache.keypoints, project.outline)
    dense = DenseAgent(frame_views.prepared)
    if registration == "keypoints":
        return Matchers(keypoints, keypoints, KEYPOINTS, known=keypoints)
    if registration == "dense":
        return Matchers(Consultation([dense, Anywhere(dense)]), dense, PIXELS, is_dense=True)
    trials = _trials(project, keypoints, dense, numbers.used)
    by_keypoints, by_pixels = trials.keypoints, trials.dense
    spots = SpotAgent(frame_views.stars, project.outline)
    if by_pixels is None or not by_pixels.is_better_than(by_keypoints):
        if by_pixels is None:
            return Matchers(
                Consultation([keypoints, spots, dense, Anywhere(dense)]), keypoints, KEYPOINTS, known=keypoints
            )
        fuller = FullerAgent(keypoints, spots)
        near, far = Consultation([fuller, dense, Anywhere(dense)]), Consultation([fuller, dense])
        return Matchers(near, far, KEYPOINTS, known=keypoints)
    near, far = Consultation([dense, keypoints, spots, Anywhere(dense)]), Consultation([dense, keypoints])
    return Matchers(near, far, PIXELS, is_dense=True)


def _trials(project: Project, keypoints: KeypointAgent, dense: Agent, used: Sequence[int]) -> Trials:
    """Return the trial of keypoints, and of dense registration if keypoints are not good. The result is stored."""
    known = project.store.fact(Trials)
    if known is None:
        first = np.unique(np.linspace(0, max(len(used) - 3, 0), TRIALS).round().astype(int))
        triangles = [used[n : n + 3] for n in first]
        by_keypoints, answers = _try(keypoints, triangles, project.outline)
        by_pixels = None
        if not by_keypoints.is_good:
            least = by_keypoints.share - CLEARLY_MORE  # with a smaller share, dense registration is not better
            by_pixels, _ = _try(dense, triangles, project.outline, least)
        keypoints.remember(answers)  # most of these pairs are of the chain
        known = Trials(by_keypoints, by_pixels)
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


SAMPLES = 32
USUALLY_SHOWN = 0.9
"""Share of the sampled frames. If the field of view changes, a pixel that fewer frames show is not valid."""

MOST_PREPARED = 24
"""Frames prepared for dense registration that stay in memory."""


MOST_STARS = 2000
"""Frames whose spots stay in memory: a few thousand bytes each."""


class FrameViews:
    """The valid part of every frame. Whatever is needed is computed on first use."""

    def __init__(self, source: FrameSource, choice: str) -> None:
        """`choice` is auto, none or the path of a mask."""
        self._source = source
        self._choice = choice
        self._prepared: OrderedDict[int, Prepared] = OrderedDict()
        self._stars: OrderedDict[int, Stars] = OrderedDict()

    @cached_property
    def field(self) -> NDArray[np.bool_] | None:
        """The valid pixels (h, w) common to the frames; None if all are valid."""
        if self._masks is None:
            return None
        field = self._masks.field
        if self._masks.disc_changes:
            # A mosaic should show the rim of hardly any frame.
            field = field & (np.mean([self._masks.of(image) for image in self._sample()], axis=0) > USUALLY_SHOWN)
        return None if field.all() else field

    def mask(self, image: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
        """Return the valid pixels of a frame (h, w, 3); None if all are valid."""
        return None if self._masks is None else self._masks.of(image)

    def read_gray(self, number: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
        """Return a frame in gray (h, w), and its valid pixels."""
        image = self._source.read(number)
        return in_gray(image), self.mask(image)

    def prepared(self, number: int) -> Prepared:
        """Return a frame prepared for dense registration. The latest ones stay in memory."""
        if number not in self._prepared:
            self._prepared[number] = prepare(*self.read_gray(number))
            if len(self._prepared) > MOST_PREPARED:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(number)
        return self._prepared[number]

    def stars(self, number: int) -> Stars:
        """Return the spots of a frame; none if it has no flat ground or cannot be decoded. The latest are kept."""
        if number not in self._stars:
            try:
                spots = find_spots(*self.read_gray(number))
            except InputError:
                spots = NO_SPOTS
            self._stars[number] = Stars.of(spots.points, spots.strengths, spots.sigmas)
            if len(self._stars) > MOST_STARS:
                self._stars.popitem(last=False)
        self._stars.move_to_end(number)
        return self._stars[number]

    @cached_property
    def _masks(self) -> FrameMasks | None:
        source = self._source
        if self._choice == "none":
            return None
        field = None
        if self._choice != "auto":
            field = read_mask(Path(self._choice), source.width, source.height, scale=source.scale)
        return FrameMasks.of_sample(self._sample(), field)

    def _sample(self) -> Iterator[NDArray[np.uint8]]:
        """Yield some frames spread over the sequence."""
        frames = len(self._source)
        numbers = np.unique(np.linspace(0, frames - 1, min(SAMPLES, frames)).round().astype(int))
        return (image for _, image in self._source.read_many(numbers.tolist()))
