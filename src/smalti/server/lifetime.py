"""A server's life: it prepares while it serves, and ends within a second when it is told to."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import webbrowser
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from smalti.server.address import Address
from smalti.server.desk import Desk

if TYPE_CHECKING:
    from smalti.server.desk import Opening

QUICK_SECONDS = 0.3
"""Within which an input that cannot be used is mostly known: no browser need open for it."""

FAREWELL_SECONDS = 2.0
"""For an open page to read why the sequence could not be prepared."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended: in which folder the answers are, None if it never came to asking; whether no thread is at work."""

    folder: Path | None
    at_rest: bool


def serve(app: FastAPI, desk: Desk, address: Address, opening: Opening, url: str | None = None) -> Ending:
    """Serve an application while its desk is opened and after, until Ctrl-C; `url` is opened in the browser."""
    server = Server(app, desk)
    with _signals_to(server):
        preparing = desk.open(opening)
        try:
            asyncio.run(_serve(server, desk, address, preparing, url))
        finally:
            folder, at_rest = desk.folder, desk.close()
    if _has_failed(preparing):
        preparing.result()
    return Ending(folder, at_rest)


class Server(uvicorn.Server):
    """Serves the application of a desk, and lets the open pages go when it ends."""

    def __init__(self, app: FastAPI, desk: Desk) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                lifespan="off",
                ws="none",
                http="h11",
                loop="asyncio",
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._desk = desk

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of open pages first: they would keep the server for ever."""
        await self._desk.leave()
        await super().shutdown(sockets)


async def _serve(server: Server, desk: Desk, address: Address, preparing: Future[None], url: str | None) -> None:
    watching = asyncio.create_task(_watch(server, desk, preparing, url))
    try:
        await server.serve(sockets=[address.listener])
    finally:
        watching.cancel()


async def _watch(server: Server, desk: Desk, preparing: Future[None], url: str | None) -> None:
    """Open the browser, and end the server if the sequence cannot be prepared."""
    opened = asyncio.wrap_future(preparing)
    try:
        await asyncio.wait({opened}, timeout=QUICK_SECONDS)
        has_browser = url is not None and not _has_failed(preparing)
        if has_browser:
            # A browser in the terminal would not come back before it is closed.
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        await asyncio.wait({opened})
        if _has_failed(preparing):
            if has_browser or desk.bulletin.readers:
                await asyncio.sleep(FAREWELL_SECONDS)
            server.should_exit = True
    finally:
        opened.cancel()


def _has_failed(preparing: Future[None]) -> bool:
    return preparing.done() and not preparing.cancelled() and preparing.exception() is not None


@contextmanager
def _signals_to(server: Server) -> Iterator[None]:
    """Have Ctrl-C and a polite kill end the server; uvicorn sends itself both again once it has ended."""
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
