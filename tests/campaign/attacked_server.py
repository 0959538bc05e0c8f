"""The annotator on a small project in a process of its own, to be attacked; and how one sees that it goes on."""

from __future__ import annotations

import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.campaign.commands import ALONE, MOST_MEGABYTES, ROOT, fetch, resident_megabytes
from tests.campaign.samples import build_project
from tests.campaign.tally import Tally

HONEST_SECONDS = 1.0
ENDING_SECONDS = 10.0
WAITING_SECONDS = 0.5


class Server:
    """The annotator on a project, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port
        self.known = self.answers()

    def answers(self) -> object:
        return fetch(f"http://127.0.0.1:{self.port}/api/answers")

    def look(self) -> str:
        """Ask something honest; return what is wrong, empty if nothing is."""
        began = time.monotonic()
        try:
            state = fetch(f"http://127.0.0.1:{self.port}/api/state")
        except OSError as error:
            return f"an honest request is not answered: {error}"
        seconds, megabytes = time.monotonic() - began, resident_megabytes(self.process.pid)
        if seconds > HONEST_SECONDS:
            return f"an honest request takes {seconds:.1f} s"
        if megabytes > MOST_MEGABYTES:
            return f"the server takes {megabytes:.0f} MB"
        return "" if state["stage"] == "asking" else f"the server is {state['stage']}"

    def send(self, content: bytes, patience: float = 5.0) -> tuple[int, bytes]:
        """Send bytes on a connection of their own; return status and body, status 0 if it is closed without one."""
        with closing(self.connect(patience)) as connection:
            received = b""
            with suppress(OSError):
                connection.sendall(content)
                if not select.select([connection], [], [], WAITING_SECONDS)[0]:
                    connection.shutdown(socket.SHUT_WR)  # it waits for more: there is no more
                while chunk := connection.recv(65536):
                    received += chunk
        head, _, body = received.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        return (int(words[1]) if len(words) > 1 and words[1].isdigit() else 0), body

    def connect(self, patience: float = 5.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=patience)


@contextmanager
def serving(folder: Path, tally: Tally) -> Iterator[Server]:
    """Serve a small project; at the end it must end, say nothing but where the answers are, and have kept them."""
    project = build_project(folder)
    words = [sys.executable, "-m", "tests.server.real_program", "annotate", "--no-browser", "-q", str(project)]
    err = (folder / "err").open("w+")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=err, text=True, cwd=ROOT, env=ALONE)
    try:
        port = int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        give_up = time.monotonic() + 60
        while fetch(f"http://127.0.0.1:{port}/api/state")["stage"] == "preparing":
            assert time.monotonic() < give_up, "the server does not get ready"
            time.sleep(0.05)
        server = Server(process, port)
        yield server
        if (now := server.answers()) != server.known:
            tally.failures.append(f"the answers have changed: {str(now)[:200]}")
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_SECONDS)
        if process.returncode != 0:
            tally.failures.append(f"asked to end, it ends with {process.returncode}")
        err.seek(0)
        if said := err.read().strip():
            tally.failures.append(f"on standard error: {said.splitlines()[-1][:200]} ({len(said.splitlines())} lines)")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        err.close()
        shutil.rmtree(project, ignore_errors=True)
