"""A process that has imported and loaded everything, and forks servers that are ready in a moment.

It reads lines: `serve FOLDER` forks a server and answers with its process and port, `replay FOLDER` answers with what
a fresh session says of the folder's log.

Threads do not survive a fork, and OpenMP does not survive being forked: kernels that would run in parallel are plain
Python here. The numbers may differ in the last bit from those of other processes, never among the children. Nor is
numba asked for its threads: it takes a lock for that which all children share, and a child that is killed keeps it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import sys
import traceback

import cv2

import smalti.compiled

smalti.compiled.compiled_parallel = lambda function: function
smalti.compiled.threads_for = lambda microseconds: contextlib.nullcontext()

from smalti.annotation.messages import GiveAnswer  # noqa: E402
from smalti.annotation.session import Session  # noqa: E402
from smalti.server.app import make_app  # noqa: E402
from smalti.server.security import Guard  # noqa: E402
from smalti.server.serving import listen, serve  # noqa: E402
from tests.server.dispatchers import PAGE, Client, new_dispatcher  # noqa: E402


def main():
    faulthandler.enable()
    cv2.setNumThreads(0)
    dispatcher = new_dispatcher()
    app = make_app(dispatcher, Guard.of_address("127.0.0.1", "127.0.0.1", 0, None), PAGE)
    Client(app).get("/api/state")
    warm_up(sys.argv[1])
    gc.collect()  # a child that freed what is left of a decoder would wait for its threads for ever
    print("ready", flush=True)
    server = None
    for line in sys.stdin:
        what, folder = line.strip().split(" ", 1)
        if what == "replay":
            os.waitpid(fork(lambda folder=folder: print(json.dumps(describe(folder)), flush=True)), 0)
            continue
        if server is not None:
            os.waitpid(server, 0)  # it was killed: its lock on the folder is gone now
        server = fork(lambda folder=folder: serve_folder(app, dispatcher, folder))


def fork(do):
    """Do something in a process of its own, and return its number."""
    child = os.fork()
    if child == 0:
        try:
            do()
        except BaseException:
            traceback.print_exc()
            print(flush=True)  # whoever waits for an answer gets an empty one
        finally:
            os._exit(0)
    return child


def warm_up(folder):
    """Load all kernels, with what is done to a copy that nobody looks at."""
    session = Session.open(folder)
    question = session.question()
    session.look(0, 5)
    session.give(GiveAnswer(i=question.i, j=question.j, verdict="no", seen_revision=session.revision))
    describe_session(session)
    session.close()


def serve_folder(app, dispatcher, folder):
    address = listen("127.0.0.1", 0)
    print(os.getpid(), address.port, flush=True)

    def opening(progress, on_change):
        return Session.prepare(folder, progress=progress, on_change=on_change)

    serve(app, dispatcher, address, opening)


def describe(folder):
    session = Session.open(folder)
    try:
        return describe_session(session)
    finally:
        session.close()


def describe_session(session):
    return [
        session.state().model_dump(mode="json", exclude={"folder"}),
        session.mosaic().model_dump(mode="json"),
        [row.model_dump(mode="json") for row in session.answers()],
    ]


if __name__ == "__main__":
    main()
