"""A program that serves a session without frames: for signals, which end a process.

Its first argument says how the preparation goes: `well`, `endlessly` (in steps), `deaf` (without a step), `badly`.
"""

from __future__ import annotations

import time

from smalti.errors import InputError, SmaltiError
from smalti.server.app import make_app
from smalti.server.security import Guard
from smalti.server.serving import listen, serve
from tests.server.dispatchers import PAGE, new_dispatcher
from tests.server.fake_session import FakeSession


def main(preparing, seconds="0"):
    dispatcher, session, address = new_dispatcher(), FakeSession(), listen("127.0.0.1", 0)

    def opening(progress, on_change):
        with progress.stage("reading", 0) as step:
            if preparing == "badly":
                time.sleep(float(seconds))
                raise InputError("clip.mp4: no frames")
            while preparing == "endlessly":
                step()
                time.sleep(0.01)
            if preparing == "deaf":
                time.sleep(2)
        return session.opening(progress, on_change)

    guard = Guard.of_address("127.0.0.1", address.ip, address.port, None)
    print(address.url, flush=True)
    with address.listener:
        try:
            ending = serve(make_app(dispatcher, guard, PAGE), dispatcher, address, opening)
        except SmaltiError as error:
            print(f"error: {error}", flush=True)
            return
    print(f"{ending.folder} {ending.at_rest} {session.closed}", flush=True)
