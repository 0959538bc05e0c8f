"""The project's file when things go wrong: full disks, busy processes, damaged and foreign files."""

from __future__ import annotations

import gc
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smalti.errors import OutputError, ProjectError, SmaltiError
from smalti.interchange.checksums import row_checksum
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.entries import FrameEntry
from smalti.project.facts import SourceFacts
from smalti.project.tables import VERSION
from tests.project.entries import link, outcome, placement, yes
from tests.project.processes import run, whole_answers

FILL_THE_DISK = """
import resource, sys
from pathlib import Path
from smalti.errors import OutputError
from smalti.project.answer_store import Store
from tests.project.entries import yes

path = Path(sys.argv[1])
store = Store.create(path)
log = path.with_name(path.name + "-wal")
kept = 0
while kept < 5:
    store.keep_answer(yes(kept, kept + 1, landmarks=500))
    kept += 1
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 70_000, hard))
try:
    while True:
        store.keep_answer(yes(kept, kept + 1, landmarks=500))
        kept += 1
except OutputError as error:
    print(kept, len(store.answers()), error, sep="|")
"""


def made(path: Path, answers: int = 0) -> Path:
    with closing(Store.create(path)) as store:
        for n in range(answers):
            store.keep_answer(yes(n, n + 1, landmarks=100))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ProjectError) as caught, closing(Store.open(path)) as store:
        store.answers()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_full_disk_is_an_error_in_one_line_and_leaves_no_half_answer(tmp_path):
    path = tmp_path / FILE_NAME
    with run(FILL_THE_DISK, path) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    kept, seen_after, message = output.strip().split("|")
    assert int(kept) >= 5
    assert seen_after == kept
    assert str(path.parent) in message
    assert "cannot be written" in message
    assert "free disk space" in message
    assert whole_answers(path) == int(kept)
    with closing(Store.open(path)) as store:
        store.keep_answer(yes(900, 901))


def test_a_file_that_another_process_is_writing_is_an_error_of_output(tmp_path):
    path = made(tmp_path / FILE_NAME)
    with closing(Store.open(path)) as store, closing(sqlite3.connect(path)) as other:
        assert store._database.read("PRAGMA busy_timeout") == [(10_000,)]
        store._database.read("PRAGMA busy_timeout = 10")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutputError, match="locked"):
            store.keep_answer(yes(0, 1))
        other.rollback()
        store.keep_answer(yes(0, 1))
        assert len(store.answers()) == 1


def test_a_newer_file_is_refused_in_one_line_and_left_alone(tmp_path):
    path = made(tmp_path / FILE_NAME, answers=1)
    with closing(Store.open(path)) as store, store._database.writing() as connection:
        row = ("version", str(VERSION + 1))
        connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?, ?)", (*row, row_checksum(("fact", *row))))
    before = path.read_bytes()
    message = refusal(path)
    assert str(path) in message
    assert f"format {VERSION + 1}" in message
    assert "update Smalti" in message
    assert path.read_bytes() == before


def test_a_missing_file_is_refused_by_its_folder(tmp_path):
    message = refusal(tmp_path / FILE_NAME)
    assert str(tmp_path) in message
    assert "build one first" in message
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize("content", [b"", b"not a database " * 500, b"SQLite format 3\x00" + bytes(84)])
def test_a_file_of_something_else_is_refused_by_its_name(tmp_path, content):
    path = tmp_path / FILE_NAME
    path.write_bytes(content)
    message = refusal(path)
    assert str(path) in message
    assert "damaged" in message


def test_a_database_of_something_else_is_refused(tmp_path):
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE bookmark (address TEXT)")
        other.commit()
    assert "not a project file" in refusal(path)


def test_a_file_cut_short_is_refused(tmp_path):
    path = made(tmp_path / FILE_NAME, answers=30)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "damaged" in refusal(path)


def test_a_file_damaged_in_its_middle_is_refused_when_it_is_read(tmp_path):
    path = made(tmp_path / FILE_NAME, answers=30)
    content = bytearray(path.read_bytes())
    page = 4096
    content[-5 * page :] = bytes(5 * page)
    path.write_bytes(content)
    assert "damaged" in refusal(path)


