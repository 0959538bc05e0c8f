"""The program as people start it: `smalti annotate` in a process of its own."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

START_SECONDS = 300
"""On a fresh clone the code is compiled first, by several programs at a time."""

STOP_SECONDS = 20


class Program:
    """A running `smalti annotate`; ends with the `with` block, if not before."""

    def __init__(self, *arguments: str | Path) -> None:
        script = Path(sys.executable).with_name("smalti")
        command = [script, "annotate", *arguments, "--no-browser", "--quiet"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self._read_address()

    def get(self, path: str) -> Any:
        """Return the answer to a request that any program on this machine could send."""
        with urllib.request.urlopen(f"{self.address}{path}", timeout=START_SECONDS) as response:
            return json.load(response)

    def post(self, path: str, message: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.address}{path}", json.dumps(message).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=START_SECONDS) as response:
            return json.load(response)

    def wait_until_asking(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self.get("api/state")["stage"] != "asking":
            assert time.monotonic() < deadline, f"still {self.get('api/state')} after {START_SECONDS} s"
            time.sleep(0.1)

    def stop(self) -> str:
        """End it as Ctrl-C does, and return what it said."""
        return self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if not line.startswith("http"):
            self.process.kill()
            raise AssertionError(f"smalti annotate gave no address but {line!r} and {self.process.communicate()}")
        return line.strip()

    def _end(self, how: signal.Signals) -> str:
        self.process.send_signal(how)
        output, errors = self.process.communicate(timeout=STOP_SECONDS)
        return output + errors
