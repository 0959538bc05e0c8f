"""A dispatcher with a session that needs no frames, and the application before it."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager

import httpx

from smalti.annotation.messages import (
    Queue,
)
from smalti.progress import Silence
from smalti.server.app import PageFile, make_app
from smalti.server.dispatcher import Dispatcher
from smalti.server.security import Guard
from tests.server.fake_session import FakeSession

ADDRESS = "http://127.0.0.1:8000"
PAGE = {
    "/": PageFile(b"<!doctype html><title>page</title>", "text/html; charset=utf-8", False),
    "/assets/index-a1B2c3D4.js": PageFile(b"export {}", "text/javascript; charset=utf-8", True),
    "/favicon.svg": PageFile(b"<svg/>", "image/svg+xml", False),
}
NO = {"i": 0, "j": 2, "verdict": "no", "seen_revision": 0}


def new_dispatcher(beside=None):
    return Dispatcher(
        "fake", "fake.mp4", Queue.ALL, edition="edition", other_progress=Silence() if beside is None else beside
    )


@contextmanager
def opened_desk():
    """A dispatcher whose session is open, and the session."""
    dispatcher, session = new_dispatcher(), FakeSession()
    dispatcher.open(session.opening).result(5)
    try:
        yield dispatcher, session
    finally:
        session.hold.set()
        session.finishing.set()
        dispatcher.close()


class Client:
    """Asks an application without a socket, one request after the other."""

    def __init__(self, app, address=ADDRESS, raise_faults=True):
        self._app, self._address, self._raise_faults = app, address, raise_faults

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)

    def request(self, method, path, **options):
        async def ask():
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=self._raise_faults)
            async with httpx.AsyncClient(transport=transport, base_url=self._address) as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


def client_of(dispatcher, guard=None, address=ADDRESS, **options):
    guard = Guard.of_address("127.0.0.1", "127.0.0.1", 8000, None) if guard is None else guard
    return Client(make_app(dispatcher, guard, PAGE), address, **options)


@contextmanager
def opened():
    """A client, the dispatcher it asks, and the session."""
    with opened_desk() as (dispatcher, session):
        yield client_of(dispatcher), dispatcher, session


def wait_until(holds, seconds=5.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.005)
