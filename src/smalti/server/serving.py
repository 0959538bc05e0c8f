"""The annotator from the first line to the last: bind, prepare, serve."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_limits

from smalti.annotation.messages import Queue
from smalti.annotation.session import Session
from smalti.building.build import Location
from smalti.building.progress import Progress
from smalti.building.settings import BuildSettings
from smalti.server.address import listen
from smalti.server.app import make_app
from smalti.server.desk import Desk
from smalti.server.lifetime import Ending, serve
from smalti.server.page_files import read_page
from smalti.server.security import Guard


def annotate(
    location: Location,
    folder: str | Path | None = None,
    *,
    settings: BuildSettings | None = None,
    queue: Queue = Queue.ALL,
    source: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
    progress: Progress | None = None,
) -> Ending:
    """Ask a person about a video, images or a project in a web page, until Ctrl-C; print the page's address.

    An input that cannot be used raises what is wrong with it. All answers are on disk whatever happens.
    """
    page = read_page()
    address = listen(host, port)
    with address.listener:
        token = None if address.is_local else secrets.token_urlsafe(32)
        guard = Guard.of_address(host, address.ip, address.port, token)
        name, places = _describe(location)
        desk = Desk(name, places, queue, edition=secrets.token_hex(8), beside=progress)

        def opening(progress: Progress, on_change: Callable[[], None]) -> Session:
            session = Session.open(
                location, folder, settings=settings, queue=queue, source=source, progress=progress, on_change=on_change
            )
            if session.project.lock is not None:
                session.project.lock.describe(f"smalti annotate at {address.url}")
            return session

        url = address.url if token is None else f"{address.url}?token={token}"
        print(url, flush=True)
        # One answer is many small problems: threads of BLAS wait for each other longer than they work, ten times over
        # where a browser wants the cores too. The engine's own kernels use all cores.
        with threadpool_limits(limits=1, user_api="blas"):
            return serve(make_app(desk, guard, page), desk, address, opening, url if browser else None)


def _describe(location: Location) -> tuple[str, str]:
    """Return an input's name and place in words, for as long as nobody has looked at it."""
    if isinstance(location, str | Path):
        return Path(location).name.removesuffix(".smalti"), str(location)
    first, *others = map(str, location)
    return Path(first).name, first + (f" and {len(others)} more" if others else "")
