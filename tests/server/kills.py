"""Servers to be killed: forked ones that are ready in a moment, and what kills them."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]

PATIENCE_SECONDS = 60

GONE = (OSError, http.client.HTTPException)
"""What one notices of a server that was killed."""

# One thread each: the machine has others to run, and threads that wait for each other do so by spinning.
ALONE = {
    **os.environ,
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
}


class Nursery:
    """Starts servers that are forked, and replays logs."""

    def __init__(self, scratch):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.server.nursery", str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=ALONE,
        )
        assert self._read() == "ready"

    def serve(self, folder):
        process, port = self._ask(f"serve {folder}").split()
        return int(process), int(port)

    def replay(self, folder):
        return json.loads(self._ask(f"replay {folder}"))

    def close(self):
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _ask(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self):
        # It is asked one thing at a time and answers with one line: nothing is left in the buffer.
        if not select.select([self._process.stdout], [], [], PATIENCE_SECONDS)[0]:
            self._process.send_signal(signal.SIGABRT)  # it says where it is
            raise AssertionError(f"the nursery says nothing for {PATIENCE_SECONDS} s, see where it is above")
        line = self._process.stdout.readline().strip()
        assert line, "the nursery, or its child, has ended without a word; see why above"
        return line


class Killer:
    """Kills a process some seconds after it is told to, or at the end at the latest.

    That the server is gone is no fault once it was killed; one that goes by itself is.
    """

    def __init__(self, process):
        self._process = process
        self._timer = None
        self._is_time = False

    def kill_within(self, seconds):
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        was_killed = self._is_time
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self._kill()
        return was_killed and isinstance(error, GONE)

    def _kill(self):
        self._is_time = True
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(self._process, signal.SIGKILL)


def wait_until_asking(wire):
    """Wait until the server asks; one that was killed raises."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while wire.get("/api/state")["stage"] == "preparing":
        assert time.monotonic() < give_up, f"it still prepares after {PATIENCE_SECONDS} s"
        time.sleep(0.02)
