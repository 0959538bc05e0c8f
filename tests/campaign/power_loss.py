"""Power losses: what was acknowledged is there, what has its final name is whole, and the work goes on.

The work is recorded once; then the power is lost at many moments of the record, each time with other losses.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import smalti
from smalti.annotation.session import Session
from smalti.errors import SmaltiError
from smalti.project.answer_backup import read_backup
from smalti.project.database import BACKUP_NAME
from tests.building.filmed import TINY_BUDGET, tiny_video
from tests.campaign.forgetful_disk import (
    FSYNC,
    MARK,
    MEANINGLESS,
    RENAME,
    ForgetfulDisk,
    Operation,
    compile_shim,
    mark,
    read_log,
    recording_environment,
)
from tests.campaign.tally import Tally

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 300
RESULTS = ("transforms.json", "landmarks.csv", "mosaic.png")
"""What two builds of the same frames write to the last bit."""


Check: TypeAlias = Callable[["Loss"], str]
"""Says how the product went on after a loss, or raises an AssertionError."""


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Lose the power `count` times: of people who answer, of builds, of mosaics, films and frames being written."""
    works = [(0.5, record_answers), (0.25, record_build), (0.25, record_outputs)]
    tally = Tally("power loss")
    for n, (share, work) in enumerate(works):
        (folder / str(n)).mkdir()
        recorded, check = work(folder / str(n), seed)
        for loss in losses(recorded, round(share * count), np.random.default_rng([seed, n])):
            judge(tally, loss, check)
    return tally


@dataclass(frozen=True)
class Loss:
    """What a power loss left: the folder, the moment in the record, and the latest mark before it."""

    folder: Path
    moment: int
    acknowledged: int  # 0 before the first mark


