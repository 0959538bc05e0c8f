"""Run the annotator: bind an address, prepare while serving, and end within a second on request."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from smalti.agents.matcher import Matcher
from smalti.annotation.known_pairs import Measures
from smalti.annotation.messages import Queue
from smalti.annotation.open_session import NOT_MEASURED
from smalti.annotation.opening import refuse_choice_of_frames
from smalti.annotation.session import QueueName, Session, queue_named
from smalti.building.build import Location
from smalti.building.build_settings import BuildSettings
from smalti.errors import UsageError, as_one_line
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import FamilyName
from smalti.progress import Progress, progress_of
from smalti.project.facts import Method, Registration
from smalti.project.project import Project
from smalti.server.app import make_app, read_page
from smalti.server.dispatcher import PATIENCE_SECONDS, Dispatcher
from smalti.server.security import Guard

if TYPE_CHECKING:
    from smalti.server.dispatcher import Opening


def annotate(
    source: Location,
    output: str | Path | None = None,
    *,
    queue: QueueName = "all",
    matcher: Matcher | None = None,
    every: int = 1,
    start: str | None = None,
    end: str | None = None,
    max_size: int | None = None,
    mask: str | Path = "auto",
    registration: Registration = "auto",
    method: Method = "smalti",
    family: FamilyName = "projective",
    reference: int | str = "auto",
    target_px: float | None = None,
    known_share: float = 0.0,
    check_landmarks: bool = False,
    keyframes: str | float = "auto",
    seed: int = 0,
    moved_to: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
    progress: Progress | bool = False,
) -> Project:
    """Ask a person about a video, images or a project in a web page, and return the project.

    The call prints the address of the page. It returns when the person has pressed "stop here" and the mosaic is made,
    or after Ctrl-C (in a notebook: interrupt the kernel). Every answer is on disk at once; the same call continues.

    Args:
        source: a video, a folder of images, a pattern, a list of images, or a project's folder.
        output: the folder of a new project.
        queue: `"doubtful"` asks only about the pairs of which the matcher is not sure; it answers the others.
        matcher: see `smalti.build`, as for all arguments up to `seed`. A project's frames are chosen already:
            leave `every`, `start`, `end`, `max_size`, `mask`, `keyframes` and `seed` out.
        known_share: about this share of each person's questions is about pairs whose answer is known, to measure the
            person; the matcher's landmarks are then shown for no pair.
        check_landmarks: the last of four or more landmarks of an answer is left out of the link, and compared with the
            mosaic.
        moved_to: where a project's frames are now, if they were moved.
        host: the address to listen at. Others than this machine need the token that is printed.
        port: 0 takes any that is free.
        browser: False only prints the address.
        progress: True shows bars.
    """
    settings = BuildSettings(
        SourceSettings(every, start, end, max_size),
        mask=str(mask),
        registration=registration,
        method=method,
        family=family,
        reference=str(reference),
        target_px=target_px,
        seed=seed,
        keyframes=str(keyframes),
    )
    ending = serve_page(
        source,
        output,
        settings=settings,
        queue=queue_named(queue),
        measures=Measures(known_share, check_landmarks),
        matcher=matcher,
        moved_to=moved_to,
        host=host,
        port=port,
        browser=browser,
        progress=progress_of(progress),
        until_finished=True,
    )
    if ending.folder is None:
        raise KeyboardInterrupt
    return Project.open(ending.folder, source=moved_to)


def serve_page(
    location: Location,
    folder: str | Path | None = None,
    *,
    settings: BuildSettings,
    queue: Queue = Queue.ALL,
    measures: Measures = NOT_MEASURED,
    matcher: Matcher | None = None,
    moved_to: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
    progress: Progress | None = None,
    until_finished: bool = False,
) -> Ending:
    """Ask a person about a video, images or a project in a web page, until Ctrl-C or until the mosaic is finished.

    Print the page's address.

    An unusable input raises an error that says why. All answers are on disk whatever happens.
    """
    refuse_choice_of_frames(location, settings)
    measures.check_method(settings.method)
    page = read_page()
    address = listen(host, port)
    with address.listener:
        token = None if address.is_local else secrets.token_urlsafe(32)
        guard = Guard.of_address(host, address.ip, address.port, token)
        name, places = _describe(location, folder)
        dispatcher = Dispatcher(name, places, queue, edition=secrets.token_hex(8), other_progress=progress)

        def opening(progress: Progress, on_change: Callable[[], None]) -> Session:
            session = Session.prepare(
                location,
                folder,
                settings,
                queue=queue,
                measures=measures,
                matcher=matcher,
                moved_to=moved_to,
                progress=progress,
                on_change=on_change,
            )
            if session.project.lock is not None:
                session.project.lock.describe(f"smalti annotate at {address.url}")
            return session

        url = address.url if token is None else f"{address.url}?token={token}"
        print(url, flush=True)
        # An answer consists of many small problems. Threads of BLAS wait for each other longer than they work, ten
        # times longer if a browser uses the cores too. The engine's own kernels use all cores.
        with threadpool_limits(limits=1, user_api="blas"):
            app = make_app(dispatcher, guard, page)
            return serve(app, dispatcher, address, opening, url if browser else None, until_finished=until_finished)


def _describe(location: Location, folder: str | Path | None) -> tuple[str, str]:
    """Return the name of a project to be and the location of its input in words, before it is opened."""
    first, *others = (as_one_line(str(one)) for one in ([location] if isinstance(location, str | Path) else location))
    name = Path(first if folder is None else as_one_line(str(folder))).name.removesuffix(".smalti")
    return name, first + (f" and {len(others)} more" if others else "")


QUICK_SECONDS = 0.3
"""An unusable input is mostly known within this time. No browser needs to open for it."""

FAREWELL_SECONDS = 2.0
"""For an open page to read why the program ends: the sequence could not be prepared, or the mosaic is finished."""

GRACE_SECONDS = 0.5
"""For answers on their way to arrive when the server ends; less than Uvicorn's own time."""

