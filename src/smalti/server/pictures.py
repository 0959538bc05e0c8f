"""Pictures and files of a session; their names in an address are numbers, or of a fixed set."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from smalti.annotation.messages import FrameNumber
from smalti.errors import UsageError
from smalti.server.desk import Desk
from smalti.server.refusals import not_found, refusals

if TYPE_CHECKING:
    from smalti.annotation.session import Session

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
            "application/zip": _BINARY,
        }
    }
}


class Export(StrEnum):
    """What can be taken away."""

    LANDMARKS = "landmarks.csv"
    TRANSFORMS = "transforms.json"
    MOSAIC = "mosaic.png"
    PROJECT = "project.zip"


def make_pictures(desk: Desk) -> APIRouter:
    """Return the routes to pictures and files."""
    router = APIRouter(prefix="/api", responses=refusals(HTTPStatus.NOT_FOUND))

    @router.get("/frames/{n}.jpg", response_class=Response, responses=PICTURE)
    async def frame(n: FrameNumber, if_none_match: Annotated[str, Header()] = "") -> Response:
        """Return a frame, by its number in the source."""
        return await _send(desk, f"frame-{n}", if_none_match, lambda session: session.frame_jpeg(n))

    @router.get("/sheets/{k}.jpg", response_class=Response, responses=PICTURE)
    async def sheet(k: FrameNumber, if_none_match: Annotated[str, Header()] = "") -> Response:
        """Return a sheet of small pictures of the usable frames."""
        return await _send(desk, f"sheet-{k}", if_none_match, lambda session: session.sheet_jpeg(k))

    @router.get("/mask.png", response_class=Response, responses=MASK)
    async def mask(if_none_match: Annotated[str, Header()] = "") -> Response:
        """Return where small pictures show the scene: white there, black elsewhere."""
        return await _send(desk, "mask", if_none_match, lambda session: session.mask_png(), "image/png")

    @router.get("/exports/{name}", response_class=Response, responses=FILES)
    async def export(name: Export) -> Response:
        """Return a file to take away."""
        media_type, content = await desk.export(lambda session: session.export(name.value))
        if isinstance(content, Path):
            # It was made for this request: nobody else needs it.
            return FileResponse(
                content, media_type=media_type, filename=name.value, background=BackgroundTask(content.unlink)
            )
        headers = {"Content-Disposition": f'attachment; filename="{name.value}"'}
        return Response(content, media_type=media_type, headers=headers)

    return router


async def _send(
    desk: Desk, name: str, known: str, make: Callable[[Session], bytes], media_type: str = "image/jpeg"
) -> Response:
    """Send a picture, unless the browser has it: no picture changes while the program runs."""
    tag = f'"{desk.edition}-{name}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if desk.is_open and tag in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    try:
        content = await desk.fetch(make)
    except UsageError as error:
        raise not_found(error) from None
    return Response(content, media_type=media_type, headers=headers)
