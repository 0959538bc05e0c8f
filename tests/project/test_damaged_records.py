"""Whatever changes in a project's file is noticed and named; results are computed again, answers never dropped."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smalti.errors import DamageError, OutputError, PairError, ProjectError
from smalti.interchange.checksums import row_checksum
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.entries import FrameEntry
from smalti.project.facts import Outcome, PredictedErrors, QuestionsAskedBy, RegistrationFacts, SourceFacts
from smalti.project.packing import LOG_COLUMNS, table_digest
from tests.project.entries import link, no, outcome, placement, yes
from tests.project.folders import BINDING
from tests.project.old_files import downgrade

SOURCE = SourceFacts("a.mp4", "f", 48, 36, BINDING)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed file with everything in it."""
    with closing(Store.create(tmp_path / FILE_NAME)) as store:
        store.keep_fact(SOURCE)
        store.keep_frames([FrameEntry(n, f"frame {n}") for n in range(6)])
        for n in range(4):
            store.keep_answer(yes(n, n + 1))
        store.keep_answer(no(0, 5))
        store.undo() if store.history().undoable else None
        store.keep_fact(QuestionsAskedBy("smalti"))
        store.keep_fact(PredictedErrors({"a": 1.0}))
        store.keep_result([placement(n) for n in range(5)], [link(0, 1), link(1, 2)], outcome(finished_after=5))
        store.add_seconds("loop", 1.0)
    return tmp_path / FILE_NAME


def change(path: Path, *statements: str) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(path)) as plain, plain:
        triggers = plain.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            plain.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            plain.execute(statement)
        for _, sql in triggers:
            plain.execute(sql)


def read_all(path: Path) -> list[str]:
    """Everything that reading tells about damage."""
    try:
        with closing(Store.open(path, read_only=True)) as store:
            return store.problems()
    except ProjectError as error:
        return [str(error)]


CELLS = [
    ("fact", "value", "name = 'outcome'", "the outcome"),
    ("fact", "value", "name = 'source'", "the source"),
    ("fact", "checksum", "name = 'predicted errors'", "the predicted errors"),
    ("stage", "seconds", "1", "the time of a stage"),
    ("frame", "label", "number = 2", "the list of frames"),
    ("frame", "reason", "number = 0", "the list of frames"),
    ("link", "weight", "i = 1", "the list of links"),
    ("link", "state", "i = 0", "the list of links"),
    ("placement", "final", "number = 3", "the list of frame positions"),
    ("placement", "sigma_px", "number = 3", "the list of frame positions"),
    ("digest", "checksum", "name = 'frame'", "the list of frames"),
    *(("log", column, "place = 3", "answer 3") for column in (*LOG_COLUMNS[1:], "checksum")),
]


RESULTS = [cell for cell in CELLS if cell[0] != "log" and cell[3] != "the source"]
"""What can be computed again."""


@pytest.mark.parametrize(("table", "column", "where", "named"), CELLS)
def test_a_cell_that_was_changed_is_noticed_and_named(path, table, column, where, named):
    assert read_all(path) == []
    with closing(sqlite3.connect(path)) as plain:
        [(before,)] = plain.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchall()
    after = "x'0102'" if isinstance(before, bytes) else repr(f"{before}x") if isinstance(before, str) else "0.8125"
    change(path, f"UPDATE {table} SET {column} = {after} WHERE {where}")
    told = read_all(path)
    assert told
    assert all("\n" not in line and str(path) in line and "is damaged" in line for line in told)
    assert any(named in line for line in told)


def test_a_damaged_answer_is_named_by_its_place_and_its_pair(path):
    change(path, "UPDATE log SET landmarks = zeroblob(480) WHERE place = 2")
    [told] = read_all(path)
    assert "answer 2, on pair (1, 2), is damaged" in told
    assert f"smalti import NEW {path.with_name('answers.jsonl')}" in told


@pytest.mark.parametrize(
    "statements",
    [
        ("DELETE FROM log WHERE place = 2",),
        ("DELETE FROM log WHERE place = 5",),
        ("DELETE FROM log",),
        (
            "UPDATE log SET place = 99 WHERE place = 2",
            "UPDATE log SET place = 2 WHERE place = 3",
            "UPDATE log SET place = 3 WHERE place = 99",
        ),
        ("INSERT INTO log SELECT 6, act, i, j, role, verdict, reason, landmarks, author, details, seconds, time, "
         "checksum FROM log WHERE place = 5",),
    ],
    ids=["lost", "lost at the end", "all lost", "reordered", "repeated"],
)  # fmt: skip
def test_answers_that_are_lost_moved_or_repeated_are_noticed(path, statements):
    change(path, *statements)
    assert any("answer" in line for line in read_all(path))
    with pytest.raises(DamageError):
        Store.open(path)


