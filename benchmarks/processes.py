"""Run a command in a process of its own, and measure it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a process."""

    seconds: float
    processor_seconds: float  # user and system, of all its threads and of the processes that it waited for
    peak_mb: float  # largest resident memory
    outcome: str  # "done", or what went wrong


def watch(
    command: Sequence[str],
    said: Path,
    *,
    limit_seconds: float = inf,
    limit_mb: float = inf,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Run a command to its end or to a limit; `said` gets its output.

    Memory is read on the way: a killed process reports nothing, and what the kernel reports of one that has ended may
    be inherited from its parent.
    """
    peak_mb, stopped, ended, status = 0.0, "", 0, 0
    with said.open("w") as log:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            while not ended:
                resident_mb, peak_mb = read_memory_mb(process.pid, peak_mb)
                if time.perf_counter() - began > limit_seconds:
                    stopped = f"stopped after {limit_seconds:g} s, {peak_mb:.0f} MB"
                elif resident_mb > limit_mb:
                    stopped = f"stopped at {resident_mb:.0f} MB, the limit is {limit_mb:.0f} MB"
                if stopped:
                    process.kill()
                # The only way to its processor time alone. Popen must not wait for it, too.
                ended, status, usage = os.wait4(process.pid, 0 if stopped else os.WNOHANG)
                time.sleep(0 if ended else POLL_SECONDS)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not stopped:
        last = said.read_text(errors="replace").strip().split("\n")[-1]
        stopped = f"failed: {last[:200] or f'exit code {process.returncode}'}"
    return Run(seconds, usage.ru_utime + usage.ru_stime, peak_mb, stopped or "done")


def read_memory_mb(process: int, peak_mb: float) -> tuple[float, float]:
    """Return current and largest resident memory; the earlier values if the process has just ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, peak_mb
    status = dict(line.split(":", 1) for line in lines if line.startswith(("VmRSS", "VmHWM")))
    now, most = (float(status.get(name, "0 kB").split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, max(most, peak_mb)
