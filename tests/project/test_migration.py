"""A file of an older format is brought to this one, whatever happens meanwhile, and a copy of it stays."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from smalti.errors import OutputError, ProjectError
from smalti.project import migration
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.database import VERSION
from smalti.project.entries import Act, FrameEntry, LinkState, Role
from smalti.project.project import Project
from smalti.records import Author, Pair
from tests.project.entries import link, no, placement, unsure, yes
from tests.project.format_1 import insert, write_format_1
from tests.project.format_2 import write_format_2

ROOT = Path(__file__).parents[2]
GIVEN = [yes(4, 5), no(0, 9), unsure(1, 2), yes(0, 1, Role.BRIDGE, landmarks=300)]

KILL_AT_EVERY_STEP = """
import os, posix, shutil, signal, sqlite3, sys
from pathlib import Path
from smalti.project.store import Store

original, folder = Path(sys.argv[1]), Path(sys.argv[2])
steps = 0

def count(frame, event, argument):
    global steps
    owner = getattr(argument, "__self__", None)
    if event == "c_call" and (owner is posix or isinstance(owner, sqlite3.Connection)):
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

for last in range(1, 1000):
    path = folder / str(last) / original.name
    path.parent.mkdir()
    shutil.copy(original, path)
    child = os.fork()
    if not child:
        sys.setprofile(count)
        Store.open(path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    print(last, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_format_1(tmp_path / FILE_NAME, GIVEN, finished_after=4, binding={"mask": "auto"})


def backup_of(path: Path) -> Path:
    return path.with_name(f"{FILE_NAME}.v1")


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return list(plain.iterdump())


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def check_answers(store: Store) -> None:
    for place, (kept, before) in enumerate(zip(store.answers(), GIVEN, strict=True), start=1):
        assert (kept.answer.pair, kept.answer.verdict) == (before.answer.pair, before.answer.verdict)
        assert (kept.answer.reason, kept.role, kept.seconds) == (before.answer.reason, before.role, before.seconds)
        assert kept.answer.author is Author.MATCHER
        assert (kept.place, kept.details, kept.time) == (place, "", 0.0)
        if before.answer.landmarks is not None:
            assert kept.answer.landmarks.points_i.tobytes() == before.answer.landmarks.points_i.tobytes()
            assert kept.answer.landmarks.points_j.tobytes() == before.answer.landmarks.points_j.tobytes()
            assert kept.answer.landmarks.sigma.tobytes() == before.answer.landmarks.sigma.tobytes()


@pytest.mark.parametrize("way", [Store.open, Store.create])
def test_all_that_was_known_is_there_as_the_matchers_word(path, way):
    with closing(way(path)) as store:
        check_answers(store)
        assert [entry.act for entry in store.log()] == 4 * [Act.GIVE]
        assert store.history().undoable is None
        assert store.frames() == [FrameEntry(0, "0.png", "too dark")]
        assert store.links() == [link(0, 1)]
        assert [placement.number for placement in store.placements()] == [0]
        assert store.stages() == {"loop": 2.5}
        assert (store.fact("version"), store.fact("binding")) == (VERSION, {"mask": "auto"})


def test_a_migrated_file_has_the_tables_of_a_new_one(path, tmp_path):
    Store.open(path).close()
    (tmp_path / "new").mkdir()
    Store.create(tmp_path / "new" / FILE_NAME).close()
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(tmp_path / "new" / FILE_NAME)) as new:
        migrated, made = (
            set(file.execute("SELECT type, name, replace(sql, ' IF NOT EXISTS', '') FROM sqlite_master"))
            for file in (old, new)
        )
    assert migrated == made


def test_the_copy_beside_it_holds_what_the_file_held(path, tmp_path):
    before = dump(path)
    Store.open(path).close()
    assert files(tmp_path) == {FILE_NAME, backup_of(path).name}
    assert dump(backup_of(path)) == before


def test_the_copy_can_be_put_back_and_migrated_again(path, tmp_path):
    Store.open(path).close()
    shutil.copy(backup_of(path), path)
    with closing(Store.open(path)) as store:
        check_answers(store)
    assert files(tmp_path) == {FILE_NAME, backup_of(path).name}


def test_a_file_of_this_format_is_not_copied(path, tmp_path):
    Store.open(path).close()
    backup_of(path).unlink()
    Store.open(path).close()
    assert files(tmp_path) == {FILE_NAME}


@pytest.mark.parametrize("content", [b"my own notes", b""])
def test_a_copy_that_differs_is_never_written_over(path, tmp_path, content):
    before = dump(path)
    backup_of(path).write_bytes(content)
    Store.open(path).close()
    assert backup_of(path).read_bytes() == content
    assert files(tmp_path) == {FILE_NAME, f"{FILE_NAME}.v1", f"{FILE_NAME}.v1.2"}
    assert dump(path.with_name(f"{FILE_NAME}.v1.2")) == before


@pytest.mark.parametrize(("finished_after", "is_finished"), [(4, True), (3, False), (None, False)])
def test_a_finished_project_stays_finished_and_no_other_becomes_it(path, finished_after, is_finished):
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute("UPDATE answer SET place = 10 * place")  # a count is not a place
        plain.execute("UPDATE fact SET value = ? WHERE name = 'finished_after'", (finished_after or "null",))
    with Project.open(path.parent) as project:
        assert project.is_finished == is_finished
        project.store.keep_answer(no(7, 8))
        assert not project.is_finished


def test_answers_in_a_write_ahead_log_that_nobody_closed_are_migrated_and_copied(path, tmp_path):
    folder = tmp_path / "killed"
    folder.mkdir()
    with closing(sqlite3.connect(path)) as open_still:
        with open_still:
            insert(open_still, no(2, 6))
        for file in tmp_path.glob(f"{FILE_NAME}*"):
            shutil.copy(file, folder)
    assert f"{FILE_NAME}-wal" in files(folder)
    with closing(Store.open(folder / FILE_NAME)) as store:
        assert store.answers()[-1].answer.pair == Pair(2, 6)
    assert any("2,6," in line for line in dump(folder / f"{FILE_NAME}.v1"))


def test_a_kill_at_any_step_leaves_a_file_that_opens_and_migrates(path, tmp_path):
    before = dump(path)
    folder = tmp_path / "killed"
    folder.mkdir()
    command = [sys.executable, "-c", KILL_AT_EVERY_STEP, str(path), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    killed = [int(line) for line in done.stdout.split()]
    assert len(killed) > 20, killed
    left = set()
    for step in killed:
        left.add(frozenset(files(folder / str(step))))
        with closing(Store.open(folder / str(step) / FILE_NAME)) as store:
            check_answers(store)
        assert files(folder / str(step)) == {FILE_NAME, f"{FILE_NAME}.v1"}
        assert dump(folder / str(step) / f"{FILE_NAME}.v1") == before
    # There were kills before, within and after the copying.
    copies = {name for names in left for name in names if ".v1" in name}
    assert {f"{FILE_NAME}.v1", f"{FILE_NAME}.v1.part"} <= copies


def test_a_copy_that_was_cut_short_is_made_anew(path, tmp_path):
    before = dump(path)
    part = tmp_path / f"{FILE_NAME}.v1.part"
    for end in ("", "-journal", "-wal"):
        Path(f"{part}{end}").write_bytes(path.read_bytes()[5000:9000])
    Store.open(path).close()
    assert files(tmp_path) == {FILE_NAME, f"{FILE_NAME}.v1"}
    assert dump(backup_of(path)) == before


def test_a_migration_that_fails_says_where_the_copy_is_and_leaves_the_file(path, monkeypatch):
    before = dump(path)
    monkeypatch.setitem(migration._STEPS, 2, (*migration._STEPS[2], "DROP TABLE unheard_of"))
    with pytest.raises(ProjectError) as caught:
        Store.open(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: cannot be brought to format {VERSION}")
    assert message.endswith(str(backup_of(path)))
    assert "unheard_of" in message
    assert dump(path) == before == dump(backup_of(path))
    monkeypatch.undo()
    with closing(Store.open(path)) as store:
        check_answers(store)


def test_a_copy_that_cannot_be_made_is_an_error_and_the_file_stays_as_it_is(path, tmp_path):
    before = dump(path)
    (tmp_path / f"{FILE_NAME}.v1.part").mkdir()
    with pytest.raises(OutputError, match=r"v1\.part: cannot be written .*make room") as caught:
        Store.open(path)
    assert "\n" not in str(caught.value)
    assert dump(path) == before


def test_several_who_open_it_at_once_migrate_it_once(path, tmp_path):
    def look(_: int) -> int:
        with closing(Store.open(path)) as store:
            return len(store.answers())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(look, range(8))) == 8 * [4]
    assert files(tmp_path) == {FILE_NAME, backup_of(path).name}


def test_a_project_is_no_longer_bound_to_the_strategy_that_asked(tmp_path):
    path = write_format_1(tmp_path / FILE_NAME, GIVEN, binding={"mask": "auto", "strategy": "area", "seed": 0})
    with Project.open(path.parent) as project:
        assert project.store.fact("binding") == {"mask": "auto", "seed": 0}
        # Nor does this engine ask what that one asked: all answers are taken up first.
        assert project.store.fact("asked_by") == "several"


TURNED = np.array([[0.0, -1.0, 30.0], [1.0, 0.0, 1 / 3]])
TILTED = np.array([[1.0, 0.1, 5.0], [-0.1, 1.0, 1 / 7], [1e-4, 2e-4, 1.0]])


@pytest.fixture
def second(tmp_path: Path) -> Path:
    placed = [(0, np.eye(2, 3), np.eye(3)), (1, TURNED, TILTED)]
    facts = {"finished_after": 4, "binding": {"mask": "auto"}, "noise": 1.5, "finish": ["homography"], "guesses": []}
    facts["left_out_px"] = [{"affine": 2.5, "homography": 0.75}]
    return write_format_2(tmp_path / FILE_NAME, GIVEN, placed, **facts)


@pytest.mark.parametrize("way", [Store.open, Store.create])
def test_of_the_second_format_all_is_kept_but_the_affine_mosaic(second, way):
    with closing(way(second)) as store:
        check_answers(store)
        assert store.frames() == [FrameEntry(0, "0.png", "too dark")]
        assert store.links() == [link(0, 1, LinkState.REJECTED)]
        assert store.stages() == {"loop": 2.5}
        assert (store.fact("version"), store.fact("finished_after")) == (VERSION, 4)
        assert store.fact("left_out_px") == 0.75
        assert [store.fact(name) for name in ("finish", "guesses", "noise")] == 3 * [None]
        first, tilted = store.placements()
    np.testing.assert_array_equal(first.chain, np.eye(3))
    np.testing.assert_array_equal(tilted.chain, [*TURNED, [0.0, 0.0, 1.0]])
    assert tilted.final.tobytes() == TILTED.tobytes()
    assert (tilted.number, tilted.part, tilted.sigma_px) == (1, 0, 0.5)


def test_of_the_second_format_a_copy_stays_and_the_tables_are_those_of_a_new_file(second, tmp_path):
    before = dump(second)
    Store.open(second).close()
    backup = second.with_name(f"{FILE_NAME}.v2")
    assert files(tmp_path) == {FILE_NAME, backup.name}
    assert dump(backup) == before
    (tmp_path / "new").mkdir()
    Store.create(tmp_path / "new" / FILE_NAME).close()
    columns = []
    for path in (second, tmp_path / "new" / FILE_NAME):
        with closing(sqlite3.connect(path)) as plain:
            tables = plain.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'trigger')").fetchall()
            columns.append({name: plain.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in tables})
    assert columns[0] == columns[1]


def test_of_the_second_format_new_results_can_be_kept(second):
    with closing(Store.open(second)) as store:
        store.keep_result([placement(3)], [link(0, 1)])
        (kept,) = store.placements()
    assert kept.final.tobytes() == placement(3).final.tobytes()


@pytest.mark.parametrize("measured", [[{}], [], None])
def test_of_the_second_format_an_error_that_was_not_measured_stays_so(tmp_path, measured):
    path = write_format_2(tmp_path / FILE_NAME, GIVEN, finish=["affine"] if measured else [], left_out_px=measured)
    with closing(Store.open(path)) as store:
        assert store.fact("left_out_px") is None
