"""A project that cannot be written, on a read-only mount or for want of rights: all that only reads works as ever.

Also where a killed annotator left answers that SQLite has not merged into its file yet (-wal).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np

from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Author, Pair
from tests.campaign.commands import Ended, Trial, Worker, try_all
from tests.campaign.no_rights import PlainWorker, can_lose_rights, known_commands
from tests.campaign.samples import BUILD, build_project
from tests.campaign.tally import Tally

CANNOT_MOUNT = "needs the right to mount in a namespace of its own"
MOUNT = 'mount --bind "$0" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
PROJECTS = ("walk.smalti", "killed.smalti", "copied.smalti")
"""Closed; with the files of a killed annotator; the same without the -shm, as on a copy."""

READING: dict[str, tuple[str, ...]] = {
    "info": (),
    "evaluate": ("--landmarks", "{media}/walk.smalti/landmarks.csv"),
    "render": ("-q", "-o", "{to}/mosaic.png"),
    "film": ("-q", "-o", "{to}/film.gif", "--seconds", "6", "--size", "160"),
    "undistort": ("-q", "-o", "{to}/frames"),
    "check": (),
}
"""Commands that only read a project, and what follows its name."""

WRITING: dict[str, tuple[str, ...]] = {"annotate": ("--no-browser", "-q"), "build": ("-o", "{project}", *BUILD)}
"""Commands that must say that they need to write."""


@cache
def mounting_words() -> tuple[str, ...]:
    """Return the words before a command that gives it mounts of its own, none where this is not allowed."""
    for words in (("unshare", "-m"), ("unshare", "-rm")):
        if (
            shutil.which("unshare")
            and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
        ):
            return words
    return ()


class MountWorker(Worker):
    """A worker that sees `media` at `reading`, where nothing can be written; nobody else sees this."""

    def __init__(self, media: Path, reading: Path) -> None:
        super().__init__(prefix=(*mounting_words(), "sh", "-c", MOUNT, str(media), str(reading)))


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Run every command on every project: on a read-only mount, and without the right to write."""
    media, reading = make_media(folder), folder / "reading"
    reading.mkdir()
    share = count // 2 if mounting_words() else 0
    tally = try_all(
        "read-only",
        share,
        seed,
        folder,
        partial(_try_one, media, reading, writable),
        partial(MountWorker, media, reading),
    )
    if can_lose_rights():
        rest = try_all(
            "read-only", count - share, seed + share, folder, partial(_try_one, media, media, unwritable), PlainWorker
        )
        tally.tried, tally.failures = tally.tried + rest.tried, tally.failures + rest.failures
        for outcome, times in rest.outcomes.items():
            tally.outcomes[outcome] = tally.outcomes.get(outcome, 0) + times
    return tally


def make_media(folder: Path) -> Path:
    """Build a project, and two more in which an annotator was killed after its latest answer."""
    media = folder / "media"
    media.mkdir()
    project = build_project(media)
    answered = Path(shutil.copytree(project, folder / "answered.smalti"))
    with closing(Store.open(answered / FILE_NAME)) as store:
        answer = Answer.unsure(Pair(0, 5), "too dark", Author.PERSON)
        store.keep_answer(AnswerEntry(answer, Role.LOOP, 1.0))
        assert (answered / "project.sqlite-wal").stat().st_size, "the answer is in the -wal"
        # Nothing is closed yet: these are the files that a killed annotator leaves.
        for name, missing in zip(PROJECTS[1:], ("nothing", "*-shm"), strict=True):
            shutil.copytree(answered, media / name, ignore=shutil.ignore_patterns(missing))
    return media


@contextmanager
def writable(project: Path) -> Iterator[None]:
    """Leave the rights of a project as they are: its disk is protected."""
    yield


@contextmanager
def unwritable(project: Path) -> Iterator[None]:
    """Take the right to write to a project and all that is in it, for a while."""
    paths = [project, *project.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)


Protection: TypeAlias = Callable[[Path], AbstractContextManager[None]]
"""Keeps a project from being written for a while."""


def _try_one(
    media: Path, reading: Path, protect: Protection, number: int, rng: np.random.Generator, worker: Worker, place: Path
) -> Trial:
    commands = [name for name in (*READING, *WRITING) if name in known_commands()]
    cases = list(product(PROJECTS, commands))
    name, command = cases[number % len(cases)]
    # On the mount all tries share one project, which nobody can change; without it each has its own.
    project = reading / name
    if reading == media:
        project = Path(shutil.copytree(media / name, place / name))
    return try_command(command, project, media / name, protect, worker, place)


def try_command(command: str, project: Path, original: Path, protect: Protection, worker: Worker, place: Path) -> Trial:
    """Run a command on a project that cannot be written, and on a copy that can, and compare."""
    with protect(project):
        ended, written = _run(command, project, original.parent, worker, place / "protected")
    faults = [ended.fault] if ended.fault else []
    if command in WRITING:
        if ended.code != 1 or "writ" not in ended.err:
            faults.append(f"{ended.command}: does not say that it needs to write: {ended.err.strip() or ended.code}")
        return Trial(f"{command} {project.name}", ended.outcome, tuple(faults))
    copy = Path(shutil.copytree(original, place / "copy" / original.name))
    plain, expected = _run(command, copy, original.parent, worker, place / "plain")
    assert plain.code == 0, plain.err
    if ended.code:
        faults.append(f"{ended.command}: refuses to read: {ended.err.strip()}")
    elif _without(ended.out, project, place / "protected") != _without(plain.out, copy, place / "plain"):
        faults.append(f"{ended.command}: says {ended.out!r} instead of {plain.out!r}")
    elif written != expected:
        faults.append(f"{ended.command}: writes something else than of a project that can be written")
    return Trial(f"{command} {project.name}", ended.outcome, tuple(faults))


def _without(out: str, *places: Path) -> str:
    """Return what a command says, without the places that it names."""
    for place in places:
        out = out.replace(str(place), "")
    return out


def _run(command: str, project: Path, media: Path, worker: Worker, to: Path) -> tuple[Ended, dict[str, bytes]]:
    to.mkdir()
    more = [word.format(media=media, to=to, project=project) for word in {**READING, **WRITING}[command]]
    first = media / "walk" if command == "build" else project
    ended = worker.run(command, first, *more)
    return ended, {str(p.relative_to(to)): p.read_bytes() for p in to.rglob("*") if p.is_file()}
