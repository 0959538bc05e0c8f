"""The routes: questions, answers, pictures and files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from smalti.annotation.messages import (
    AlignFrames,
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
    TracedVessel,
    TraceVessel,
)
from smalti.errors import UsageError
from smalti.server.dispatcher import Dispatcher
from smalti.server.error_responses import ExactRoute, not_found, refusals
from smalti.server.events import write_events

if TYPE_CHECKING:
    from smalti.annotation.session import Session

MOST_CELLS = 1024

PageName = Annotated[str, Query(max_length=64)]
"""What a page calls itself, so that each has a question of its own."""

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Notices, as events"}
}


def make_routes(dispatcher: Dispatcher) -> APIRouter:
    """Return the routes that read, and those that change something."""
    router = APIRouter(prefix="/api", responses=refusals(), route_class=ExactRoute)
    _add_reads(router, dispatcher)
    _add_pairs(router, dispatcher)
    _add_changes(router, dispatcher)
    _add_checks(router, dispatcher)
    return router


def _add_reads(router: APIRouter, dispatcher: Dispatcher) -> None:
    @router.get("/state")
    async def state() -> State:
        """Return the numbers above the two frames, and the possible actions."""
        return await dispatcher.state()

    @router.get("/events", response_class=StreamingResponse, responses=EVENTS)
    async def events(page: PageName = "") -> StreamingResponse:
        """Send a Notice now and whenever something changes, as server-sent events. It ends with the page."""

        async def write() -> AsyncIterator[str]:
            try:
                async for text in write_events(dispatcher.bulletin):
                    yield text
            finally:
                dispatcher.release(page)

        return StreamingResponse(write(), media_type="text/event-stream")

    @router.get("/question")
    async def question(page: PageName = "", person: Annotated[str, Query(max_length=80)] = "") -> Question | None:
        """Return the most useful pair that no other page asks about, or null if no question is left."""
        return await dispatcher.ask(lambda session: session.question(page, person))

    @router.get("/mosaic")
    async def mosaic() -> LiveMosaic:
        """Return the map of every usable frame."""
        return await dispatcher.ask(lambda session: session.mosaic())

    @router.get("/answers")
    async def answers() -> list[AnswerRow]:
        """Return the table of answers."""
        return await dispatcher.ask(lambda session: session.answers())

    @router.get("/maps/{kind}")
    async def pair_map(
        kind: MapKind,
        row: FrameNumber = 0,
        column: FrameNumber = 0,
        frames: FrameNumber = 0,
        size: Annotated[int, Query(ge=1, le=MOST_CELLS)] = 256,
    ) -> PairMap:
        """Return a square window of a map of all pairs: `frames` usable frames from row and column, 0 for all."""
        return await dispatcher.ask(lambda session: session.pair_map(kind, row, column, frames, size))


def _add_pairs(router: APIRouter, dispatcher: Dispatcher) -> None:
    @router.get("/pairs/{i}/{j}")
    async def look(i: FrameNumber, j: FrameNumber, page: PageName = "") -> Question:
        """Return any pair as a question."""
        return await dispatcher.ask(lambda session: session.look(i, j, page))

    @router.get("/pairs/{i}/{j}/proposal")
    async def propose(i: FrameNumber, j: FrameNumber) -> Proposal | None:
        """Return the matcher's answer on a pair, or null where known pairs measure the people who answer."""
        return await dispatcher.consult(lambda session: session.propose(i, j))

    @router.get("/pairs/{i}/{j}/forecast")
    async def forecast(i: FrameNumber, j: FrameNumber, page: PageName = "") -> Forecast:
        """Return the expected effect of a yes on a pair."""
        return await dispatcher.consult(lambda session: session.forecast(i, j, page))


def _add_changes(router: APIRouter, dispatcher: Dispatcher) -> None:
    changes = refusals(HTTPStatus.CONFLICT, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)

    @router.post("/answers", responses=changes)
    async def give(request: GiveAnswer, page: PageName = "") -> Outcome:
        """Give an answer. It replaces an earlier one on the same pair. It is on disk before this returns."""
        return _with_stage(await dispatcher.change(lambda session: session.give(request, page)))

    @router.post("/answers/removal", responses=changes)
    async def remove(request: RemoveAnswer, page: PageName = "") -> Outcome:
        """Take an answer back."""
        return _with_stage(await dispatcher.change(lambda session: session.remove(request, page)))

    @router.post("/undo", responses=changes)
    async def undo(request: Step, page: PageName = "") -> Outcome:
        """Undo the latest change."""
        return _with_stage(await dispatcher.change(lambda session: session.undo(request, page)))

    @router.post("/redo", responses=changes)
    async def redo(request: Step, page: PageName = "") -> Outcome:
        """Redo what was undone."""
        return _with_stage(await dispatcher.change(lambda session: session.redo(request, page)))

    @router.post("/finish", responses=changes)
    async def finish(request: Step) -> State:
        """Stop here: finish, render and report in the background."""
        return await dispatcher.finish()

    def _with_stage(outcome: Outcome) -> Outcome:
        return outcome.model_copy(update={"state": dispatcher.with_stage(outcome.state)})


