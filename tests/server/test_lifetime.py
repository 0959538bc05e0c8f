"""How the server ends: by a signal, with pages open, or because the input cannot be used."""

from __future__ import annotations

import signal
import socket
import threading
import time
from contextlib import ExitStack, closing, contextmanager

import httpx
import pytest

from smalti.server import serving as lifetime
from smalti.server.app import make_app
from smalti.server.security import Guard
from smalti.server.serving import listen, serve
from tests.forks import Forked
from tests.server import fake_program
from tests.server.dispatchers import PAGE, new_dispatcher, wait_until
from tests.server.fake_session import FakeSession
from tests.server.running import Page


@contextmanager
def program(*words):
    """Run the program; yield it and its address."""
    with closing(Forked(fake_program.main, *words)) as running:
        yield running, running.stdout.readline().strip().rstrip("/")


def wait_for_stage(url, stage):
    wait_until(lambda: httpx.get(f"{url}/api/state", timeout=10).json()["stage"] == stage, 20)


def end(running, number):
    """Send a signal; return what was said on both streams and the seconds it took."""
    began = time.monotonic()
    running.send_signal(number)
    out, err = running.communicate(20)
    return out, err, time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_within_a_second_with_pages_open_and_everything_closed(number):
    with program("well") as (running, url):
        wait_for_stage(url, "asking")
        pages = [Page(url), Page(url)]
        out, err, seconds = end(running, number)
        for page in pages:
            page.wait()
            assert page.ended
    assert (out, err, running.returncode) == ("fake.smalti True True\n", "", 0)
    assert seconds < 2


def test_nothing_is_said_on_the_terminal_about_malformed_requests():
    with program("well") as (running, url):
        wait_for_stage(url, "asking")
        with closing(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10)) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert b"400" in connection.recv(1000)
        assert end(running, signal.SIGINT)[1] == ""


STALLED = {
    "half a line": "POST /api/ans",
    "half a head": "POST /api/answer HTTP/1.1\r\nHost: {host}\r\n",
    "half a body": "POST /api/answer HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    "Content-Length: 1000\r\n\r\n{{",
    "a reader that does not read": "GET /api/events HTTP/1.1\r\nHost: {host}\r\n\r\n",
}


@pytest.mark.parametrize("request_text", STALLED.values(), ids=STALLED)
def test_requests_that_stall_neither_delay_the_end_nor_say_anything(request_text):
    with program("well") as (running, url), ExitStack() as stack:
        wait_for_stage(url, "asking")
        host = url.removeprefix("http://")
        for _ in range(20):
            name, _, port = host.partition(":")
            client = stack.enter_context(socket.create_connection((name, int(port))))
            client.sendall(request_text.format(host=host).encode())
        time.sleep(0.3)  # the server has read them
        out, err, seconds = end(running, signal.SIGINT)
    assert (out, err, running.returncode) == ("fake.smalti True True\n", "", 0)
    assert seconds < 5


def test_a_signal_ends_the_preparation_at_its_next_step():
    with program("endlessly") as (running, url):
        wait_for_stage(url, "preparing")
        out, err, seconds = end(running, signal.SIGINT)
    assert (out, err, running.returncode) == ("None True False\n", "", 0)
    assert seconds < 2


def test_a_preparation_that_does_not_listen_is_not_waited_for():
    with program("deaf") as (running, url):
        wait_for_stage(url, "preparing")
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        said = running.stdout.readline()
        assert time.monotonic() - began < 2
    assert said == "None False False\n"


def test_an_input_that_cannot_be_used_ends_it_at_once():
    with program("badly", "0") as (running, _):
        out, err = running.communicate(20)
    assert (out, err) == ("error: clip.mp4: no frames\n", "")


def test_an_open_page_can_still_read_what_is_wrong_with_the_input():
    with program("badly", "1.5") as (running, url):
        page = Page(url)
        wait_until(lambda: page.notices[-1]["stage"] == "failed")
        assert httpx.get(f"{url}/api/state").json()["failure"] == "clip.mp4: no frames"
        out, _ = running.communicate(20)
        page.wait()
    assert out == "error: clip.mp4: no frames\n"


@pytest.mark.parametrize(("prepare", "opens"), [("well", True), ("badly", False)])
def test_the_browser_opens_unless_the_input_is_known_to_be_bad(monkeypatch, prepare, opens):
    opened = []
    monkeypatch.setattr(lifetime.webbrowser, "open", opened.append)
    dispatcher, session, address = new_dispatcher(), FakeSession(), listen("127.0.0.1", 0)
    seen = {}

    class Watched(lifetime.Server):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            seen["server"] = self

    monkeypatch.setattr(lifetime, "Server", Watched)

    def opening(progress, on_change):
        if prepare == "badly":
            raise ValueError("bad")
        return session.opening(progress, on_change)

    app = make_app(dispatcher, Guard.of_address("127.0.0.1", address.ip, address.port, None), PAGE)
    failures = []

    def run():
        try:
            serve(app, dispatcher, address, opening, "http://here/")
        except ValueError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    with address.listener:
        thread.start()
        if opens:
            wait_until(lambda: opened == ["http://here/"])
            seen["server"].should_exit = True
        thread.join(10)
    assert not thread.is_alive()
    assert opened == (["http://here/"] if opens else [])
    assert len(failures) == (not opens)
