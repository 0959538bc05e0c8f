"""A disk that gets full at any moment: one line, no half of a file, nothing lost, and with free space it goes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tests.campaign.commands import ALONE, LONGEST_SECONDS, ROOT, Ended, Trial, Worker, try_all, workers
from tests.campaign.forgetful_disk import MARK, Space, compile_shim, read_log, recording_environment
from tests.campaign.power_loss import OUTPUTS, log_rows
from tests.campaign.samples import BUILD, COMPILING_SECONDS, DELIVERED, build_project, write_images
from tests.campaign.tally import Tally
from tests.server.projects import prepared_tiny

PLENTY = 2**40
ACTS = 12


class TightWorker(Worker):
    """A worker that may write only so many bytes below a folder."""

    def __init__(self, shim: Path, folder: Path) -> None:
        super().__init__()
        self.space = Space(self.folder / "space")
        self._environment = {**ALONE, **recording_environment(shim, folder, space=self.space)}


Words: TypeAlias = Callable[[Path], list[object]]
"""The command, given the folder to write to."""


@dataclass(frozen=True)
class Job:
    """A command that writes files, what it writes, and how many bytes pass to the disk meanwhile."""

    words: Words
    expected: dict[str, bytes]
    needed: int


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Fill the disk under builds, renderings, films, frames and, in every fifth try, under a person who answers."""
    shim = compile_shim(folder)
    project, images = build_project(folder), write_images(folder / "images")
    prepared = prepared_tiny(folder)
    commands: list[Words] = [partial(build_words, images)]
    commands += [partial(output_words, project, name) for name in OUTPUTS]
    make_worker = partial(TightWorker, shim, folder)
    with workers(1, make_worker) as (worker,):
        jobs = [measure(words, worker, folder / "undisturbed") for words in commands[: 2 * count]]

    def try_one(number: int, rng: np.random.Generator, worker: TightWorker, place: Path) -> Trial:
        if number % 5 == 0:
            return fill_under_person(prepared, shim, rng, place)
        # A build has the most moments at which something can be half done.
        job = jobs[0] if number % 2 else jobs[int(rng.integers(len(jobs)))]
        return fill(job, int(rng.integers(job.needed)), worker, place)

    return try_all("full disk", count, seed, folder, try_one, make_worker)


def build_words(images: Path, to: Path) -> list[object]:
    return ["build", images, "-o", to / "out", *BUILD]


def output_words(project: Path, name: str, to: Path) -> list[object]:
    command, *more = OUTPUTS[name]
    return [command, "-q", project, "-o", to / name, *more]


def measure(words: Words, worker: TightWorker, place: Path) -> Job:
    place.mkdir()
    worker.space.set(PLENTY)
    ended = worker.run(*words(place), place=place, patience=COMPILING_SECONDS)
    assert ended.code == 0, ended.err
    expected = {name: content for name, content in _files(place).items() if _is_repeatable(name)}
    shutil.rmtree(place)
    return Job(words, expected, PLENTY - worker.space.left())


def _is_repeatable(name: str) -> bool:
    """Return whether a file is the same every time; of a project only what is delivered is."""
    folder, _, file = name.partition("/")
    return folder != "out" or file in DELIVERED


def _files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def fill(job: Job, space: int, worker: TightWorker, place: Path) -> Trial:
    worker.space.set(space)
    ended = worker.run(*job.words(place), place=place)
    worker.space.set(PLENTY)
    found = _files(place)
    faults = [ended.fault] if ended.fault else []
    faults += [f"{name} is not whole" for name in job.expected if found.get(name) not in (None, job.expected[name])]
    faults += [f"{name} is left behind" for name in found if name.endswith((".part", ".old"))]
    if ended.code == 0 and not job.expected.keys() <= found.keys():
        faults.append(f"{ended.command}: says that all is well, without having written all")
    again = worker.run(*job.words(place), place=place) if ended.code else ended
    faults += _not_done(again)
    found = _files(place)
    faults += [f"{name} is another after going on" for name in job.expected if found.get(name) != job.expected[name]]
    kind = str(job.words(place)[0])
    return Trial(f"{kind} with {space} bytes of {job.needed}", f"{kind} {ended.outcome}", tuple(faults))


def _not_done(ended: Ended) -> list[str]:
    if ended.fault or ended.code:
        return [ended.fault or f"{ended.command}: cannot go on with free space: {ended.err.strip()}"]
    return []


def fill_under_person(prepared: Path, shim: Path, rng: np.random.Generator, place: Path) -> Trial:
    project, log = Path(shutil.copytree(prepared, place / prepared.name)), place / "operations.log"
    space = Space(place / "space")
    space.set(bytes_left := int(rng.integers(150_000)))
    environment = {**ALONE, **recording_environment(shim, project, log=log, space=space)}
    seed = int(rng.integers(1000))
    ended = _answer(project, seed, environment)
    faults = [ended.fault] if ended.fault else []
    acknowledged = [int(one.first) for one in read_log(log) if one.kind == MARK] if log.exists() else []
    there = len(log_rows(Path(shutil.copytree(project, place / "copy"))))
    if acknowledged and there < acknowledged[-1]:
        faults.append(f"{there} entries of {acknowledged[-1]} that were acknowledged")
    space.set(PLENTY)
    again = _answer(project, seed, environment)
    faults += _not_done(again)
    return Trial(f"person {seed} with {bytes_left} bytes", f"person {ended.outcome}", tuple(faults))


def _answer(project: Path, seed: int, environment: dict[str, str]) -> Ended:
    program = [sys.executable, "-m", "tests.campaign.recorded_person", "", str(project), str(seed), str(ACTS)]
    done = subprocess.run(
        program, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    return Ended("a person", done.returncode, done.stdout, done.stderr, quiet=True)
