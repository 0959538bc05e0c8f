"""A server on a real socket, in a thread of the test."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager

import httpx

from smalti.server.app import make_app
from smalti.server.security import Guard
from smalti.server.serving import Server, listen
from tests.server.dispatchers import PAGE, wait_until


@contextmanager
def running(dispatcher):
    """Serve a dispatcher; yield the server and the address."""
    address = listen("127.0.0.1", 0)
    guard = Guard.of_address("127.0.0.1", address.ip, address.port, None)
    server = Server(make_app(dispatcher, guard, PAGE), dispatcher)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[address.listener])))
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield server, address.url.rstrip("/")
    finally:
        server.should_exit = True
        thread.join(5)
        address.listener.close()
        assert not thread.is_alive(), "the server does not end"


class Page:
    """An open page: reads the events in a thread and keeps the notices."""

    def __init__(self, url):
        self.notices, self.comments, self.ended = [], [], False
        self._client = httpx.Client(timeout=10)
        self._thread = threading.Thread(target=self._read, args=(url,))
        self._thread.start()
        wait_until(lambda: self.notices)

    def _read(self, url):
        with self._client.stream("GET", f"{url}/api/events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            self._response = response
            try:
                for line in response.iter_lines():
                    if line.startswith("data: "):
                        self.notices.append(json.loads(line[6:]))
                    elif line.startswith(":"):
                        self.comments.append(line)
            except (httpx.HTTPError, httpx.StreamError, OSError):
                return  # the page was closed
            self.ended = True

    def wait(self):
        self._thread.join(5)
        assert not self._thread.is_alive(), "the stream does not end"
        self._client.close()