LOOKING_SECONDS = 0.1

PATIENCE_OF_PYTHON_SECONDS = 60.0
"""For work to end when a Python program goes on afterwards: nothing may hold on to the project then."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended: the folder of the answers, None without a session; and whether no thread is running."""

    folder: Path | None
    at_rest: bool


def serve(
    app: FastAPI,
    dispatcher: Dispatcher,
    address: Address,
    opening: Opening,
    url: str | None = None,
    *,
    until_finished: bool = False,
) -> Ending:
    """Serve an application while its dispatcher is opened and after, until Ctrl-C; `url` is opened in the browser.

    With `until_finished`, it also ends once the mosaic is made, and waits for all work.
    """
    server = Server(app, dispatcher)
    with _signals_to(server):
        preparing = dispatcher.open(opening)
        try:
            _run(_serve(server, dispatcher, address, preparing, url, until_finished))
        finally:
            patience = PATIENCE_OF_PYTHON_SECONDS if until_finished else PATIENCE_SECONDS
            folder, at_rest = dispatcher.folder, dispatcher.close(patience)
    if _has_failed(preparing):
        preparing.result()
    return Ending(folder, at_rest)


def _run(serving: Coroutine[Any, Any, None]) -> None:
    """Run to the end, in a thread of its own where this one has a loop already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(serving)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="server") as beside:
        beside.submit(asyncio.run, serving).result()


class Server(uvicorn.Server):
    """Serves the application of a dispatcher, and disconnects the open pages when it ends."""

    def __init__(self, app: FastAPI, dispatcher: Dispatcher) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="error",  # anybody can send malformed requests: they are refused, not told
                access_log=False,
                lifespan="off",
                ws="none",
                http="h11",
                loop="asyncio",
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._dispatcher = dispatcher

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of open pages first. Otherwise they would keep the server running for ever.

        Requests of which a part never comes, and readers that do not read, are disconnected. Uvicorn would wait for
        them, cancel their tasks and print a traceback for each.
        """
        await self._dispatcher.leave()
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and cycle.more_body:
                _disconnect(connection)
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._disconnect_all)
        await super().shutdown(sockets)

    def _disconnect_all(self) -> None:
        for connection in list(self.server_state.connections):
            _disconnect(connection)


def _disconnect(connection: Any) -> None:
    if connection.transport is not None:
        connection.transport.abort()


async def _serve(
    server: Server,
    dispatcher: Dispatcher,
    address: Address,
    preparing: Future[None],
    url: str | None,
    until_finished: bool,
) -> None:
    watching = asyncio.create_task(_watch(server, dispatcher, preparing, url, until_finished))
    try:
        await server.serve(sockets=[address.listener])
    finally:
        watching.cancel()


async def _watch(
    server: Server, dispatcher: Dispatcher, preparing: Future[None], url: str | None, until_finished: bool
) -> None:
    """Open the browser, and end the server if the sequence cannot be prepared, or when the mosaic is finished."""
    opened = asyncio.wrap_future(preparing)
    try:
        await asyncio.wait({opened}, timeout=QUICK_SECONDS)
        has_browser = url is not None and not _has_failed(preparing)
        if has_browser:
            # A browser in the terminal would not return before it is closed.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        await asyncio.wait({opened})
        if _has_failed(preparing):
            if has_browser or dispatcher.bulletin.readers:
                await asyncio.sleep(FAREWELL_SECONDS)
            server.should_exit = True
        elif until_finished:
            while not dispatcher.has_finished:
                await asyncio.sleep(LOOKING_SECONDS)
            await asyncio.sleep(FAREWELL_SECONDS)
            server.should_exit = True
    finally:
        opened.cancel()


def _has_failed(preparing: Future[None]) -> bool:
    return preparing.done() and not preparing.cancelled() and preparing.exception() is not None


@contextmanager
def _signals_to(server: Server) -> Iterator[None]:
    """End the server on Ctrl-C and on SIGTERM. Uvicorn sends itself both signals again once it has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True, eq=False)
class Address:
    """A listening socket, and the host it was requested for."""

    listener: socket.socket
    host: str

    @property
    def ip(self) -> str:
        """The address it is bound to."""
        return str(self.listener.getsockname()[0])

    @property
    def port(self) -> int:
        """The port it is bound to."""
        return int(self.listener.getsockname()[1])

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.ip).is_loopback

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        host = socket.gethostname() if ipaddress.ip_address(self.ip).is_unspecified else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"


def listen(host: str, port: int) -> Address:
    """Bind to an address of this machine. Port 0 means any free port."""
    if not 0 <= port <= LARGEST_PORT:
        raise UsageError(f"--port {port}: give a number up to {LARGEST_PORT}, or 0 for a free one")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise UsageError(f"--host {host}: no such host; give 127.0.0.1 or an address of this machine") from None
    family, kind, protocol, _, place = min(found, key=lambda one: one[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            # A port that was released a moment ago can be used again. One in use cannot.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(_explain(error, host, port)) from None
    return Address(listener, host)


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port {port}: is in use; give another one, or 0 for a free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: is not an address of this machine; give 127.0.0.1 or one that is"
    return f"--host {host} --port {port}: cannot be used ({error.strerror}); give others"