def test_whatever_page_is_damaged_reading_tells_it_or_is_right(tmp_path):
    path = made(tmp_path / FILE_NAME, answers=10)
    with closing(Store.open(path)) as store:
        store.keep_frames([FrameEntry(n, "label " * 20) for n in range(60)])
        store.keep_result([placement(n) for n in range(60)], [link(n, n + 1) for n in range(200)], outcome())
        store.add_seconds("loop", 1.0)
    whole, page = path.read_bytes(), 4096
    told: list[str] = []
    for at in range(0, len(whole), page):
        path.write_bytes(whole[:at] + bytes(page) + whole[at + page :])
        for read in (Store.frames, Store.answers, Store.links, Store.placements, Store.stages):
            try:
                with closing(Store.open(path)) as store:
                    read(store)
            except ProjectError as error:
                told.append(str(error))
    assert len(told) > len(whole) // page / 2
    assert all(str(path) in message and "damaged" in message for message in told)


def test_a_newer_file_is_left_alone_by_a_build_too(tmp_path):
    path = made(tmp_path / FILE_NAME)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("ALTER TABLE stage RENAME TO step")
        newer.execute("UPDATE fact SET value = ? WHERE name = 'version'", (str(VERSION + 1),))
        newer.commit()
    before = path.read_bytes()
    with pytest.raises(ProjectError, match="update Smalti"):
        Store.create(path)
    assert path.read_bytes() == before


def test_a_process_killed_while_it_makes_the_file_can_begin_again(tmp_path):
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as plain:
        plain.execute("PRAGMA journal_mode = WAL")
    Store.create(path).close()


def test_a_folder_that_is_missing_is_an_error_in_one_line(tmp_path):
    with pytest.raises(SmaltiError, match=r"nowhere.*unable to open"):
        Store.create(tmp_path / "nowhere" / FILE_NAME)


SOURCE = {"location": "a.mp4", "fingerprint": "f", "width": 48, "height": 36}
BOUND = {"source": {"every": 1, "start": None, "end": None, "max_size": None}, "mask": "none", "seed": 0, "matcher": ""}


@pytest.mark.parametrize(
    "value",
    [
        "{",
        "[]",
        json.dumps(SOURCE),
        json.dumps({**SOURCE, "binding": BOUND, "width": "48"}),
        json.dumps({**SOURCE, "binding": BOUND, "location": 7}),
        json.dumps({**SOURCE, "binding": {**BOUND, "source": {"every": 0}}}),
    ],
    ids=["no JSON", "no record", "a value missing", "a number as text", "a path that is none", "settings out of range"],
)
def test_a_damaged_fact_is_refused_in_one_line(tmp_path, value):
    path = made(tmp_path / FILE_NAME)
    with closing(Store.open(path)) as store:
        with store._database.writing() as connection:
            row = (SourceFacts.NAME, value)
            connection.execute("INSERT INTO fact VALUES (?, ?, ?)", (*row, row_checksum(("fact", *row))))
        with pytest.raises(ProjectError) as caught:
            store.fact(SourceFacts)
    assert str(caught.value) == (
        f"{path}: what it says of the source is damaged; restore the file from a backup, or build again"
    )


def test_a_fact_that_every_project_has_is_missed(tmp_path):
    with closing(Store.open(made(tmp_path / FILE_NAME))) as store:
        assert store.fact(SourceFacts) is None
        with pytest.raises(ProjectError, match="damaged"):
            store.known_fact(SourceFacts)


@pytest.mark.parametrize("content", [b"not a database " * 500, b""], ids=["at its first words", "by its version"])
def test_a_file_that_is_refused_is_not_left_open(tmp_path, monkeypatch, content):
    path = tmp_path / FILE_NAME
    path.write_bytes(content)
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: opened.append(connect(*given, **named)) or opened[-1]
    )
    refusal(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def test_a_file_whose_store_is_dropped_without_being_closed_is_closed(tmp_path):
    path = made(tmp_path / FILE_NAME)
    store = Store.open(path)
    connection = store._database._connection
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
