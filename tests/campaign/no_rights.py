"""Folders and files that may not be read or not be written: every command says so in one line, and harms nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from smalti.cli.command_line import make_parser
from tests.campaign.commands import Trial, Worker, try_all, workers
from tests.campaign.power_loss import log_rows
from tests.campaign.samples import BUILD, build_project, copy_project
from tests.campaign.tally import Tally

CANNOT_LOSE_RIGHTS = "root needs setpriv to lose its rights"
NO_RIGHTS = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
"""Words before a command: root without its privileges is somebody like any other, to whom modes of files apply."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "build": ("walk", "-o", "new.smalti", *BUILD, "--mask", "mask.png"),
    "build again": ("walk", "-o", "walk.smalti", *BUILD),
    "annotate": ("walk.smalti", "--source", "walk", "--no-browser", "-q"),
    "info": ("walk.smalti",),
    "check": ("walk.smalti",),
    "evaluate": ("walk.smalti", "--landmarks", "landmarks.csv"),
    "render": ("walk.smalti", "--source", "walk", "-q", "-o", "out/mosaic.png", "--positions", "positions.csv"),
    "film": ("walk.smalti", "--source", "walk", "-q", "-o", "out/film.gif", "--seconds", "6", "--size", "160"),
    "undistort": ("walk.smalti", "--source", "walk", "-q", "-o", "out/frames"),
    "replay": ("walk.smalti", "-q", "--out", "out/replay"),
}
"""Every command that reads or writes files, in a place with all that it needs; the first word names it."""

PLACES = (
    *("", "out", "out/mosaic.png", "mask.png", "landmarks.csv", "positions.csv", "walk", "walk/frame_0002.png"),
    *("walk.smalti", "walk.smalti/project.sqlite", "walk.smalti/lock", "walk.smalti/mosaic.png"),
    *("walk.smalti/landmarks.csv", "walk.smalti/answers.jsonl", "walk.smalti/cache", "walk.smalti/cache/keypoints"),
    *("walk.smalti/cache/keypoints/000001.npz", "walk.smalti/cache/likeness.npz", "walk.smalti/cache/rendering"),
)
"""What the rights are taken of; the first is the folder that the command runs in."""

MODES = (0o000, 0o444, 0o555, 0o333)
"""Nothing; names without what they name; not to be written; not to be listed."""


def can_lose_rights() -> bool:
    return os.name == "posix" and (os.geteuid() != 0 or shutil.which("setpriv") is not None)


class PlainWorker(Worker):
    """A worker without the rights of root."""

    def __init__(self) -> None:
        super().__init__(prefix=NO_RIGHTS if os.geteuid() == 0 else ())


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Run commands in turn, each time without some right."""
    project = build_project(folder)
    with workers(1) as (worker,):
        told = worker.run("info", project).out
    names = [name for name in COMMANDS if name.split()[0] in known_commands()]
    try_one = partial(_try_one, project, told, names)
    return try_all("no rights", count, seed, folder, try_one, PlainWorker)


def known_commands() -> set[str]:
    """Return the commands of this version."""
    [subparsers] = (action for action in make_parser()._actions if action.dest == "command")
    return set(subparsers.choices)


def _try_one(
    project: Path, told: str, names: list[str], number: int, rng: np.random.Generator, worker: Worker, place: Path
) -> Trial:
    prepare(project, place)
    name = names[number % len(names)]
    there = [path for path in PLACES if (place / path).exists()]
    path, mode = there[int(rng.integers(len(there)))], int(rng.choice(MODES))
    return try_without(name, path, mode, worker, place, told)


def prepare(project: Path, place: Path) -> None:
    """Fill a place with copies of all that the commands need, and an earlier result."""
    copy_project(project, place)
    shutil.copy(project.parent / "positions.csv", place)
    shutil.copy(project / "landmarks.csv", place)
    shutil.copy(project / "mosaic.png", place / "mask.png")
    (place / "out").mkdir()
    (place / "out" / "mosaic.png").write_bytes(b"earlier")
    (place / "walk.smalti" / "lock").touch()


def try_without(name: str, path: str, mode: int, worker: Worker, place: Path, told: str) -> Trial:
    """Run a command while `path` has only the rights of `mode`; then compare what the project tells."""
    before = log_rows(place / "walk.smalti")
    with only_rights(place / path, mode):
        # The place itself may be closed, so it is named from outside.
        words = [place / word if _is_path(word) else word for word in COMMANDS[name]]
        ended = worker.run(name.split(maxsplit=1)[0], *words)
    faults = [ended.fault] if ended.fault else []
    if log_rows(place / "walk.smalti")[: len(before)] != before:
        faults.append("the log has changed")
    info = worker.run("info", place / "walk.smalti")
    if info.fault or not _same_project(info.out, told):
        faults.append(f"with all rights again: {info.fault or info.err or info.out}")
    what = f"{name} with {path or 'its folder'} of mode {mode:03o}"
    return Trial(what, ended.outcome, tuple(faults))


def _is_path(word: str) -> bool:
    return word == "walk" or word.startswith("out/") or word.endswith((".smalti", ".png", ".csv"))


def _same_project(out: str, told: str) -> bool:
    """Compare all that `info` says but where the frames are and the time that everything took."""
    first, second = ([line for line in text.splitlines()[1:] if not line.startswith("seconds")] for text in (out, told))
    return first == second


@contextmanager
def only_rights(path: Path, mode: int) -> Iterator[None]:
    """Give a file or folder a mode for a while."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)
