"""The numbers of a project, as `smalti info` prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smalti.project.facts import Noise, RasterShape
from smalti.project.people import LeftOutErrors, PersonMeasure
from smalti.project.unplaced_frames import UnplacedFrame
from smalti.records import Pair


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """How many frames there are."""

    read: int
    placed: int
    set_aside: int
    not_placed: int
    keyframes: int | None = None  # None if all frames are used
    by_neighbours: int = 0  # of those placed: no match of their own places them


@dataclass(frozen=True, slots=True)
class ChainCounts:
    """How many accepted links the chain has, by their role."""

    links: int
    bridges: int
    checks: int


@dataclass(frozen=True, slots=True)
class LensNumbers:
    """The radial distortion."""

    k1: float
    k2: float
    corner_percent: float  # by which a corner lies farther out without distortion


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInfo:
    """All numbers of a project. Those with a default are known when the build is finished; see `Outcome`."""

    folder: str
    source: str | list[str]
    frames: FrameCounts
    parts: int
    chain: ChainCounts
    asked: int  # questions of the loop
    yes: int
    no: int
    unsure: int
    rejected: int  # links
    unconfirmed: int  # frames
    attempts: int  # pairs that were matched or answered, the chain included
    matched_near: int  # pairs that surely overlap, matched near their expected place; not among the attempts
    tried_again: int  # pairs that were not matched before their place was known; not among the attempts either
    lens: LensNumbers | None
    registered_by: str | None  # the registration method that did best in the trial
    links_by_method: dict[str, int]  # pairs that each registration method found
    raster: RasterShape | None = None
    unplaced: list[UnplacedFrame] = field(default_factory=list)  # frames on no mosaic, why, and what to try
    predicted_error_px: float | None = None
    error_bound_px: float | None = None
    ahead_px: dict[str, float] | None = None
    worth_going_on: bool | None = None
    chain_error_px: float | None = None
    left_out_px: float | None = None
    family: str | None = None
    noise: Noise | None = None
    camera: dict[str, float | None] | None = None
    stopped: str | None = None
    people: list[PersonMeasure] = field(
        default_factory=list
    )  # what known pairs and left-out landmarks say of each person
    left_out_landmarks: LeftOutErrors | None = None  # of all people; None without a mosaic or such landmarks
    seconds: dict[str, float]  # by stage

    @property
    def is_provisional(self) -> bool:
        """Whether no mosaic was finished yet: frames, parts and chain are those that the answers so far join."""
        return self.stopped is None

    def as_json(self) -> dict[str, object]:
        """Return the numbers as `smalti info --json` prints them."""
        return asdict(self)


def count_joined(pairs: Iterable[Pair]) -> tuple[int, int]:
    """Return how many frames pairs join, and into how many parts."""
    ends = np.array([(pair.i, pair.j) for pair in pairs], dtype=np.int64).reshape(-1, 2)
    frames, numbers = np.unique(ends, return_inverse=True)
    if not len(frames):
        return 0, 0
    i, j = numbers.reshape(-1, 2).T
    graph = coo_array((np.ones(len(ends)), (i, j)), shape=(len(frames), len(frames)))
    return len(frames), int(connected_components(graph, directed=False)[0])
