"""The messages between the page and the program.

They are the single source: `smalti.server.typescript` makes the page's types from them, and a test fails if these are
stale. Frames have source numbers. Points are in distorted pixels of their frame. Maps are 3×3, row by row, flat, and
hold between undistorted pixels (`geometry/lens.py`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from smalti.records import Author, Verdict

FrameNumber = Annotated[int, Field(ge=0, le=10**9)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
Revision = Annotated[int, Field(ge=0, le=2**53)]
Map = Annotated[list[Coordinate], Field(min_length=6, max_length=6)]
PersonName = Annotated[str, Field(max_length=80)]
Stroke = Annotated[list[Annotated[list[Coordinate], Field(min_length=2, max_length=2)]], Field(max_length=5000)]
MOST_LANDMARKS = 1000
LEAST_SIGMA_PX, LARGEST_SIGMA_PX = 1e-6, 1e3


class Message(BaseModel):
    """A message: a frozen value without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Origin(StrEnum):
    """How a landmark got its position."""

    CLICKED = "clicked"
    SNAPPED = "snapped"  # moved to where the frames correlate best
    MATCHED = "matched"  # by the matcher
    ALIGNED = "aligned"  # by all pixels, from where a person had laid the frame
    LAID = "laid"  # where a person has laid the frame, as it is
    TRACED = "traced"  # on a vessel that a person has drawn along in both frames


class Landmark(Message):
    """A point that both frames show. An inactive one is kept but not used."""

    x_i: Coordinate
    y_i: Coordinate
    x_j: Coordinate
    y_j: Coordinate
    origin: Origin = Origin.CLICKED
    active: bool = True
    check: bool = False  # left out of the link to be compared with the mosaic; then it is not active either
    sigma_px: Annotated[float, Field(ge=LEAST_SIGMA_PX, le=LARGEST_SIGMA_PX)] | None = None  # None: its origin's
    along_deg: Annotated[float, Field(ge=-360, le=360)] | None = None  # of its curve in i, free along it; None: a point
    curve: Annotated[int, Field(ge=0, le=1000)] | None = None  # landmarks of a curve have its number


# Requests of the page.


class GiveAnswer(Message):
    """An answer on a pair. `seen_revision` is the revision that the person saw."""

    i: FrameNumber
    j: FrameNumber
    verdict: Verdict
    landmarks: Annotated[list[Landmark], Field(max_length=MOST_LANDMARKS)] = []
    reason: Annotated[str, Field(max_length=1000)] = ""
    seconds: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    person: PersonName = ""  # who gives it
    is_known: bool = False  # as in the question
    seen_revision: Revision


class RemoveAnswer(Message):
    """Take an answer back, whenever it was given."""

    i: FrameNumber
    j: FrameNumber
    seen_revision: Revision


class Step(Message):
    """Undo or redo one thing."""

    seen_revision: Revision


class CheckLandmarks(Message):
    """Ask whether this yes would contradict the state."""

    i: FrameNumber
    j: FrameNumber
    landmarks: Annotated[list[Landmark], Field(max_length=MOST_LANDMARKS)]
    is_known: bool = False  # as in the question


class Side(StrEnum):
    """One of the two frames of a pair."""

    I = "i"  # noqa: E741
    J = "j"


class SnapPoint(Message):
    """Move one side of a landmark to where it correlates best with the other."""

    i: FrameNumber
    j: FrameNumber
    x_i: Coordinate
    y_i: Coordinate
    x_j: Coordinate
    y_j: Coordinate
    moving: Side
    i_from_j: Map  # affine approximation near the point, as far as it is known
    radius: Annotated[float, Field(gt=0, le=200)] = 12.0  # px of the moving frame that are searched


class AlignFrames(Message):
    """Align frame j by all pixels, from where a person has laid it over frame i."""

    i: FrameNumber
    j: FrameNumber
    i_from_j: Annotated[list[Coordinate], Field(min_length=9, max_length=9)]


class TraceVessel(Message):
    """Find the vessel under the strokes that a person has drawn along it in both frames."""

    i: FrameNumber
    j: FrameNumber
    stroke_i: Stroke
    stroke_j: Stroke
    i_from_j: Annotated[list[Coordinate], Field(min_length=9, max_length=9)]  # as it is expected
    sigma_px: Annotated[float, Field(gt=0, le=1e6)] | None  # of this; None: nothing is known


