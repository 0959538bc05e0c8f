"""A session that needs no frames."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

from smalti.annotation.messages import (
    AnswerRow,
    Checked,
    Conflict,
    Forecast,
    Given,
    LiveMosaic,
    Outcome,
    PairMap,
    Proposal,
    Question,
    Queue,
    Snapped,
    Stage,
    State,
)
from smalti.errors import ChangedMeanwhileError, NothingToUndoError, OutputError, PairError, UsageError
from smalti.records import Author, Pair

FRAMES = 5
IDENTITY = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


class FakeSession:
    """Keeps answers in memory. `hold` makes the engine wait, `disk_is_full` makes finishing fail."""

    def __init__(self):
        self.revision = 0
        self.prediction = None
        self.is_working = False
        self.project = SimpleNamespace(folder=Path("fake.smalti"), lock=None)
        self.left: list[str] = []  # pages that were closed
        self.given: dict[Pair, tuple[int, Given]] = {}
        self.hold = threading.Event()
        self.hold.set()
        self.finishing = threading.Event()
        self.disk_is_full = False
        self.closed = False
        self.pictures_made = 0
        self.export_path: Path | None = None
        self.threads: dict[str, str] = {}

    def opening(self, progress, on_change):
        self.on_change = on_change
        return self

    def state(self):
        self._note("state")
        return State(revision=self.revision, stage=Stage.ASKING, name="fake", source="fake.mp4", queue=Queue.ALL)

    def question(self, page="", person=None):
        return self.look(0, 1) if self.revision < 3 else None

    def leave(self, page):
        self.left.append(page)

    def look(self, i, j, page=""):
        pair = Pair(i, j)
        pair.check_within(FRAMES)
        return Question(
            revision=self.revision,
            i=i,
            j=j,
            label_i=str(i),
            label_j=str(j),
            suggested=False,
            overlap=0.5,
            position=0.5,
            appearance=0.5,
            joined=True,
            unknown_px=3.0,
            i_from_j=IDENTITY,
            covariance=[0.0] * 64,
            noise=1.0,
            answer=self.given[pair][1] if pair in self.given else None,
        )

    def propose(self, i, j):
        return Proposal(i=i, j=j, verdict="no", landmarks=[], reason="few matches", sure=True)

    def forecast(self, i, j, page=""):
        return Forecast(revision=self.revision, i=i, j=j, now_px=3.0, after_yes_px=2.0, more=None)

    def mosaic(self):
        return LiveMosaic(
            revision=self.revision, reference=0, numbers=[0], maps=IDENTITY, sigma_px=[0.0], parts=[0], confirmed=[True]
        )

    def answers(self):
        return [
            AnswerRow(
                place=place,
                i=pair.i,
                j=pair.j,
                role="loop",
                verdict=given.verdict,
                author=given.author,
                person="",
                landmarks=len(given.landmarks),
                residual_px=None,
                rejected=False,
                contradicted=False,
                reason=given.reason,
                seconds=0.0,
            )
            for pair, (place, given) in self.given.items()
        ]

    def give(self, request, page=""):
        pair = self._changing(request)
        pair.check_within(FRAMES)
        self.revision += 1
        given = Given(verdict=request.verdict, landmarks=request.landmarks, author=Author.PERSON, reason=request.reason)
        self.given[pair] = (self.revision, given)
        return self._outcome("answered")

    def remove(self, request, page=""):
        pair = self._changing(request)
        if pair not in self.given:
            raise PairError(f"pair {pair}: has no answer to remove")
        del self.given[pair]
        self.revision += 1
        return self._outcome("removed")

    def undo(self, request, page=""):
        if not self.given:
            raise NothingToUndoError("there is nothing to undo")
        self.given.popitem()
        self.revision += 1
        return self._outcome("undone")

    def redo(self, request, page=""):
        raise NothingToUndoError("there is nothing to redo")

    def check(self, request):
        return Checked(problem="two landmarks are too few", contradiction=None)

    def align(self, request):
        return Proposal(i=request.i, j=request.j, verdict="unsure", landmarks=[], reason="too dark", sure=True)

    def snap(self, request):
        return Snapped(found=True, x=request.x_i, y=request.y_i, correlation=0.9, reason="")

    def pair_map(self, kind, row, column, frames, size):
        return PairMap(
            revision=self.revision,
            kind=kind,
            first_row=row,
            first_column=column,
            frames_per_cell=1,
            rows=1,
            columns=1,
            values="AA==",
            smallest=0.0,
            largest=1.0,
            logarithmic=False,
        )

    def finish(self, progress):
        with progress.stage("rendering", 2) as step:
            step()
            self.finishing.wait(10)
            step()
        if self.disk_is_full:
            raise OutputError("mosaic.png: cannot be written; make room")

    def frame_jpeg(self, n):
        self._note("frame")
        if n >= FRAMES:
            raise UsageError(f"frame {n}: the sequence has frames 0 to {FRAMES - 1} only")
        self.pictures_made += 1
        return b"\xff\xd8frame"

    def sheet_jpeg(self, k):
        if k > 0:
            raise UsageError(f"sheet {k}: there is one only")
        return b"\xff\xd8sheet"

    def mask_png(self):
        return b"\x89PNGmask"

    def export(self, name):
        return ("image/png", self.export_path) if name == "mosaic.png" else ("text/csv", b"i,j\n")

    def conflict(self, error):
        theirs = self.given.get(error.pair)
        return Conflict(
            explanation=str(error),
            i=error.pair.i,
            j=error.pair.j,
            theirs=None if theirs is None else theirs[1],
            state=self.state(),
        )

    def close(self):
        self.closed = True

    def _changing(self, request):
        pair = Pair(request.i, request.j)
        if pair in self.given and self.given[pair][0] > request.seen_revision:
            raise ChangedMeanwhileError(pair)
        return pair

    def _outcome(self, done):
        self.on_change()
        return Outcome(state=self.state(), question=self.question(), done=done)

    def _note(self, what):
        self.threads[what] = threading.current_thread().name
        if what == "state":
            assert self.hold.wait(10)
