"""Flips of 1 to 8 bits in every table and every file of a project: named, or without any effect."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smalti.annotation.session import Session
from smalti.records import Answer, Author, Pair
from tests.campaign.commands import Ended, Trial, Worker, try_all, workers
from tests.campaign.database_cells import flip_cell, list_cells, read_tables
from tests.campaign.mutations import flip_bits
from tests.campaign.samples import DELIVERED, build_project, copy_project, resume
from tests.campaign.tally import Tally

DATABASE, WAL = "project.sqlite", "project.sqlite-wal"
MOST_BITS = 8
PAGES = ("state", "answers", "mosaic")
SHOWN = ("revision", "counts", "frames", "usable", "parts", "predicted_px", "undo", "redo", "lens", "masked")
PER_PAGE = 3
"""An annotator is opened in one of so many tries: it takes longer than all else."""


@dataclass(frozen=True)
class Reference:
    """A project as it should be, and what commands say of it."""

    project: Path
    info: dict[str, object]
    page: dict[str, object]
    delivered: dict[str, bytes]


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Take the tables and files in turn."""
    finished, answered = _prepare(folder)
    cells = defaultdict(list)
    for cell in list_cells(finished.project / DATABASE):
        cells[cell[0]].append(cell)
    files = sorted(str(path.relative_to(finished.project)) for path in finished.project.rglob("*") if path.is_file())
    kinds = [("table", table) for table in cells] * 3 + [("file", name) for name in files] + [("file", DATABASE)] * 3
    kinds += [("wal", WAL)] * 3 + [("source", "walk/frame_0003.png")]

    def try_one(number: int, rng: np.random.Generator, worker: Worker, place: Path) -> Trial:
        kind, name = kinds[number % len(kinds)]
        reference = answered if kind == "wal" else finished
        copy = copy_project(reference.project, place)
        bits = int(rng.integers(1, MOST_BITS + 1))
        if kind == "table":
            what = flip_cell(copy / DATABASE, cells[name][rng.integers(len(cells[name]))], rng, bits)
        else:
            path = place / name if kind == "source" else copy / name
            path.write_bytes(flip_bits(path.read_bytes(), rng, bits))
            what = f"{bits} bits of {name}"
        is_same = kind in ("table", "wal") or name == DATABASE
        is_same = is_same and _content(copy, place / "looked at") == _content(reference.project, place / "expected")
        outcome, faults = _judge(worker, place, reference, name, is_same, number % PER_PAGE == 0)
        return Trial(what, outcome, tuple(faults))

    return try_all("bit flips", count, seed, folder, try_one)


def _judge(
    worker: Worker, place: Path, reference: Reference, name: str, is_same: bool, with_page: bool
) -> tuple[str, list[str]]:
    """Look at a project with flipped bits by all that reads it; return the outcome and the faults."""
    project = place / "walk.smalti"
    check = worker.run("check", project, "--source", place / "walk", place=place)
    info = worker.run("info", "--json", project, place=place)
    ran, faults = [check, info], []
    if check.code != 1 and not is_same:
        faults.append(f"check does not name it: {check.err.strip()}")
    if info.code == 0 and _described(info) != reference.info:
        faults.append(f"silent change: info says {_difference(_described(info), reference.info)}")
    if with_page:
        page = worker.run("annotate", "-q", "--no-browser", project, place=place, pages=PAGES)
        ran.append(page)
        if page.code == 0 and _shown(page) != reference.page:
            faults.append(f"silent change: the page shows {_difference(_shown(page), reference.page)}")
    build = resume(worker, place)
    ran.append(build)
    if build.code == 0:
        for file, content in reference.delivered.items():
            # A delivered file is not written again: that it was damaged is for `check` to say.
            is_it = file == name and check.code == 1
            if (project / file).read_bytes() != content and not is_it:
                faults.append(f"silent change: {file} after the build was resumed")
    faults += [ended.fault for ended in ran if ended.fault]
    named = "no effect" if is_same else "named" if check.code == 1 else "missed"
    return f"{named}, {'same result' if build.code == 0 else 'build refused'}", faults


def _prepare(folder: Path) -> tuple[Reference, Reference]:
    """Make a finished project with answers of a person, and one whose latest answers are in the log of SQLite yet."""
    project, answering, answered = build_project(folder), folder / "answering", folder / "answered"
    with Session.open(project) as session:
        session.record(Answer.no(Pair(0, 4), "nothing in common", Author.PERSON))
    with workers(1) as (worker,):
        assert resume(worker, folder).code == 0
        answering.mkdir()
        with Session.open(copy_project(project, answering)) as session:
            session.record(Answer.unsure(Pair(0, 5), "too dark", Author.PERSON))
            session.record(Answer.no(Pair(1, 5), "nothing in common", Author.PERSON))
            shutil.copytree(answering, answered, ignore=shutil.ignore_patterns("lock", "*-shm"))
        return tuple(_refer(worker, place / "walk.smalti", place / "referred") for place in (folder, answered))


def _refer(worker: Worker, project: Path, place: Path) -> Reference:
    """Run the commands on a copy of an undamaged project."""
    place.mkdir()
    copy = copy_project(project, place)
    info = worker.run("info", "--json", copy, place=place)
    page = worker.run("annotate", "-q", "--no-browser", copy, place=place, pages=PAGES)
    build = resume(worker, place)
    assert (info.code, page.code, build.code) == (0, 0, 0), (info.err, page.err, build.err)
    delivered = {name: (copy / name).read_bytes() for name in DELIVERED}
    return Reference(project, _described(info), _shown(page), delivered)


def _described(info: Ended) -> dict[str, object]:
    known = json.loads(info.out)
    return {key: value for key, value in known.items() if key not in ("folder", "source")}


def _shown(page: Ended) -> dict[str, object]:
    """Return what people see of their answers and of the mosaic; whether it was rendered is not part of it."""
    state = page.page.get("state", {})
    return {**page.page, "state": {key: state.get(key) for key in SHOWN}}


def _difference(found: dict[str, object], expected: dict[str, object]) -> str:
    keys = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
    return "; ".join(f"{key}: {str(found.get(key))[:60]} for {str(expected.get(key))[:60]}" for key in keys[:3])


def _content(project: Path, scratch: Path) -> object:
    """Return all that the database says, from a copy of it; looking at it may change the file."""
    scratch.mkdir()
    for name in (DATABASE, WAL):
        if (project / name).exists():
            shutil.copy(project / name, scratch / name)
    with suppress(sqlite3.Error, UnicodeDecodeError):
        return read_tables(scratch / DATABASE)
    return None
