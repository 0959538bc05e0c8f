"""The command `smalti annotate` in a process of its own."""

from __future__ import annotations

import json
import select
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

from smalti.cli.main import main
from tests.forks import Forked

START_SECONDS = 300
"""On a fresh clone the code is compiled first, by several programs at a time."""

STOP_SECONDS = 20


class Program:
    """A running `smalti annotate`; ends with the `with` block, if not before."""

    def __init__(self, *arguments: str | Path) -> None:
        self.process = Forked(main, ["annotate", *map(str, arguments), "--no-browser", "--quiet"])
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

    def kill(self) -> str:
        """End it as a power cut does."""
        return self._end(signal.SIGKILL)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.close()

    def _read_address(self) -> str:
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if not line.startswith("http"):
            said = self.kill()
            self.process.close()
            raise AssertionError(f"smalti annotate gave no address but {line!r} and {said}")
        return line.strip()

    def _end(self, how: signal.Signals) -> str:
        self.process.send_signal(how)
        output, errors = self.process.communicate(timeout=STOP_SECONDS)
        return output + errors
