"""The numbers of a project, as `smalti info` prints them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from smalti.project.facts import Noise


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """How many frames there are."""

    read: int
    placed: int
    set_aside: int
    not_placed: int


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
    lens: LensNumbers | None
    registered_by: str | None
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
    seconds: dict[str, float]  # by stage

    def as_json(self) -> dict[str, object]:
        """Return the numbers as `smalti info --json` prints them."""
        return asdict(self)