# Responses of the program.


class Stage(StrEnum):
    """What the program is doing."""

    PREPARING = "preparing"
    ASKING = "asking"
    FINISHING = "finishing"
    FAILED = "failed"


class Progress(Message):
    """Progress of a stage. A total of 0 means unknown."""

    name: str
    done: int
    total: int


class ErrorAfter(Message):
    """The predicted error of the mosaic after so many answers."""

    answers: int
    predicted_px: float


class Prediction(Message):
    """The uncertainty of the predicted error, the errors after further answers, and whether these are worthwhile."""

    answers: int  # at the time of the prediction
    bound_px: float  # the error is below this with a probability of 0.9
    ahead: list[ErrorAfter]  # continues where the errors of the state end
    worth_going_on: bool


class Notice(Message):
    """What has changed. Sent to every open page."""

    revision: int
    stage: Stage
    progress: Progress | None
    prediction: Prediction | None = None  # None until it is computed
    working: bool = False  # the matcher is answering questions now


class Queue(StrEnum):
    """Which questions a person sees."""

    ALL = "all"
    DOUBTFUL = "doubtful"  # those of which the matcher is not sure; it answers the others itself


class Counts(Message):
    """Answers of the loop so far."""

    yes: int
    no: int
    unsure: int
    by_person: int


class Sheets(Message):
    """Small pictures of all usable frames, in order, many on each image."""

    count: int
    columns: int
    per_sheet: int
    width: int  # of one small picture
    height: int


class MeasuredPerson(Message):
    """What pairs with known answers say of a person."""

    person: str
    known: int  # pairs answered yes or no
    right: int  # of these
    unsure: int  # answered "cannot tell"
    sigma_px: float | None  # of a coordinate of their landmarks; None without a yes
    sigma_uncertainty_px: float | None


class LensNumbers(Message):
    """The lens: `Lens.undistort` maps a distorted pixel to x (1 + k1|x|² + k2|x|⁴)."""

    centre_x: float
    centre_y: float
    unit_px: float  # unit of x, from the centre
    k1: float
    k2: float


class State(Message):
    """The numbers above the two frames, and the possible actions."""

    revision: int
    stage: Stage
    progress: Progress | None = None
    failure: str | None = None
    name: str
    source: str
    queue: Queue
    width: int = 0
    height: int = 0
    frames: int = 0  # of the source
    usable: int = 0
    counts: Counts = Counts(yes=0, no=0, unsure=0, by_person=0)
    predicted_px: float | None = None
    target_px: float | None = None
    target_met: bool = False  # the bound on the error is below it
    errors: list[ErrorAfter] = []
    undo: str | None = None  # what would be undone, in words
    redo: str | None = None
    stopped: str | None = None  # why no question is left, or why the matcher answers no more, in words
    working: bool = False  # the matcher is answering questions now, and nobody is asked
    parts: int = 0  # number of mosaics that nothing joins yet
    finished: bool = False  # the mosaic in the folder has all answers so far
    folder: str = ""
    sheets: Sheets | None = None
    people: list[MeasuredPerson] = []
    lens: LensNumbers | None = None  # None without distortion
    masked: bool = False  # only part of each frame is valid: see /api/mask.png


class LiveMosaic(Message):
    """The map of every usable frame, to the reference frame of its part."""

    revision: int
    reference: int  # of the largest part
    numbers: list[int]
    maps: list[float]  # mosaic_from_frame, 9 a frame
    sigma_px: list[float]  # of the centre relative to the reference of its part
    parts: list[int]  # 0 for the largest
    confirmed: list[bool]  # False for a frame whose position depends on a single match


class Given(Message):
    """The answer that a pair has."""

    verdict: Verdict
    landmarks: list[Landmark]
    author: Author
    reason: str


class Question(Message):
    """Two frames, why they are asked, and where one is expected in the other."""

    revision: int
    i: int
    j: int
    label_i: str
    label_j: str
    suggested: bool  # by the engine; otherwise the person picked the pair
    overlap: float  # probability of a yes, from all evidence
    position: float  # probability of overlap from the mosaic alone
    appearance: float  # probability of overlap from appearance alone
    joined: bool  # both frames are on one mosaic; otherwise their relative position is unknown
    unknown_px: float  # uncertainty of the relative position
    i_from_j: list[float]  # (3, 3)
    covariance: list[float]  # (8, 8), of the entries of E, units of the frame: i_from_j ← i_from_j exp(E)
    noise: float  # of people's landmarks so far, relative to the usual noise
    answer: Given | None
    is_known: bool = False  # asked to measure the person, who is not told


