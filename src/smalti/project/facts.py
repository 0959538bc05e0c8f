"""Facts of a project, each a typed record and one row of its file: source, mask, registration, outcome of the build."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from smalti.errors import SmaltiError
from smalti.frames.source_settings import SourceSettings
from smalti.records import Pair

Method = Literal["smalti", "paper"]
Registration = Literal["auto", "keypoints", "learned", "dense"]

Side = Annotated[int, Field(ge=1, le=100_000)]
"""Of a frame, px."""

Number = Annotated[int, Field(ge=0, le=10_000_000)]
"""Of a frame or an entry."""

Distance = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
"""Between two points, px."""

Text = Annotated[str, Field(max_length=10_000)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Distortion = Annotated[float, Field(ge=-100.0, le=100.0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Fact:
    """A record that a project keeps. The latest one of a kind counts."""

    NAME: ClassVar[str]  # of its row


@dataclass(frozen=True, slots=True)
class Binding:
    """The settings that must be the same for a build to be resumed."""

    source: SourceSettings
    mask: Text  # "auto", "none", or the path of an image or of a folder of images
    seed: int
    matcher: Text  # the name of the user's own matcher, or "keypoints"
    keyframes: Text = "auto"  # "all", or the share of the view that is new in the next one


@dataclass(frozen=True, slots=True)
class SourceFacts(Fact):
    """The source of the frames, and the settings that the project is bound to."""

    NAME: ClassVar[str] = "source"

    location: Text | list[Text]
    fingerprint: Text  # of samples of the files; `SourceDigests` are of all their bytes
    width: Side
    height: Side
    binding: Binding


@dataclass(frozen=True, slots=True)
class SourceDigests(Fact):
    """The digest of every file of the source, in the order of the frames, as they were when the frames were read."""

    NAME: ClassVar[str] = "content of the source"

    files: tuple[tuple[Text, Digest], ...]  # name and digest


@dataclass(frozen=True, slots=True)
class DeliveredDigests(Fact):
    """The digest of every file that was delivered, by its name in the project's folder."""

    NAME: ClassVar[str] = "delivered files"

    files: dict[Text, Digest]


@dataclass(frozen=True, slots=True)
class FieldOfView(Fact):
    """The part of every frame that shows the scene."""

    NAME: ClassVar[str] = "field of view"

    mask: str | None  # packed by `pack_mask`; None for the whole frame


@dataclass(frozen=True, slots=True)
class OwnMasks(Fact):
    """By what each frame's own mask is found, as `FrameMasks`."""

    NAME: ClassVar[str] = "masks of frames"

    field: str  # like the other two packed by `pack_mask`
    overlays: str
    palette: str
    disc_changes: bool
    highlights: Annotated[int, Field(ge=0, le=256)]


@dataclass(frozen=True, slots=True)
class GivenMasks(Fact):
    """The masks that the user gave, one a frame."""

    NAME: ClassVar[str] = "given masks"

    masks: tuple[str, ...]  # packed by `pack_mask`


@dataclass(frozen=True, slots=True)
class Keyframes(Fact):
    """The keyframes of a video, and how the camera moved between them."""

    NAME: ClassVar[str] = "keyframes"

    share: float  # of the view that is new in the next one
    why: tuple[tuple[Number, Text], ...]  # number and reason, in the order of the frames
    tracks: str  # packed by `pack_tracks`


@dataclass(frozen=True, slots=True)
class RegistrationFacts(Fact):
    """How pairs are registered."""

    NAME: ClassVar[str] = "registration"

    asked: Registration
    method: str  # in words


@dataclass(frozen=True, slots=True)
class QuestionsAskedBy(Fact):
    """The method and family whose questions were asked, or "several"."""

    NAME: ClassVar[str] = "questions asked by"

    asker: str


@dataclass(frozen=True, slots=True)
class PredictedErrors(Fact):
    """Errors that were predicted after answers in the annotator, by the key of these answers."""

    NAME: ClassVar[str] = "predicted errors"

    px: dict[str, float]


@dataclass(frozen=True, slots=True)
class LeftOutPlaces(Fact):
    """How far left-out landmarks lie from the finished mosaic."""

    NAME: ClassVar[str] = "left-out landmarks"

    rows: tuple[tuple[Number, Number, Distance, Distance | None], ...]
    """Place of the answer in the log, number among its left-out landmarks, distance and its predicted RMS, px."""


@dataclass(frozen=True, slots=True)
class Noise:
    """By which factor links of each kind err more than their landmarks say."""

    chain: float
    matcher: float
    person: float


@dataclass(frozen=True, slots=True)
class RasterShape:
    """Tiles that a stage took line by line."""

    lines: Number
    length: Number  # tiles of a line
    order: Literal["snake", "rows"]  # there and back, or all lines the same way


@dataclass(frozen=True, slots=True)
class Outcome(Fact):
    """The numbers of the finished mosaic. Frames have their source numbers."""

    NAME: ClassVar[str] = "outcome"

    finished_after: Number  # the revision of the log that the mosaic was computed from
    method: Method
    family: str  # of the maps
    references: tuple[Number, ...]  # a frame a part
    breaks: tuple[Pair, ...]  # consecutive frames that the chain does not join
    unjoined: tuple[Pair, ...]  # those that nothing joins
    lens: tuple[Distortion, Distortion] | None  # k₁ and k₂; None without distortion
    stopped: str  # the reason why no more questions were asked
    noise: Noise
    camera: dict[str, float | None] | None  # deviations of the motion prior; None for the paper's method
    chain_error_px: float | None  # measured on the accepted loops; None without loops
    left_out_px: float | None  # measured on matches not used for a trial fit; None with too few matches
    chain_predicted_px: float
    predicted_error_px: float
    error_bound_px: float | None  # None for the paper's method, like the next two
    ahead_px: dict[str, float] | None  # predicted error by the number of further answers
    worth_going_on: bool | None
    raster: RasterShape | None = None  # None if the frames are none
    by_neighbours: tuple[Number, ...] = ()  # tiles that lie where the raster has them, because nothing matches them
    by_spots: tuple[Number, ...] = ()  # tiles that a few spots place, which several tiles around show too


F = TypeVar("F", bound=Fact)


def pack_fact(fact: Fact) -> str:
    """Return a fact as JSON."""
    return json.dumps(asdict(fact))


def unpack_fact(kind: type[F], packed: str | bytes) -> F:
    """Return the fact of a JSON text; raise ValueError if it is not one of this kind."""
    try:
        # mypy does not know that a class is hashable.
        fact: F = _adapter(kind).validate_json(packed, strict=True)  # type: ignore[arg-type]
    except (ValidationError, SmaltiError) as error:
        raise ValueError(str(error)) from None
    return fact


@cache
def _adapter(kind: type[Fact]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
