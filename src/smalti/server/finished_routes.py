"""The routes to the finished mosaic: its tiles, and the files that were delivered.

No path of a request reaches the file system: a tile is asked for by numbers, which are compared with the size of the
mosaic, and a file by a name that is compared with the names of the delivered files.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import FileResponse, Response

from smalti.annotation.finished_mosaic import REPORT
from smalti.annotation.messages import FinishedMosaic, MosaicVersion
from smalti.errors import UsageError
from smalti.report.report_page import POLICY
from smalti.server.dispatcher import Dispatcher
from smalti.server.error_responses import ExactRoute, not_found, refusals

MOST_LEVELS = 64
Level = Annotated[int, Path(ge=0, lt=MOST_LEVELS)]
Cell = Annotated[int, Path(ge=0, le=10**9)]
Name = Annotated[str, Path(max_length=100)]

MEDIA_TYPES = {
    ".csv": "text/csv",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".tif": "image/tiff",
}

REPORT_POLICY = f"{POLICY}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""The report has its own scripts and pictures in it. It can ask this server for nothing."""


def make_finished_routes(dispatcher: Dispatcher) -> APIRouter:
    """Return the routes to the finished mosaic."""
    router = APIRouter(prefix="/api", responses=refusals(HTTPStatus.NOT_FOUND), route_class=ExactRoute)

    @router.get("/finished")
    async def finished() -> FinishedMosaic | None:
        """Return what there is to look at; null if no mosaic was finished."""
        return await dispatcher.ask(lambda session: session.finished())

    @router.get(
        "/finished/{edition}/{version}/{level}/{column}_{row}.png",
        response_class=Response,
        responses={200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}},
    )
    async def tile(edition: Name, version: MosaicVersion, level: Level, column: Cell, row: Cell) -> Response:
        """Return a DeepZoom tile. `edition` only tells the browser whether it has this tile already."""
        try:
            content = await dispatcher.fetch(lambda session: session.finished_tile(version, level, column, row))
        except UsageError as error:
            raise not_found(error) from None
        return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=86400"})

    @router.get(
        "/results/{name}",
        response_class=FileResponse,
        responses={200: {"content": {"application/octet-stream": {}}, "description": "The file"}},
    )
    async def result(name: Name) -> FileResponse:
        """Return a delivered file."""
        try:
            path = await dispatcher.ask(lambda session: session.result(name))
        except UsageError as error:
            raise not_found(error) from None
        headers = {"Content-Security-Policy": REPORT_POLICY} if path.name == REPORT else {}
        media_type = MEDIA_TYPES.get(path.suffix, "application/octet-stream")
        return FileResponse(path, media_type=media_type, headers=headers)

    return router