class Proposal(Message):
    """An answer on a pair that a person may accept: the matcher's, or that of an alignment by all pixels."""

    i: int
    j: int
    verdict: Verdict
    landmarks: list[Landmark]
    reason: str
    sure: bool


class Forecast(Message):
    """The expected effect of a yes on a pair, and the number of answers until the target."""

    revision: int
    i: int
    j: int
    now_px: float
    after_yes_px: float | None  # None if the method does not predict it
    more: int | None  # answers until the target; None without a target, or if it is too far away
    more_is_bound: bool = False  # `more` answers are not enough


class Contradiction(Message):
    """An answer that does not agree with the state before it."""

    i: int
    j: int
    sigmas: float  # as surprising as a normal variable this many σ from its mean
    off_px: float  # RMS, from where the mosaic predicted the landmarks; 0 for a no
    expected_px: float  # uncertainty of that prediction
    rival_i: int | None  # the pair whose answer agrees least with this one
    rival_j: int | None
    rival_author: Author | None
    explanation: str


class Outcome(Message):
    """The result of an answer, an undo or a redo. It is on disk."""

    state: State
    question: Question | None  # the next one
    contradiction: Contradiction | None = None
    done: str  # what was done, in words


class Conflict(Message):
    """Somebody else has changed the answer on this pair meanwhile."""

    explanation: str
    i: int
    j: int
    theirs: Given | None
    state: State


class Refusal(Message):
    """Why a request cannot be done, and what to do."""

    explanation: str


class Checked(Message):
    """The result of a check of landmarks before they are given."""

    problem: str | None  # none, mirrored, far outside: in words
    contradiction: Contradiction | None


class Snapped(Message):
    """The new position of the point, or why it cannot be found."""

    found: bool
    x: float
    y: float
    correlation: float
    reason: str


class TracedVessel(Message):
    """Landmarks on the vessel under two strokes, or why there are none."""

    found: bool
    landmarks: list[Landmark]
    distance_px: float  # RMS between the lines of both frames, across
    reason: str


class AnswerRow(Message):
    """A row of the table of answers."""

    place: int  # in the log
    i: int
    j: int
    role: str
    verdict: Verdict
    author: Author
    person: str  # the name that the person gave
    landmarks: int
    residual_px: float | None  # on the current mosaic
    rejected: bool  # contradicts the others, and is not used
    contradicted: bool  # contradicts the others, and counts less than half or not at all
    reason: str
    seconds: float


class MapKind(StrEnum):
    """What a map of all pairs shows."""

    OVERLAP = "overlap"
    INFORMATIVENESS = "informativeness"
    REWARD = "reward"


class PairMap(Message):
    """A window of an N × N matrix over the usable frames, reduced by maximum."""

    revision: int
    kind: MapKind
    first_row: int  # among the usable frames
    first_column: int
    frames_per_cell: int
    rows: int
    columns: int
    values: str  # base64 of rows × columns bytes, 0 for `smallest` or less, 255 for `largest`
    smallest: float
    largest: float
    logarithmic: bool


class MosaicVersion(StrEnum):
    """One of the two mosaics that can be compared at the end."""

    NOW = "now"
    BEFORE = "before"  # by the chain alone


class TilePyramid(Message):
    """A mosaic as DeepZoom tiles. Its last level has `width` × `height` pixels, and each level before half as many."""

    left: float  # centre of its first pixel at scale 1, in coordinates that both versions share, px of the frames
    top: float
    scale: float  # its pixels for each px of the frames
    width: int
    height: int
    levels: int
    side: int  # of a tile, without what it shares with its neighbours
    overlap: int  # px that a tile shares with each neighbour


class DeliveredFile(Message):
    """A file of the project's folder."""

    name: str
    bytes: int


class FinishedMosaic(Message):
    """The last mosaic that was finished, to be looked at."""

    edition: str  # changes when it is finished again
    now: TilePyramid
    before: TilePyramid | None  # None if the chain alone makes no mosaic that can be drawn
    frames: int  # on it
    error_px: float | None  # predicted
    before_px: float | None  # the same by the chain alone
    is_newest: bool  # it has all answers
    files: list[DeliveredFile]
    folder: str