def _add_checks(router: APIRouter, dispatcher: Dispatcher) -> None:
    checks = refusals(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)

    @router.post("/check", responses=checks)
    async def check(request: CheckLandmarks) -> Checked:
        """Check landmarks before they are given."""
        return await dispatcher.ask(lambda session: session.check(request))

    @router.post("/align", responses=checks)
    async def align(request: AlignFrames) -> Proposal:
        """Align two frames by all pixels, from where a person has laid one over the other."""
        return await dispatcher.consult(lambda session: session.align(request))

    @router.post("/trace", responses=checks)
    async def trace(request: TraceVessel) -> TracedVessel:
        """Find the vessel under the strokes that a person has drawn along it in both frames."""
        return await dispatcher.fetch(lambda session: session.trace(request))

    @router.post("/snap", responses=checks)
    async def snap(request: SnapPoint) -> Snapped:
        """Move a point to where it correlates best with its partner."""
        return await dispatcher.fetch(lambda session: session.snap(request))


Described = dict[int | str, dict[str, Any]]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
PICTURE: Described = {200: {"content": {"image/jpeg": _BINARY}}, 304: {"description": "As you have it"}}
MASK: Described = {200: {"content": {"image/png": _BINARY}}, 304: {"description": "As you have it"}}
FILES: Described = {
    200: {
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
            "image/png": _BINARY,
            "image/jpeg": _BINARY,
            "image/tiff": _BINARY,
            "application/zip": _BINARY,
        }
    }
}


class Export(StrEnum):
    """What can be downloaded."""

    LANDMARKS = "landmarks.csv"
    TRANSFORMS = "transforms.json"
    PREVIEW = "preview.png"
    PNG = "mosaic.png"
    JPEG = "mosaic.jpg"
    TIFF = "mosaic.tif"
    DEEPZOOM = "mosaic.dzi.zip"
    ZARR = "mosaic.zarr.zip"
    PROJECT = "project.zip"


def make_pictures(dispatcher: Dispatcher) -> APIRouter:
    """Return the routes to pictures and files."""
    router = APIRouter(prefix="/api", responses=refusals(HTTPStatus.NOT_FOUND))

    @router.get("/frames/{n}.jpg", response_class=Response, responses=PICTURE)
    async def frame(n: FrameNumber, if_none_match: Annotated[str, Header()] = "") -> Response:
        """Return a frame by its source number."""
        return await _send(dispatcher, f"frame-{n}", if_none_match, lambda session: session.frame_jpeg(n))

    @router.get("/sheets/{k}.jpg", response_class=Response, responses=PICTURE)
    async def sheet(k: FrameNumber, if_none_match: Annotated[str, Header()] = "") -> Response:
        """Return a sheet of small pictures of the usable frames."""
        return await _send(dispatcher, f"sheet-{k}", if_none_match, lambda session: session.sheet_jpeg(k))

    @router.get("/mask.png", response_class=Response, responses=MASK)
    async def mask(if_none_match: Annotated[str, Header()] = "") -> Response:
        """Return the valid pixels of small pictures: white there, black elsewhere."""
        return await _send(dispatcher, "mask", if_none_match, lambda session: session.mask_png(), "image/png")

    @router.get("/exports/{name}", response_class=Response, responses=FILES)
    async def export(name: Export) -> Response:
        """Return a file to download."""
        media_type, content = await dispatcher.export(lambda session: session.export(name.value))
        if isinstance(content, Path):
            # The file was made for this request, and nobody else needs it.
            return FileResponse(
                content, media_type=media_type, filename=name.value, background=BackgroundTask(content.unlink)
            )
        headers = {"Content-Disposition": f'attachment; filename="{name.value}"'}
        return Response(content, media_type=media_type, headers=headers)

    return router


async def _send(
    dispatcher: Dispatcher, name: str, known: str, make: Callable[[Session], bytes], media_type: str = "image/jpeg"
) -> Response:
    """Send a picture, unless the browser has it. No picture changes while the program runs."""
    tag = f'"{dispatcher.edition}-{name}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if dispatcher.is_open and tag in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    try:
        content = await dispatcher.fetch(make)
    except UsageError as error:
        raise not_found(error) from None
    return Response(content, media_type=media_type, headers=headers)
