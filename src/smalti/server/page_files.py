"""The files of the page: a table, read once, so that no path of a request reaches the file system."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from smalti.errors import InputError

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
"""Names by which a file never changes its content: vite puts a hash into them."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent."""

    content: bytes
    media_type: str
    lasting: bool  # the browser need never ask again


def read_page(folder: Traversable | None = None) -> dict[str, PageFile]:
    """Return the files of the page by their paths in an address, `/` for the page itself."""
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