def test_a_row_that_is_lost_from_a_table_is_noticed(path):
    for table in ("frame", "link", "placement"):
        change(path, f"DELETE FROM {table} WHERE rowid = (SELECT MAX(rowid) FROM {table})")
    told = read_all(path)
    assert sum("the list of" in line for line in told) >= 3


@pytest.mark.parametrize(("table", "column", "where", "named"), RESULTS)
def test_damaged_results_are_discarded_by_who_writes_and_answers_stay(path, table, column, where, named):
    change(path, f"UPDATE {table} SET {column} = 0.8125 WHERE {where}")
    with closing(Store.open(path)) as store:
        assert any(named in line and "computed again" in line for line in store.discarded)
        assert len(store.log()) == 5
        assert store.problems() == []
        assert store.known_fact(SourceFacts) == SOURCE
    assert read_all(path) == []


def test_without_links_or_positions_a_mosaic_is_not_finished(path):
    change(path, "UPDATE placement SET part = 1 WHERE number = 3")
    with closing(Store.open(path)) as store:
        assert store.fact(Outcome) is None


def test_where_it_is_not_known_who_asked_all_answers_are_taken_up(path):
    change(path, "UPDATE fact SET value = '{}' WHERE name = 'questions asked by'")
    with closing(Store.open(path)) as store:
        assert store.fact(QuestionsAskedBy) == QuestionsAskedBy("several")


def test_damaged_answers_stay_as_they_are_when_somebody_wants_to_write(path):
    change(path, "UPDATE log SET verdict = 'no' WHERE place = 2")
    before = path.read_bytes()
    with pytest.raises(DamageError, match=r"answer 2, on pair \(1, 2\), is damaged"):
        Store.open(path)
    assert path.read_bytes() == before


def test_an_answer_about_a_frame_that_is_not_there_is_not_written(path):
    with closing(Store.open(path)) as store, pytest.raises(PairError, match="frames 0 to 5 only"):
        store.keep_answer(no(0, 6))
    assert read_all(path) == []


def forge(path: Path, statement: str) -> None:
    """Change the file as somebody would who computes the checksums too."""
    change(path, statement)
    with closing(sqlite3.connect(path)) as plain:
        facts = plain.execute("SELECT name, value FROM fact").fetchall()
        log = plain.execute(f"SELECT {', '.join(LOG_COLUMNS)} FROM log ORDER BY place").fetchall()
        tables = {
            table: table_digest(table, plain.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall())
            for table, order in (("frame", "number"), ("link", "i, j"), ("placement", "number"))
        }
    before, checksums = b"", []
    for row in log:
        before = row_checksum(row, before)
        checksums.append((row[0], before))
    change(
        path,
        *(f"UPDATE log SET checksum = x'{value.hex()}' WHERE place = {place}" for place, value in checksums),
        *(f"UPDATE digest SET checksum = x'{value.hex()}' WHERE name = '{table}'" for table, value in tables.items()),
        *(
            f"UPDATE fact SET checksum = x'{row_checksum(('fact', *row)).hex()}' WHERE name = '{row[0]}'"
            for row in facts
        ),
    )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log SET act = x'00' WHERE place = 2",
        "UPDATE log SET role = 'king' WHERE place = 2",
        "UPDATE log SET verdict = 'perhaps' WHERE place = 2",
        "UPDATE log SET landmarks = zeroblob(41) WHERE place = 2",
        "UPDATE log SET landmarks = 'text' WHERE place = 2",
        "UPDATE log SET reason = x'ff' WHERE place = 2",
        "UPDATE log SET i = -1 WHERE place = 2",
        "UPDATE log SET j = 100000000000 WHERE place = 2",
        "UPDATE log SET j = 7 WHERE place = 2",
        "UPDATE log SET time = 'now' WHERE place = 2",
        "UPDATE log SET seconds = 9e999 WHERE place = 2",
        "UPDATE frame SET label = x'00' WHERE number = 2",
        "UPDATE frame SET number = 77 WHERE number = 5",
        "UPDATE link SET j = 70 WHERE i = 1",
        "UPDATE link SET state = 'great'",
        "UPDATE link SET chi2 = 'much'",
        "UPDATE placement SET final = zeroblob(72) WHERE number = 2",
        "UPDATE placement SET final = zeroblob(8) WHERE number = 2",
        "UPDATE placement SET final = x'" + "ff" * 72 + "' WHERE number = 2",
        "UPDATE placement SET number = 7 WHERE number = 2",
        "UPDATE placement SET part = -1 WHERE number = 2",
        "UPDATE placement SET sigma_px = x'00' WHERE number = 2",
        "UPDATE fact SET value = replace(value, '\"width\": 48', '\"width\": 1000000') WHERE name = 'source'",
        "UPDATE fact SET value = replace(value, '\"width\": 48', '\"width\": 0') WHERE name = 'source'",
        "UPDATE fact SET value = x'7b7d' WHERE name = 'outcome'",
        "UPDATE fact SET value = replace(value, '[0]', '[-1]') WHERE name = 'outcome'",
    ],
)
def test_what_cannot_have_been_written_is_refused_in_one_line_though_its_checksum_is_right(path, statement):
    forge(path, "UPDATE frame SET label = 'other' WHERE number = 1")
    assert read_all(path) == []
    forge(path, statement)
    told = read_all(path)
    assert told
    assert all("\n" not in line and "is damaged" in line for line in told)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW extra AS SELECT * FROM log",
        "CREATE TRIGGER extra AFTER INSERT ON fact BEGIN DELETE FROM stage; END",
        "CREATE TABLE extra (name TEXT)",
        "CREATE INDEX extra ON frame (label)",
        "CREATE VIRTUAL TABLE extra USING fts5(name)",
        "ALTER TABLE frame ADD COLUMN extra TEXT",
        "DROP TABLE stage",
        "DROP TRIGGER log_loses_no_line",
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_whose_tables_somebody_changed_is_refused_before_anything_is_read(path, statement, read_only):
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute(statement)
    with pytest.raises(DamageError, match="its tables are not those of Smalti") as caught:
        Store.open(path, read_only=read_only)
    assert "\n" not in str(caught.value)


