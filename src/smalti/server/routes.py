"""What can be asked, each a line or two: the desk does the work."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import StreamingResponse

from smalti.annotation.messages import (
    AnswerRow,
    Checked,
    CheckLandmarks,
    Forecast,
    FrameNumber,
    GiveAnswer,
    LiveMosaic,
    MapKind,
    Outcome,
    PairMap,
    Proposal,
    Question,
    RemoveAnswer,
    Snapped,
    SnapPoint,
    State,
    Step,
)
from smalti.server.desk import Desk
from smalti.server.events import write_events
from smalti.server.exactness import ExactRoute
from smalti.server.refusals import refusals

MOST_CELLS = 1024
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Notices, as events"}
}


def make_routes(desk: Desk) -> APIRouter:
    """Return the routes to look, and those to change something."""
    router = APIRouter(prefix="/api", responses=refusals(), route_class=ExactRoute)
    _add_looks(router, desk)
    _add_pairs(router, desk)
    _add_changes(router, desk)
    _add_checks(router, desk)
    return router


def _add_looks(router: APIRouter, desk: Desk) -> None:
    @router.get("/state")
    async def state() -> State:
        """Return everything above the two frames, and what can be done."""
        return await desk.state()

    @router.get("/events", response_class=StreamingResponse, responses=EVENTS)
    async def events() -> StreamingResponse:
        """Send a Notice now and whenever something changes, as server-sent events."""
        return StreamingResponse(write_events(desk.bulletin), media_type="text/event-stream")

    @router.get("/question")
    async def question() -> Question | None:
        """Return the pair that teaches most, or null where nothing is left to ask."""
        return await desk.ask(lambda session: session.question())

    @router.get("/mosaic")
    async def mosaic() -> LiveMosaic:
        """Return where every usable frame lies now."""
        return await desk.ask(lambda session: session.mosaic())

    @router.get("/answers")
    async def answers() -> list[AnswerRow]:
        """Return the table of answers."""
        return await desk.ask(lambda session: session.answers())

    @router.get("/maps/{kind}")
    async def pair_map(
        kind: MapKind,
        row: FrameNumber = 0,
        column: FrameNumber = 0,
        frames: FrameNumber = 0,
        size: Annotated[int, Query(ge=1, le=MOST_CELLS)] = 256,
    ) -> PairMap:
        """Return a square window of a map of all pairs: `frames` usable frames from row and column, 0 for all."""
        return await desk.ask(lambda session: session.pair_map(kind, row, column, frames, size))


def _add_pairs(router: APIRouter, desk: Desk) -> None:
    @router.get("/pairs/{i}/{j}")
    async def look(i: FrameNumber, j: FrameNumber) -> Question:
        """Return any pair as a question."""
        return await desk.ask(lambda session: session.look(i, j))

    @router.get("/pairs/{i}/{j}/proposal")
    async def propose(i: FrameNumber, j: FrameNumber) -> Proposal:
        """Return what the matcher says of a pair."""
        return await desk.consult(lambda session: session.propose(i, j))

    @router.get("/pairs/{i}/{j}/forecast")
    async def forecast(i: FrameNumber, j: FrameNumber) -> Forecast:
        """Return what a yes on a pair would bring."""
        return await desk.consult(lambda session: session.forecast(i, j))


def _add_changes(router: APIRouter, desk: Desk) -> None:
    changes = refusals(HTTPStatus.CONFLICT, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)

    @router.post("/answers", responses=changes)
    async def give(request: GiveAnswer) -> Outcome:
        """Give an answer; it replaces an earlier one on the same pair. It is on disk before this returns."""
        return _told(await desk.change(lambda session: session.give(request)))

    @router.post("/answers/removal", responses=changes)
    async def remove(request: RemoveAnswer) -> Outcome:
        """Take an answer back."""
        return _told(await desk.change(lambda session: session.remove(request)))

    @router.post("/undo", responses=changes)
    async def undo(request: Step) -> Outcome:
        """Undo the latest change."""
        return _told(await desk.change(lambda session: session.undo(request)))

    @router.post("/redo", responses=changes)
    async def redo(request: Step) -> Outcome:
        """Redo what was undone."""
        return _told(await desk.change(lambda session: session.redo(request)))

    @router.post("/conclude", responses=changes)
    async def conclude(request: Step) -> State:
        """Stop here: finish, render and report in the background."""
        return await desk.conclude()

    def _told(outcome: Outcome) -> Outcome:
        return outcome.model_copy(update={"state": desk.tell(outcome.state)})


def _add_checks(router: APIRouter, desk: Desk) -> None:
    checks = refusals(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)

    @router.post("/check", responses=checks)
    async def check(request: CheckLandmarks) -> Checked:
        """Say what is wrong with landmarks, before they are given."""
        return await desk.ask(lambda session: session.check(request))

    @router.post("/snap", responses=checks)
    async def snap(request: SnapPoint) -> Snapped:
        """Move a point to where it looks like its partner."""
        return await desk.fetch(lambda session: session.snap(request))
