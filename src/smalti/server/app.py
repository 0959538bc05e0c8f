"""The application: the page's files, its routes, and the security checks before both."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from smalti import __version__
from smalti.errors import InputError
from smalti.server.dispatcher import Dispatcher
from smalti.server.error_responses import explain_errors
from smalti.server.finished_routes import make_finished_routes
from smalti.server.routes import make_pictures, make_routes
from smalti.server.security import Gate, Guard


def make_app(dispatcher: Dispatcher, guard: Guard, page: Mapping[str, PageFile] | None = None) -> FastAPI:
    """Return the application of a dispatcher. `page` is the folder of the page's files, by default the built ones."""
    app = FastAPI(
        title="Smalti",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        # No telemetry, whatever the environment says.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.include_router(make_routes(dispatcher))
    app.include_router(make_pictures(dispatcher))
    app.include_router(make_finished_routes(dispatcher))
    for path, file in (read_page() if page is None else page).items():
        app.add_route(path, _sending(file), methods=["GET"], include_in_schema=False)
    explain_errors(app)
    app.add_middleware(Gate, guard=guard)
    return app


def _sending(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    headers = {"Cache-Control": "public, max-age=31536000, immutable"} if file.immutable else {}

    async def send(request: Request) -> Response:
        return Response(file.content, media_type=file.media_type, headers=headers)

    return send


MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/vnd.microsoft.icon",
    ".woff2": "font/woff2",
}

HASHED = re.compile(r"-[\w-]{8}\.\w+$")
"""Names of files whose content never changes: vite puts a hash into them."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file in the form in which it is sent."""

    content: bytes
    media_type: str
    immutable: bool  # the browser need not ask again


def read_page(folder: Traversable | None = None) -> dict[str, PageFile]:
    """Return the files of the page by path; `/` is the page itself."""
    folder = resources.files("smalti.server") / "page" if folder is None else folder
    if not (folder / "index.html").is_file():
        raise InputError(f"{folder}: the page was not built: run `make page`")
    files = {}
    for path, file in _walk(folder, PurePosixPath("/")):
        media_type = MEDIA_TYPES.get(path.suffix, "application/octet-stream")
        files[str(path)] = PageFile(file.read_bytes(), media_type, HASHED.search(path.name) is not None)
    files["/"] = files.pop("/index.html")
    return files


def _walk(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, path / entry.name)
        else:
            yield path / entry.name, entry
