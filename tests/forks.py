"""Programs in processes of their own that have everything loaded: the imports of each would take seconds."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

LOADED = [
    "smalti.annotation.session",
    "smalti.cli.command_line",
    "smalti.server.serving",
    "tests.server.fake_program",
]
"""Importing them runs no kernel: threads would not survive a fork."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(LOADED)


class Forked:
    """A function that runs in a process of its own; both of its streams are read here."""

    def __init__(self, function: Callable[..., object], *words: object) -> None:
        (out, child_out), (err, child_err) = FORKS.Pipe(duplex=False), FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=_run, args=(function, words, Path.cwd(), child_out, child_err))
        self._process.start()
        self.stdout, self._stderr = (os.fdopen(os.dup(stream.fileno())) for stream in (out, err))
        for connection in (out, err, child_out, child_err):
            connection.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self._process.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end; return what it said on both streams."""
        self._process.join(timeout)
        assert self.returncode is not None, f"the program does not end within {timeout} s"
        return self.stdout.read(), self._stderr.read()

    def close(self) -> None:
        """End it, if it has not ended by itself."""
        self._process.kill()
        self._process.join()
        self.stdout.close()
        self._stderr.close()


def _run(
    function: Callable[..., Any], words: tuple[object, ...], place: Path, out: Connection, err: Connection
) -> None:
    # Whoever runs the tests in the background has them ignore interrupts, and so their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(place)
    # The streams that were forked are of a file, perhaps, and know that they can seek.
    for number, name, connection in ((1, "stdout", out), (2, "stderr", err)):
        os.dup2(connection.fileno(), number)
        connection.close()
        setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    sys.exit(function(*words))
