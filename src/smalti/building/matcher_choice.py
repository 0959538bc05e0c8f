"""Choose keypoints or dense registration by trying both; and the part of each frame that registration uses."""

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

from smalti.agents.agent import Agent, Anywhere, Consultation
from smalti.agents.matcher import CallableAgent, DenseAgent, KeypointAgent, Matcher
from smalti.engine.links import map_in_pixels
from smalti.frame_numbers import FrameNumbers
from smalti.frames.field_of_view import read_mask
from smalti.frames.pixels import in_gray
from smalti.frames.source import FrameSource
from smalti.frames.visibility import FrameMasks
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.project.entries import Role
from smalti.project.facts import Fact, Registration
from smalti.project.project import Project
from smalti.records import Landmarks, Pair
from smalti.registration.dense import Prepared, prepare

TRIALS = 6
"""Triangles (n, n + 1, n + 2), spread over the sequence, that are registered in both ways to see which is better."""

GOOD_SHARE, GOOD_LANDMARKS = 0.9, 200
"""Of the trials, and of the median one: keypoints that match so often and so many are enough, and a pair that they do
not match does not overlap."""

CLEARLY_MORE, CLEARLY_CLOSER = 0.1, 0.7
"""Of the trials: who registers so many more pairs is better, else whose triangles close within this share of what the
other's do. Keypoints are quicker, and need not know where to look."""

KEYPOINTS, PIXELS = "keypoints", "all pixels"

NOTHING_PX = 1e6
"""By which triangles fail to close where there are none."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How one way of registering did."""

    share: float  # of the pairs that it found a map of
    landmarks: float  # median
    closing_px: float  # median over the triangles: by how much the way over the middle frame misses the direct one

    @property
    def is_good(self) -> bool:
        """Tell whether there is no need for anything else."""
        return self.share >= GOOD_SHARE and self.landmarks >= GOOD_LANDMARKS

    def is_better_than(self, other: Trial) -> bool:
        """Tell whether this way is clearly the better one."""
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
    """Who is asked: about consecutive frames and their neighbours, and about frames far apart."""

    near: Agent
    far: Agent
    name: str  # of who is asked first, in words
    is_dense: bool = False  # whether looks go by all pixels too

    def of_role(self, role: Role) -> Agent:
        """Return who is asked in a role."""
        return self.far if role is Role.LOOP else self.near


def choose_matchers(
    project: Project,
    frame_views: FrameViews,
    matcher: Matcher | None,
    registration: Registration,
    numbers: FrameNumbers,
) -> Matchers:
    """Return a matcher of the user's, or those that serve this sequence best."""
    if matcher is not None:
        agent = CallableAgent(matcher, project.source.read, project.outline)
        return Matchers(agent, agent, "a matcher of one's own")
    keypoints = KeypointAgent(project.cache.keypoints, project.outline)
    dense = DenseAgent(frame_views.prepared)
    if registration == "keypoints":
        return Matchers(keypoints, keypoints, KEYPOINTS)
    if registration == "dense":
        return Matchers(Consultation([dense, Anywhere(dense)]), dense, PIXELS, is_dense=True)
    trials = _trials(project, keypoints, dense, numbers.used)
    by_keypoints, by_pixels = trials.keypoints, trials.dense
    if by_pixels is None or not by_pixels.is_better_than(by_keypoints):
        near = Consultation([keypoints, dense, Anywhere(dense)])
        return Matchers(near, keypoints if by_pixels is None else Consultation([keypoints, dense]), KEYPOINTS)
    near, far = Consultation([dense, keypoints, Anywhere(dense)]), Consultation([dense, keypoints])
    return Matchers(near, far, PIXELS, is_dense=True)


def _trials(project: Project, keypoints: Agent, dense: Agent, used: Sequence[int]) -> Trials:
    """Return how keypoints do, and how all pixels do where keypoints are not good; found once, then kept."""
    known = project.store.fact(Trials)
    if known is None:
        first = np.unique(np.linspace(0, max(len(used) - 3, 0), TRIALS).round().astype(int))
        triangles = [used[n : n + 3] for n in first]
        by_keypoints = _try(keypoints, triangles, project.outline)
        known = Trials(by_keypoints, None if by_keypoints.is_good else _try(dense, triangles, project.outline))
        project.store.keep_fact(known)
    return known


def _try(agent: Agent, triangles: Sequence[Sequence[int]], outline: Outline) -> Trial:
    asked, counts, closing = 0, [], []
    for frames in triangles:
        pairs = [Pair(i, j) for i, j in combinations(frames, 2)]
        found = [landmarks for pair in pairs if (landmarks := agent.answer(pair).landmarks) is not None]
        asked += len(pairs)
        counts += [len(landmarks) for landmarks in found]
        if len(found) == 3:
            closing.append(_closing_px(found, outline))
    return Trial(
        share=len(counts) / asked,
        landmarks=float(np.median(counts)) if counts else 0.0,
        closing_px=float(np.median(closing)) if closing else NOTHING_PX,
    )


def _closing_px(sides: Sequence[Landmarks], outline: Outline) -> float:
    """Return by how much the way over the middle frame misses the direct one, RMS over the middle of a frame."""
    first_from_second, first_from_third, second_from_third = (map_in_pixels(side, outline) for side in sides)
    points = outline.scaled(0.5).corners
    off = apply_map(first_from_second @ second_from_third, points) - apply_map(first_from_third, points)
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


SAMPLES = 32
USUALLY_SHOWN = 0.9
"""Of the sample: what fewer frames show does not count where the field of view changes."""

MOST_PREPARED = 24
"""Frames prepared for dense registration that stay in memory."""


class FrameViews:
    """Tells of every frame where it shows the scene. What that takes is learned when it is first needed."""

    def __init__(self, source: FrameSource, choice: str) -> None:
        """`choice` is auto, none or the path of a mask."""
        self._source = source
        self._choice = choice
        self._prepared: OrderedDict[int, Prepared] = OrderedDict()

    @cached_property
    def field(self) -> NDArray[np.bool_] | None:
        """Where frames show the scene (h, w), by what they have in common; None for everywhere."""
        if self._masks is None:
            return None
        field = self._masks.field
        if self._masks.disc_changes:
            # What is drawn of a mosaic should not show the rim of any frame, or hardly any.
            field = field & (np.mean([self._masks.of(image) for image in self._sample()], axis=0) > USUALLY_SHOWN)
        return None if field.all() else field

    def mask(self, image: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
        """Return where a frame (h, w, 3) shows the scene, None for everywhere."""
        return None if self._masks is None else self._masks.of(image)

    def look(self, number: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
        """Return a frame in gray (h, w), and where it shows the scene."""
        image = self._source.read(number)
        return in_gray(image), self.mask(image)

    def prepared(self, number: int) -> Prepared:
        """Return a frame as dense registration wants it; the latest used stay in memory."""
        if number not in self._prepared:
            self._prepared[number] = prepare(*self.look(number))
            if len(self._prepared) > MOST_PREPARED:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(number)
        return self._prepared[number]

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
