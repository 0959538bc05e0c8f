"""What a project's file holds, a record a row."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smalti.records import Answer, Homographies, Pair


class Role(StrEnum):
    """Why a pair was asked."""

    CHAIN = "chain"  # consecutive frames
    BRIDGE = "bridge"  # over a consecutive pair that failed
    CHECK = "check"  # over some frames at once, to measure the noise and hold the chain
    LOOP = "loop"  # suggested by the engine
    ASIDE = "aside"  # to place a frame that had been set aside


class Act(StrEnum):
    """What an entry of the log does."""

    GIVE = "give"  # an answer; a later one on the same pair takes its place
    REMOVE = "remove"
    UNDO = "undo"  # the latest act of a person that stands
    REDO = "redo"  # the latest act that was undone


class LinkState(StrEnum):
    """What became of a yes."""

    BELIEVED = "believed"
    REJECTED = "held"  # contradicts the others, and is not used; "held" is what files call it


@dataclass(frozen=True, slots=True)
class FrameEntry:
    """A frame of the source; one with a reason was set aside."""

    number: int
    label: str
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerEntry:
    """An answer and the circumstances."""

    answer: Answer
    role: Role
    seconds: float  # that it took to answer
    details: str = ""  # JSON for the page that reopens the answer; nothing else reads it
    place: int = 0  # in the log, from 1; 0 for an answer that is not kept yet
    time: float = 0.0  # when it was given, in unix seconds; 0 if that is not known


@dataclass(frozen=True, slots=True, eq=False)
class LogEntry:
    """A line of the log; only a give has an answer. An undo or redo names the pair of what it undoes or redoes."""

    place: int  # from 1, in the order in which they were written
    act: Act
    pair: Pair | None
    answer: AnswerEntry | None


@dataclass(frozen=True, slots=True)
class LinkEntry:
    """What the finished mosaic says of a yes."""

    pair: Pair
    state: LinkState
    chi2: float  # of 8 degrees, against all other links
    weight: float  # between 0 and 1, in the final fit
    residual_px: float  # RMS of its landmarks on the final mosaic


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where a frame lies: on which mosaic, by which maps, how surely."""

    number: int
    part: int  # from 0, the largest first
    chain: Homographies  # (3, 3): by the chain alone
    final: Homographies  # (3, 3), of straight pixels: see `Project.lens`
    sigma_px: float  # of its centre relative to the part's reference frame, predicted
