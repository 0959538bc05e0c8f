"""SIGKILL at random moments: of builds, renderings, films and of the annotator while answers are given."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smalti.project.project import Project
from tests.building.filmed import tiny
from tests.campaign.commands import ALONE, LONGEST_SECONDS, ROOT, Trial, Worker, try_all, workers
from tests.campaign.samples import BUILD, DELIVERED, build_project
from tests.campaign.tally import Tally
from tests.server.kills import Killer, Nursery, wait_until_asking
from tests.server.projects import prepared_tiny
from tests.server.scribe import Scribe, Wire

SHARE_OF_ANNOTATOR = 0.625
OUTPUTS = ("mosaic.png", "mosaic.tif", "mosaic.jpg", "mosaic.zarr", "mosaic.dzi", "film.mp4", "film.gif", "undistorted")
LARGE = ("--scale", "5")
"""A rendering that is written for a while."""

LATE_PREPARATION = 0.1
"""How often the annotator is killed before it asks."""


@dataclass(frozen=True)
class Job:
    """A command that writes something, and how to tell whether it is all there."""

    words: Callable[[Path], list[object]]  # given the folder to write to
    expected: dict[str, bytes]
    seconds: float  # that it takes from the start of its process


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Kill the annotator for a part of the tries, and builds, renderings and films in turn for the others."""
    of_annotator = round(SHARE_OF_ANNOTATOR * count)
    tally = kill_commands(count - of_annotator, seed, folder)
    for_annotator = folder / "annotator"
    for_annotator.mkdir()
    kill_annotator(tally, of_annotator, seed, for_annotator)
    return tally


def kill_commands(count: int, seed: int, folder: Path) -> Tally:
    """Kill builds and commands that write files; the same command must then give what it would have given."""
    project = build_project(folder)
    jobs = {"build": _job(folder, lambda to: ["build", project.parent / "walk", "-o", to / "out", *BUILD])}
    for name in OUTPUTS[: (count + 1) // 2]:
        jobs[name] = _job(folder, lambda to, name=name: _writing(project, to, name))
    # Builds have the most moments at which something can be half done.
    kinds = [kind for name in OUTPUTS if name in jobs for kind in ("build", name)]

    def try_one(number: int, rng: np.random.Generator, worker: Worker, place: Path) -> Trial:
        kind = kinds[number % len(kinds)]
        job = jobs[kind]
        moment = _kill(job, place, rng)
        faults = [f"{name} is there and not whole" for name, is_whole in _found(job, place).items() if not is_whole]
        if kind != "undistorted" or not (place / kind).exists():  # it never writes to a folder that is there
            ended = worker.run(*job.words(place), place=place)
            if ended.fault or ended.code:
                faults.append(ended.fault or f"{ended.command}: cannot go on: {ended.err.strip()}")
        faults += [
            f"{name} is not what an undisturbed command writes"
            for name in job.expected
            if not _found(job, place).get(name)
        ]
        left = [str(path.relative_to(place)) for path in place.rglob("*") if path.name.endswith((".part", ".old"))]
        faults += [f"{name} is left behind" for name in left]
        return Trial(f"{kind} killed {moment}", f"{kind.partition('.')[0]} killed", tuple(faults))

    return try_all("kills", count, seed, folder, try_one)


def _writing(project: Path, to: Path, name: str) -> list[object]:
    if name == "undistorted":
        return ["undistort", "-q", project, "-o", to / name]
    if name.startswith("film"):
        return ["film", "-q", project, "-o", to / name, "--seconds", "6", "--size", "320"]
    return ["render", "-q", project, "-o", to / name, *LARGE]


def _job(folder: Path, words: Callable[[Path], list[object]]) -> Job:
    """Run a command undisturbed, in a process of its own."""
    to = folder / "undisturbed"
    to.mkdir()
    began = time.monotonic()
    _start(words(to)).wait(LONGEST_SECONDS)
    seconds = time.monotonic() - began
    expected = {name: content for name, content in _files(to).items() if _is_repeatable(name)}
    assert expected, words(to)
    shutil.rmtree(to)
    return Job(words, expected, seconds)


def _is_repeatable(name: str) -> bool:
    """Return whether a file is the same every time; of a project only what is delivered is."""
    folder, _, file = name.partition("/")
    return folder != "out" or file in DELIVERED


def _files(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _found(job: Job, place: Path) -> dict[str, bool]:
    """Return which of the expected files are there under their final names, and whether each is whole."""
    files = _files(place)
    return {name: files[name] == content for name, content in job.expected.items() if name in files}


def _start(words: list[object]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "smalti.cli.main", *map(str, words)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=ALONE, stdout=quiet, stderr=quiet)


def _kill(job: Job, place: Path, rng: np.random.Generator) -> str:
    """Start a command and kill it: at any moment, or soon after it has begun to write something."""
    process = _start(job.words(place))
    try:
        is_any = rng.random() < 0.5
        if not is_any:
            give_up = time.monotonic() + LONGEST_SECONDS
            while process.poll() is None and not any(place.iterdir()) and time.monotonic() < give_up:
                time.sleep(0.001)
        seconds = float(rng.random()) * job.seconds * (1.0 if is_any else 0.4)
        time.sleep(seconds)
        has_ended = process.poll() is not None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    after = "its start" if is_any else "its first file"
    return f"{seconds:.2f} s after {after}{', when it had ended' if has_ended else ''}"


def kill_annotator(tally: Tally, count: int, seed: int, folder: Path) -> None:
    """Kill a server again and again while answers are given; everything acknowledged must be there."""
    prepared = prepared_tiny(folder)
    answered = Path(shutil.copytree(prepared, folder / "answered" / "tiny.smalti"))
    with Project.open(answered) as project:
        revision = project.store.revision
    rng = np.random.default_rng(seed)
    scribe = Scribe(tiny(), revision, rng)
    nursery = Nursery(shutil.copytree(prepared, folder / "scratch.smalti"))
    try:
        for kill in range(count):
            try:
                _kill_server(nursery, answered, scribe, rng)
            except AssertionError as error:
                tally.failures.append(f"seed {seed}: kill {kill} of the annotator: {str(error)[:300]}")
                break
            tally.count("annotator killed")
        _check_annotator(tally, nursery, answered, scribe, seed)
    finally:
        nursery.close()


def _kill_server(nursery: Nursery, folder: Path, scribe: Scribe, rng: np.random.Generator) -> None:
    process, port = nursery.serve(folder)
    with Killer(process) as killer, closing(Wire(port)) as wire:
        if rng.random() < LATE_PREPARATION:
            killer.kill_within(0.2 * rng.random())
        wait_until_asking(wire)
        scribe.check(wire)
        scribe.act(wire)
        killer.kill_within(2 * scribe.seconds * rng.random())
        while True:
            scribe.act(wire)


def _check_annotator(tally: Tally, nursery: Nursery, folder: Path, scribe: Scribe, seed: int) -> None:
    """Look at the answers once more, and open the project by a command."""
    process, port = nursery.serve(folder)
    with Killer(process), closing(Wire(port)) as wire:
        wait_until_asking(wire)
        try:
            scribe.check(wire)
        except AssertionError as error:
            tally.failures.append(f"seed {seed}: an acknowledged answer is lost: {str(error)[:300]}")
    with workers(1) as (worker,):
        info = worker.run("info", folder)
    if info.fault or info.code:
        tally.failures.append(f"seed {seed}: the project of a killed annotator: {info.fault or info.err}")