@dataclass(frozen=True)
class Recorded:
    """What was in a folder before some work, what is there after it, and the record of all that was done between."""

    before: Path
    after: Path
    log: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Recorded:
        """Make the folders."""
        for name in ("before", "after"):
            (folder / name).mkdir()
        return cls(folder / "before", folder / "after", folder / "operations.log")

    def run(self, *command: object) -> None:
        """Run a program, and record what it does."""
        done = subprocess.run(
            [str(part) for part in command],
            env=recording_environment(compile_shim(self.log.parent), self.after, log=self.log),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def judge(tally: Tally, loss: Loss, check: Check) -> None:
    """Count a loss, and note it if it did harm; only then its folder stays."""
    try:
        tally.count(check(loss))
        shutil.rmtree(loss.folder)
    except Exception as error:  # whatever breaks is harm
        tally.count("harm")
        said = " ".join(f"{type(error).__name__}: {error}".split())
        tally.failures.append(f"{loss.folder}: power lost after operation {loss.moment}: {said}")


def losses(recorded: Recorded, count: int, rng: np.random.Generator, *, last: bool = False) -> Iterator[Loss]:
    """Yield what power losses at random moments leave, or after the last operation."""
    operations = read_log(recorded.log)
    moments = [len(operations)] * count if last else _moments(operations, count, rng)
    disk, acknowledged, done = ForgetfulDisk(recorded.before), 0, 0
    for n, moment in enumerate(moments):
        for operation in operations[done:moment]:
            acknowledged = int(operation.first) if operation.kind == MARK else acknowledged
            disk.do(operation)
        done = moment
        left = recorded.after.with_name(f"loss{n}")
        disk.lose_power(left, rng)
        yield Loss(left, moment, acknowledged)


def _moments(operations: Sequence[Operation], count: int, rng: np.random.Generator) -> list[int]:
    """Return moments in ascending order: half of them anywhere, half just after what matters."""
    critical = [n + 1 for n, one in enumerate(operations) if one.kind in (MARK, RENAME, FSYNC)]
    anywhere = rng.integers(1, len(operations) + 1, count)
    return sorted(np.where(rng.random(count) < 0.5, anywhere, rng.choice(critical, count)).tolist())


def replayed_whole(recorded: Recorded, to: Path) -> list[str]:
    """Return the files that the record without a loss does not give as they are: none if nothing was overlooked."""
    disk = ForgetfulDisk(recorded.before)
    for operation in read_log(recorded.log):
        disk.do(operation)
    disk.write(to)
    there, again = ({p.relative_to(top): p for p in top.rglob("*") if p.is_file()} for top in (recorded.after, to))
    same = {name for name in there.keys() & again.keys() if there[name].read_bytes() == again[name].read_bytes()}
    return [str(name) for name in there.keys() | again.keys() if name not in same and MEANINGLESS not in name.name]


def record_answers(folder: Path, seed: int, acts: int = 40) -> tuple[Recorded, Check]:
    """Record people who begin a project, are killed, go on, and are killed again."""
    video, recorded = tiny_video(folder), Recorded.in_folder(folder)
    project = recorded.after / "tiny.smalti"
    for n in range(3):
        recorded.run(sys.executable, "-m", "tests.campaign.recorded_person", video, project, seed + n, acts // 3)
    said = log_rows(_copy(project, folder / "said"))
    return recorded, partial(_check_answers, said=said, video=video)


def _check_answers(loss: Loss, said: list[tuple[Any, ...]], video: Path) -> str:
    project = loss.folder / "tiny.smalti"
    if loss.acknowledged == 0 and not (project / "project.sqlite").exists():
        Session.open(video, project).close()
        return "not there yet"
    try:
        with smalti.Project.open(project) as opened:
            opened.info()
    except SmaltiError:
        # The first seconds: there may be a file without the frames, which the same command goes on with.
        assert loss.acknowledged == 0, "the project does not open"
        Session.open(video, project).close()
        return "begun again"
    kept = log_rows(project)
    assert kept == said[: len(kept)], "the log is not the beginning of what was said"
    assert len(kept) >= loss.acknowledged, f"{len(kept)} entries of {loss.acknowledged} that were acknowledged"
    with Session.open(project if loss.acknowledged else video, None if loss.acknowledged else project) as session:
        assert session.revision >= len(kept)
    check_backup(project)
    return "went on"


def check_backup(project: Path) -> None:
    """Check that the readable copy of the answers has caught up with the log."""
    backup, rows = read_backup(project / BACKUP_NAME), log_rows(project)
    assert len(backup.rows) == len(rows), f"the backup has {len(backup.rows)} of {len(rows)} entries"
    assert not backup.is_torn, "the backup ends with half a line"


def record_build(folder: Path, seed: int) -> tuple[Recorded, Check]:
    """Record a build from the first file to the last."""
    video, recorded = tiny_video(folder), Recorded.in_folder(folder)
    project = recorded.after / "tiny.smalti"
    recorded.run(*SMALTI, "build", "-q", video, "-o", project, "--budget", TINY_BUDGET, "--seed", seed)
    mark(1, recorded.log)
    results = {name: (project / name).read_bytes() for name in RESULTS}
    said = log_rows(_copy(project, folder / "said"))
    again = partial(smalti.build, video, budget=TINY_BUDGET, seed=seed)
    return recorded, partial(_check_build, said=said, results=results, again=again)


def _check_build(
    loss: Loss, said: list[tuple[Any, ...]], results: dict[str, bytes], again: Callable[..., smalti.Project]
) -> str:
    project = loss.folder / "tiny.smalti"
    for name, content in results.items():
        if loss.acknowledged or (project / name).exists():
            assert (project / name).read_bytes() == content, f"{name} is not whole"
    kept: list[tuple[Any, ...]] = []
    if (project / "project.sqlite").exists():
        kept = log_rows(_copy(project, loss.folder / "copy"))
    assert kept == said[: len(kept)], "the log is not the beginning of what the matcher said"
    again(output=project).close()
    for name, content in results.items():
        assert (project / name).read_bytes() == content, f"{name} is not the same after going on"
    check_backup(project)
    return f"went on after {len(kept) // 10}0 answers and more"


OUTPUTS: dict[str, tuple[str | int, ...]] = {
    "mosaic.png": ("render",),
    "mosaic.jpg": ("render", "--scale", "0.5"),
    "mosaic.tif": ("render", "--maps", "coverage"),
    "mosaic.dzi": ("render",),
    "mosaic.zarr": ("render",),
    "film.gif": ("film", "--seconds", 6, "--size", 160),
    "film.mp4": ("film", "--seconds", 6, "--size", 160),
    "frames": ("undistort",),
}


def record_outputs(folder: Path, seed: int, names: Sequence[str] = tuple(OUTPUTS)) -> tuple[Recorded, Check]:
    """Record how every kind of file is written in the place of an earlier one."""
    recorded, project = Recorded.in_folder(folder), folder / "tiny.smalti"
    smalti.build(tiny_video(folder), project, budget=TINY_BUDGET, seed=seed).close()
    for name in names:
        for place in (recorded.before, recorded.after):
            _write_earlier(place / name)
    for n, name in enumerate(names):
        command, *more = OUTPUTS[name]
        recorded.run(*SMALTI, command, "-q", project, "-o", recorded.after / name, *more)
        mark(n + 1, recorded.log)
    allowed = [contents(recorded.before), contents(recorded.after)]
    return recorded, partial(_check_outputs, names=names, allowed=allowed)


def _write_earlier(path: Path) -> None:
    """Write something that may be replaced: an earlier result. Frames replace nothing but an empty folder."""
    if not path.suffix:
        return
    if path.suffix == ".zarr":
        path.mkdir()
        (path / ".zgroup").write_text("earlier")
        return
    path.write_text("earlier")
    if path.suffix == ".dzi":
        tiles = path.with_name(f"{path.stem}_files")
        (tiles / "0").mkdir(parents=True)
        (tiles / "0" / "0_0.jpg").write_text("earlier")


def _check_outputs(loss: Loss, names: Sequence[str], allowed: list[dict[str, dict[str, bytes]]]) -> str:
    before, after = allowed
    found = contents(loss.folder)
    for name, content in found.items():
        assert content in (before.get(name), after[name]), f"{name} is neither the earlier one nor the new one"
    for name in names[: loss.acknowledged]:
        assert found.get(name) == after[name], f"{name} is not there, but its command had ended"
    return f"{sum(found.get(name) == after[name] for name in names)} of {len(names)} written"


def contents(folder: Path) -> dict[str, dict[str, bytes]]:
    """Return the files of every result in a folder, by the name of the result; hidden ones are not results."""
    return {
        result.name: {str(p.relative_to(folder)): p.read_bytes() for p in (result, *result.rglob("*")) if p.is_file()}
        for result in folder.iterdir()
        if not result.name.startswith(".")
    }


SMALTI = (sys.executable, "-m", "smalti.cli.main")


def log_rows(project: Path) -> list[tuple[Any, ...]]:
    """Return the log as SQLite has it, without the product's help; nothing of a file without tables."""
    with closing(sqlite3.connect(project / "project.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), "the file is damaged"
        if connection.execute("SELECT name FROM sqlite_master WHERE name = 'log'").fetchone() is None:
            return []
        return connection.execute("SELECT * FROM log ORDER BY place").fetchall()


def _copy(project: Path, to: Path) -> Path:
    return Path(shutil.copytree(project, to))
