"""The application: the page, what it asks, and the gate before both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from smalti import __version__
from smalti.server.desk import Desk
from smalti.server.gate import Gate
from smalti.server.page_files import PageFile, read_page
from smalti.server.pictures import make_pictures
from smalti.server.refusals import explain_errors
from smalti.server.routes import make_routes
from smalti.server.security import Guard


def make_app(desk: Desk, guard: Guard, page: Mapping[str, PageFile] | None = None) -> FastAPI:
    """Return the application of a desk; `page` holds the page's files, by default those that were built."""
    app = FastAPI(
        title="Smalti",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        # Nothing is measured for others, whatever the environment says.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.include_router(make_routes(desk))
    app.include_router(make_pictures(desk))
    for path, file in (read_page() if page is None else page).items():
        app.add_route(path, _sending(file), methods=["GET"], include_in_schema=False)
    explain_errors(app)
    app.add_middleware(Gate, guard=guard)
    return app


def _sending(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    headers = {"Cache-Control": "public, max-age=31536000, immutable"} if file.lasting else {}

    async def send(request: Request) -> Response:
        return Response(file.content, media_type=file.media_type, headers=headers)

    return send