def test_a_view_that_never_ends_in_the_place_of_a_table_is_not_read(path):
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute("DROP TABLE fact")
        plain.execute(
            "CREATE VIEW fact AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
            "SELECT 'version' AS name, MAX(x) AS value, x'' AS checksum FROM n"
        )
    with pytest.raises(DamageError, match="its tables are not those of Smalti"):
        Store.open(path)


def test_a_file_of_0_2_0_gets_its_checksums_when_it_is_opened_to_write(path):
    with closing(Store.open(path)) as store:
        before = store.log(), store.frames(), store.links(), store.stages(), store.fact(Outcome)
    downgrade(path)
    with closing(Store.open(path)) as store:
        assert store.has_checksums
        assert [entry.pair for entry in store.log()] == [entry.pair for entry in before[0]]
        assert (store.frames(), store.links(), store.stages(), store.fact(Outcome)) == before[1:]
        store.keep_answer(no(1, 5))
    change(path, "UPDATE log SET landmarks = zeroblob(480) WHERE place = 2")
    assert any("answer 2" in line for line in read_all(path))


def test_a_file_of_0_2_0_is_read_as_it_is(path):
    downgrade(path)
    before = path.read_bytes()
    with closing(Store.open(path, read_only=True)) as store:
        assert not store.has_checksums
        assert len(store.answers()) == 5
        assert len(store.frames()) == 6
        assert len(store.placements()) == 5
        assert store.stages() == {"loop": 1.0}
        assert store.known_fact(SourceFacts) == SOURCE
    assert path.read_bytes() == before


def test_a_damaged_file_of_0_2_0_gets_no_checksums(path):
    downgrade(path)
    change(path, "UPDATE log SET verdict = 'perhaps' WHERE place = 2")
    with pytest.raises(DamageError, match="answer 2"):
        Store.open(path)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("SELECT value FROM fact WHERE name = 'version'").fetchone() == ("4",)


def test_a_project_that_was_opened_to_read_is_not_written_to(path):
    with closing(Store.open(path, read_only=True)) as store, pytest.raises(OutputError, match="only to read"):
        store.keep_answer(no(1, 5))


def test_a_fact_whose_name_is_damaged_is_noticed_by_whoever_only_reads(tmp_path):
    with closing(Store.create(tmp_path / FILE_NAME)) as store:
        store.keep_fact(RegistrationFacts("auto", "keypoints"))
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE fact SET name = 'regiStration' WHERE name = 'registration'")
    with pytest.raises(DamageError, match="regiStration"):
        Store.open(tmp_path / FILE_NAME, read_only=True)
