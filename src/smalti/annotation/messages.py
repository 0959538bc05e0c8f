"""What the page and the program say to each other.

The one source of truth: `smalti.server.typescript` makes the page's types from these, a test fails where they are
stale. Frames are counted as in the source, points are in pixels as they are seen in their frame. Maps are 3×3, row by
row, flat, and hold between straight pixels (`geometry/lens.py`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from smalti.records import Author, Verdict

FrameNumber = Annotated[int, Field(ge=0, le=10**9)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
Revision = Annotated[int, Field(ge=0, le=2**53)]
Map = Annotated[list[float], Field(min_length=6, max_length=6)]
MOST_LANDMARKS = 1000


class Message(BaseModel):
    """A message: a value, with nothing in it that the other side does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Origin(StrEnum):
    """How a landmark came to its place."""

    CLICKED = "clicked"
    SNAPPED = "snapped"  # moved to where the frames correlate best
    MATCHED = "matched"  # by the matcher


class Landmark(Message):
    """A point that both frames show; one that is not active is kept but does not count."""

    x_i: Coordinate
    y_i: Coordinate
    x_j: Coordinate
    y_j: Coordinate
    origin: Origin = Origin.CLICKED
    active: bool = True


# What the page asks.


class GiveAnswer(Message):
    """An answer on a pair; `seen_revision` is the revision that the person had before their eyes."""

    i: FrameNumber
    j: FrameNumber
    verdict: Verdict
    landmarks: Annotated[list[Landmark], Field(max_length=MOST_LANDMARKS)] = []
    reason: Annotated[str, Field(max_length=1000)] = ""
    seconds: Annotated[float, Field(ge=0, le=1e6)] = 0.0
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
    """Would this yes contradict what is known?"""

    i: FrameNumber
    j: FrameNumber
    landmarks: Annotated[list[Landmark], Field(max_length=MOST_LANDMARKS)]


class Side(StrEnum):
    """One of the two frames of a pair."""

    I = "i"  # noqa: E741
    J = "j"


class SnapPoint(Message):
    """Move one side of a landmark to where it looks like the other."""

    i: FrameNumber
    j: FrameNumber
    x_i: Coordinate
    y_i: Coordinate
    x_j: Coordinate
    y_j: Coordinate
    moving: Side
    i_from_j: Map  # affine, near the point, as well as it is known: how the frames are turned to each other
    radius: Annotated[float, Field(gt=0, le=200)] = 12.0  # px of the moving frame that are searched


# What the program says.


class Stage(StrEnum):
    """What the program is doing."""

    PREPARING = "preparing"
    ASKING = "asking"
    FINISHING = "finishing"
    FAILED = "failed"


class Progress(Message):
    """How far a stage of the work has come; a total of 0 is not known."""

    name: str
    done: int
    total: int


class ErrorAfter(Message):
    """The predicted error of the mosaic after so many answers."""

    answers: int
    predicted_px: float


class Prediction(Message):
    """How sure the predicted error is, what further answers would bring, and whether they are worth while."""

    answers: int  # when it was foretold
    bound_px: float  # the error is below this nine times of ten
    ahead: list[ErrorAfter]  # goes on where the state's errors end
    worth_going_on: bool


class Notice(Message):
    """What has changed; sent to every open page."""

    revision: int
    stage: Stage
    progress: Progress | None
    prediction: Prediction | None = None  # computed while people look: None until it is known


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
    """Small pictures of all usable frames, in their order, many on one image each."""

    count: int
    columns: int
    per_sheet: int
    width: int  # of one small picture
    height: int


class LensNumbers(Message):
    """What bends straight pixels: `Lens.undistort` takes one that is seen to x (1 + k1|x|² + k2|x|⁴)."""

    centre_x: float
    centre_y: float
    unit_px: float  # in which x counts, from the centre
    k1: float
    k2: float


class State(Message):
    """Everything above the two frames, and what can be done."""

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
    stopped: str | None = None  # why nothing is asked any more, in words
    parts: int = 0  # mosaics that nothing joins yet
    finished: bool = False  # the mosaic in the folder is that of the answers so far
    folder: str = ""
    sheets: Sheets | None = None
    lens: LensNumbers | None = None  # None where nothing is bent
    masked: bool = False  # frames show the scene in part of them only: see /api/mask.png


class LiveMosaic(Message):
    """Where every usable frame lies now, on the plane of its part's reference frame."""

    revision: int
    reference: int  # of the largest part
    numbers: list[int]
    maps: list[float]  # mosaic_from_frame, 9 a frame
    sigma_px: list[float]  # of the centre relative to the reference of its part
    parts: list[int]  # 0 for the largest


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
    overlap: float  # probability that this is answered yes, all things considered
    position: float  # probability of overlap by the mosaic alone
    appearance: float  # and by appearance alone
    joined: bool  # both frames are on one mosaic; otherwise nothing is known of their places
    unknown_px: float  # how uncertain the place of one in the other is
    i_from_j: list[float]  # (3, 3)
    covariance: list[float]  # (8, 8), of the entries of E, units of the frame: i_from_j ← i_from_j exp(E)
    noise: float  # of people's landmarks so far, times what is usual
    answer: Given | None


class Proposal(Message):
    """What the matcher says of a pair."""

    i: int
    j: int
    verdict: Verdict
    landmarks: list[Landmark]
    reason: str
    sure: bool


class Forecast(Message):
    """What a yes on a pair would bring, and how many answers the target is away."""

    revision: int
    i: int
    j: int
    now_px: float
    after_yes_px: float | None  # None where the method does not tell
    more: int | None  # answers until the target; None where there is none, or it is too far to tell
    more_is_bound: bool = False  # `more` answers are not enough


class Contradiction(Message):
    """An answer that does not agree with what was known."""

    i: int
    j: int
    sigmas: float  # as surprising as a normal number that many σ out
    off_px: float  # RMS, from where the mosaic had the landmarks; 0 for a no
    expected_px: float  # how surely it had them there
    rival_i: int | None  # the pair whose answer agrees least with this one
    rival_j: int | None
    rival_author: Author | None
    explanation: str


class Outcome(Message):
    """What became of an answer, an undo or a redo: it is on disk."""

    state: State
    question: Question | None  # the next one
    contradiction: Contradiction | None = None
    done: str  # what was done, in words


class Conflict(Message):
    """Somebody else changed what this answer is about, in the meantime."""

    explanation: str
    i: int
    j: int
    theirs: Given | None
    state: State


class Refusal(Message):
    """Why a request cannot be done, and what to do."""

    explanation: str


class Checked(Message):
    """The verdict on landmarks before they are given."""

    problem: str | None  # none, mirrored, far outside: in words
    contradiction: Contradiction | None


class Snapped(Message):
    """Where the point belongs, or why that cannot be told."""

    found: bool
    x: float
    y: float
    correlation: float
    reason: str


class AnswerRow(Message):
    """A line of the table of answers."""

    place: int  # in the log
    i: int
    j: int
    role: str
    verdict: Verdict
    author: Author
    landmarks: int
    residual_px: float | None  # on the mosaic as it is
    rejected: bool  # contradicts the others, and is not used
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
