"""Runs commands in workers, and says what is wrong with how one ended: traceback, hang, memory, more than one line."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from tests.campaign.tally import Tally

ROOT = Path(__file__).parents[2]
LONGEST_SECONDS = 60.0
MOST_MEGABYTES = 2000
LOOKING_SECONDS = 0.05
CODES = (0, 1, 2, 130, 141)
CORES = max(1, min(4, os.cpu_count() or 1))
ALONE = {
    **os.environ,
    # One thread each: there is a worker a core.
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    command: str
    code: int
    out: str
    err: str
    quiet: bool
    stopped: str = ""  # why it was killed, if it was
    page: dict[str, object] = field(default_factory=dict)  # what an annotator's page was told

    @property
    def fault(self) -> str:
        """What is wrong with it in one line, empty if nothing is."""
        lines = self.err.strip().splitlines()
        last = lines[-1][:200] if lines else ""
        if self.stopped:
            return f"{self.command}: {self.stopped}; {_place_of(lines)}"
        if "Traceback (most recent call last)" in self.err:
            return f"{self.command}: traceback: {last}; {_place_of(lines[::-1])}"
        if self.code not in CODES:
            return f"{self.command}: exit code {self.code}: {last}"
        if not self.quiet and self.code == 0:
            return ""  # there are bars
        if self.code != 0 and not lines:
            return f"{self.command}: exit code {self.code} without a word"
        if len(lines) > 1 or any(not line.startswith("smalti: ") for line in lines):
            return f"{self.command}: {len(lines)} lines on standard error: {' | '.join(lines)[:300]}"
        return ""

    @property
    def outcome(self) -> str:
        return "done" if self.code == 0 else "refused"


def _place_of(lines: list[str]) -> str:
    """Return the first line of ours among those of a stack, where it is the innermost."""
    return next((line.strip() for line in lines if line.strip().startswith("File ") and "/src/smalti" in line), "")


W = TypeVar("W", bound="Worker")


class Worker:
    """A process that runs commands one by one; it is replaced when it has to be killed."""

    def __init__(self, prefix: Sequence[str] = (), environment: Mapping[str, str] = ALONE) -> None:
        """Take the words before the worker's command, such as those that take its rights, and its environment."""
        self._prefix, self._environment = prefix, environment
        self.folder = Path(tempfile.mkdtemp(prefix="smalti-campaign-"))
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self,
        *arguments: object,
        place: Path | None = None,
        pages: tuple[str, ...] = ("state",),
        patience: float | None = None,
    ) -> Ended:
        """Run a command in the folder `place`; an annotator is asked for `pages` once it asks, and ended."""
        words = [str(argument) for argument in arguments]
        process = self._started()
        request = {"arguments": words, "place": str(place or self.folder)}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        stopped, page = self._watch(process, words[:1] == ["annotate"], pages, patience or LONGEST_SECONDS)
        if stopped:
            self._abort()
        line = process.stdout.readline().strip()
        code = int(line) if line else process.wait()  # an annotator may end its process
        if not line:
            self._forget()
        out, err = ((self.folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
        quiet = bool({"-q", "--quiet"} & set(words)) or words[:1] in (["info"], ["evaluate"], ["check"])
        return Ended(_shown(words), code, out, err, quiet, stopped, page)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._forget()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            words = [*self._prefix, sys.executable, "-m", "tests.campaign.worker", str(self.folder)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, cwd=ROOT, env=self._environment, bufsize=0)
            assert self._process.stdout.readline() == b"ready\n", "the worker does not start, see why above"
        return self._process

    def _watch(
        self, process: subprocess.Popen[bytes], is_annotator: bool, pages: tuple[str, ...], patience: float
    ) -> tuple[str, dict[str, object]]:
        """Wait for the answer; return why not to wait any longer, and what an annotator told."""
        give_up, page = time.monotonic() + patience, {}
        while not select.select([process.stdout], [], [], LOOKING_SECONDS)[0]:
            if time.monotonic() > give_up:
                return f"hangs for more than {patience:.0f} s", page
            megabytes = resident_megabytes(process.pid)
            if megabytes > MOST_MEGABYTES:
                return f"takes {megabytes:.0f} MB", page
            if is_annotator and not page and (page := self._look(pages)):
                os.kill(process.pid, signal.SIGTERM)
        return "", page

    def _look(self, pages: tuple[str, ...]) -> dict[str, object]:
        """Return what an annotator tells once it asks, nothing before."""
        address = (self.folder / "out").read_text(encoding="utf-8", errors="replace").partition("\n")[0]
        if not address.startswith("http://"):
            return {}
        try:
            if fetch(f"{address}api/state")["stage"] not in ("preparing", "failed"):
                return {name: fetch(f"{address}api/{name}") for name in pages}
        except urllib.error.HTTPError as error:
            return {"refused": error.code}
        except (OSError, ValueError):
            pass  # it does not listen yet
        return {}

    def _abort(self) -> None:
        self._process.send_signal(signal.SIGABRT)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
        self._process = None


def fetch(address: str) -> object:
    with urllib.request.urlopen(address, timeout=10) as response:
        return json.load(response)


def resident_megabytes(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:  # it has ended
        return 0.0


def _shown(words: list[str]) -> str:
    shown = [word if len(word) <= 60 else f"{word[:40]}…({len(word)} characters)" for word in words]
    return "smalti " + " ".join(
        repr(word) if word != word.strip() or not word.isprintable() else word for word in shown
    )


@dataclass(frozen=True)
class Trial:
    """What was tried, how the product answered, and what is wrong with that."""

    what: str
    outcome: str
    faults: tuple[str, ...] = ()


def try_all(
    attack: str,
    count: int,
    seed: int,
    folder: Path,
    try_one: Callable[[int, np.random.Generator, W, Path], Trial],
    make_worker: Callable[[], W] = Worker,
) -> Tally:
    """Try `count` times, a worker a core; try n has the seed `seed` + n alone, and an empty folder of its own.

    A failure is repeated with this seed and one try: `python -m tests.campaign --attacks NAME --seed SEED --tries 1`.
    """
    tally = Tally(attack)
    with contextlib.ExitStack() as stack:
        idle: SimpleQueue[W] = SimpleQueue()
        for worker in stack.enter_context(workers(min(CORES, count), make_worker)):
            idle.put(worker)

        def attempt(number: int) -> Trial:
            worker, place = idle.get(), folder / f"try-{number}"
            place.mkdir()
            try:
                return try_one(number, np.random.default_rng(number), worker, place)
            finally:
                idle.put(worker)
                shutil.rmtree(place, ignore_errors=True)

        threads = stack.enter_context(ThreadPoolExecutor(min(CORES, count)))
        for number, trial in zip(
            range(seed, seed + count), threads.map(attempt, range(seed, seed + count)), strict=True
        ):
            tally.count(trial.outcome)
            for fault in trial.faults:
                told = fault.replace(str(folder), "").replace("\n", " | ")
                tally.failures.append(f"seed {number}: {trial.what}: {told}")
                print(f"\n  {tally.failures[-1]}", end=" ", file=sys.stderr, flush=True)  # the rest may take minutes
    return tally


@contextlib.contextmanager
def workers(count: int, make_worker: Callable[[], W] = Worker) -> Iterator[list[W]]:
    started = [make_worker() for _ in range(count)]
    try:
        yield started
    finally:
        for worker in started:
            worker.close()
