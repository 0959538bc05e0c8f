"""Projects that somebody else has prepared: a strange database, strange files, paths that lead elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.campaign.commands import Trial, Worker, try_all
from tests.campaign.database_cells import reseal
from tests.campaign.sabotage import DATABASE, SABOTAGE
from tests.campaign.samples import BUILD, build_project, copy_project
from tests.campaign.tally import Tally

RESEALED = 0.6
"""How often the checksums are made to fit, so that they do not protect what comes after them."""


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Run every command on each project."""
    project = build_project(folder)
    kinds = list(SABOTAGE)

    def try_one(number: int, rng: np.random.Generator, worker: Worker, place: Path) -> Trial:
        copy = copy_project(project, place)
        victims = place / "elsewhere"
        (victims / "folder").mkdir(parents=True)
        (victims / "folder" / "treasure").write_text("keep")
        (victims / "file").write_text("keep")
        kind = kinds[number % len(kinds)]
        what = SABOTAGE[kind](copy, rng)
        if rng.random() < RESEALED and not (copy / DATABASE).is_symlink() and (copy / DATABASE).is_file():
            reseal(copy / DATABASE)
            (copy / "answers.jsonl").unlink(missing_ok=True)
            what += ", resealed"
        faults, refused = [], 0
        for words in _commands(place, copy):
            ended = worker.run(*words, place=place)
            refused += ended.code != 0
            if ended.fault:
                faults.append(ended.fault)
        if [(victims / name).read_text() for name in ("file", "folder/treasure")] != ["keep", "keep"]:
            faults.append("a file outside of the project was changed")
        return Trial(f"{kind}: {what}", "refused by some" if refused else "accepted by all", tuple(faults))

    return try_all("hostile projects", count, seed, folder, try_one)


def _commands(place: Path, project: Path) -> list[list[object]]:
    return [
        ["info", project],
        ["check", project],
        ["evaluate", project, "--landmarks", place.parent / "walk.smalti" / "landmarks.csv"],
        ["render", "-q", project, "-o", place / "again.png", "--positions", place.parent / "positions.csv"],
        ["film", "-q", project, "-o", place / "film.gif", "--seconds", "6", "--size", "160"],
        ["undistort", "-q", project, "-o", place / "undistorted"],
        ["replay", "-q", project],
        ["annotate", "-q", "--no-browser", project],
        ["build", place / "walk", "-o", project, *BUILD],
    ]
