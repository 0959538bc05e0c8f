"""Ways to prepare a project's folder so that whoever opens it is in trouble; each returns what it did in words."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np

from tests.campaign.database_cells import insert, without_triggers

DATABASE = "project.sqlite"
NUMBERS = (0, -1, 2**31, 2**63 - 1, -(2**63), 1e308, float("inf"), "NaN", "", "x", b"\x00\xff", None, 10**6, 0.5)
LENGTHS = (0, 1, 7, 8, 40, 47, 48, 71, 73, 80, 8000, 10_000_000)
FACT_VALUES = ("", "null", "[]", "{}", "1", '"x"', "[" * 100_000, '{"a":' * 50_000, "x" * 10**7, "\x00", "1e999")
TARGETS = ("project.sqlite", "cache", "cache/likeness.npz", "mosaic.png", "transforms.json", "landmarks.csv", "lock")


def _execute(project: Path, *statements: str | tuple[str, tuple[object, ...]]) -> None:
    with closing(sqlite3.connect(project / DATABASE)) as connection, connection:
        for statement in statements:
            text, values = (statement, ()) if isinstance(statement, str) else statement
            connection.execute(text, values)


def _tables(project: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(project / DATABASE)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for name in names
            if not name.startswith("sqlite_")
        }


def _add_schema(project: Path, rng: np.random.Generator) -> str:
    tables = list(_tables(project))
    name = str(rng.choice(tables))
    statement = str(
        rng.choice(
            [
                "CREATE VIEW extra AS SELECT * FROM log",
                f"CREATE TRIGGER extra AFTER INSERT ON {name} BEGIN DELETE FROM frame; END",
                f"CREATE TRIGGER extra BEFORE INSERT ON {name} BEGIN SELECT RAISE(IGNORE); END",
                f"CREATE TRIGGER extra AFTER INSERT ON {name} BEGIN UPDATE stage SET name = name || name; END",
                "CREATE TABLE extra (a, b)",
                f"CREATE TABLE extra AS SELECT * FROM {name}",
                f"ALTER TABLE {name} ADD COLUMN extra TEXT DEFAULT 'x'",
                "CREATE VIRTUAL TABLE extra USING fts5(a)",
            ]
        )
    )
    _execute(project, statement)
    return statement


def _replace_table(project: Path, rng: np.random.Generator) -> str:
    """Put a view, an endless one maybe, or a table with other columns in the place of a table."""
    name = str(rng.choice(list(_tables(project))))
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    statement = str(
        rng.choice(
            [
                f"CREATE VIEW {name} AS SELECT * FROM {name}_before",
                f"CREATE VIEW {name} AS SELECT b.* FROM {name}_before b, ({endless}) LIMIT 5000000",
                f"CREATE TABLE {name} (x)",
                f"CREATE TABLE {name} AS SELECT *, 1 AS more FROM {name}_before",
                f"CREATE VIEW {name} AS SELECT zeroblob(900000000) AS x",
            ]
        )
    )
    _execute(project, f"ALTER TABLE {name} RENAME TO {name}_before", statement)
    return statement


def _set_cell(project: Path, rng: np.random.Generator) -> str:
    tables = _tables(project)
    name = str(rng.choice(list(tables)))
    column = str(rng.choice(tables[name]))
    value = NUMBERS[rng.integers(len(NUMBERS))]
    with without_triggers(project / DATABASE) as connection:
        rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {name} ORDER BY rowid")]
        place = "" if rng.random() < 0.3 else f"WHERE rowid = {rng.choice([*rows, 0])}"
        connection.execute("PRAGMA ignore_check_constraints = ON")
        try:
            connection.execute(f"UPDATE OR IGNORE {name} SET {column} = ? {place}", (value,))
        except sqlite3.Error as error:  # a key, or not null: SQLite keeps it
            return f"{name}.{column} could not be set to {value!r} ({error})"
    return f"{name}.{column} = {value!r} {place}"


def _set_blob(project: Path, rng: np.random.Generator) -> str:
    table, column = [("log", "landmarks"), ("placement", "chain"), ("placement", "final")][rng.integers(3)]
    length = LENGTHS[rng.integers(len(LENGTHS))]
    fill = [b"\x00", b"\xff", np.float64("nan").tobytes(), np.float64(1e300).tobytes()][rng.integers(4)]
    blob = (fill * length)[:length]
    with without_triggers(project / DATABASE) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS NOT NULL", (blob,))
    return f"{table}.{column} = {length} bytes {fill[:1]!r}"


def _set_fact(project: Path, rng: np.random.Generator) -> str:
    with closing(sqlite3.connect(project / DATABASE)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM fact ORDER BY name")]
    name = str(rng.choice(names))
    value = FACT_VALUES[rng.integers(len(FACT_VALUES))]
    given = value if rng.random() < 0.7 else value.encode()
    _execute(project, ("UPDATE fact SET value = ? WHERE name = ?", (given, name)))
    return f"fact {name} = {value[:20]!r}"


def _set_field(project: Path, rng: np.random.Generator) -> str:
    """Change one entry of a fact, to one of its own type or of another."""
    with closing(sqlite3.connect(project / DATABASE)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM fact WHERE value LIKE '{%' ORDER BY name")]
        name = str(rng.choice(names))
        fact = json.loads(connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()[0])
    key = str(rng.choice(sorted(fact)))
    values = (
        0,
        -1,
        1,
        10**6,
        2**70,
        1e308,
        None,
        True,
        "x",
        "../../elsewhere/file",
        [],
        {},
        [[1, 2]],
        [10**9],
        "é" * 999,
    )
    fact[key] = values[rng.integers(len(values))]
    _execute(project, ("UPDATE fact SET value = ? WHERE name = ?", (json.dumps(fact), name)))
    return f"fact {name}.{key} = {str(fact[key])[:30]}"


def _set_location(project: Path, rng: np.random.Generator) -> str:
    os.mkfifo(project.parent / "clip.mp4")
    places = (
        "/dev/zero",
        "/dev/stdin",
        "/etc/passwd",
        "/",
        "",
        "\x00",
        "x" * 5000,
        "elsewhere/file",
        "clip.mp4",
        "**/**",
    )
    location = places[rng.integers(len(places))]
    return _set_source(project, location=location if rng.random() < 0.7 else [location, location])


def _set_size(project: Path, rng: np.random.Generator) -> str:
    width, height = rng.choice([1, 2, 24, 1000, 65536, 10**6, 2**31], size=2).tolist()
    return _set_source(project, width=width, height=height)


def _set_source(project: Path, **changes: object) -> str:
    with closing(sqlite3.connect(project / DATABASE)) as connection:
        fact = json.loads(connection.execute("SELECT value FROM fact WHERE name = 'source'").fetchone()[0])
    _execute(project, ("UPDATE fact SET value = ? WHERE name = 'source'", (json.dumps({**fact, **changes}),)))
    return f"source {str(changes)[:80]}"


def _set_mask(project: Path, rng: np.random.Generator) -> str:
    shape = [(1, 1), (72, 96), (72, 97), (8000, 8000), (72, 96)][rng.integers(5)]
    mask = np.zeros(shape, dtype=np.uint8)
    mask[0, : rng.integers(1, 3)] = 255
    packed = base64.b64encode(cv2.imencode(".png", mask)[1].tobytes()).decode()
    value = [packed, packed[: len(packed) // 2], "%%%", ""][rng.integers(4)]
    _execute(project, ("UPDATE fact SET value = ? WHERE name = 'field of view'", (json.dumps({"mask": value}),)))
    return f"mask {shape}, {value[:12]!r}"


def _add_entries(project: Path, rng: np.random.Generator) -> str:
    """Add entries to the log that nobody can have made: undo of nothing, frames that are not there, unknown acts."""
    acts = ("undo", "redo", "remove", "give", "x", "")
    rows = []
    for _ in range(rng.integers(1, 40)):
        act = str(rng.choice(acts[:4] if rng.random() < 0.9 else acts))
        i, j = (int(n) for n in rng.choice([0, 1, 2, 5, 6, -1, 10**9], size=2))
        row = {"act": act, "i": i, "j": j, "author": "person", "time": 1.0}
        if act == "give":
            verdict = str(rng.choice(["yes", "no", "unsure"]))
            row |= {"role": "loop", "verdict": verdict, "reason": "x", "seconds": 1.0}
        rows.append(row)
    with closing(sqlite3.connect(project / DATABASE)) as connection, connection:
        insert(connection, "log", rows)
    return f"{len(rows)} entries"


def _change_rows(project: Path, rng: np.random.Generator) -> str:
    name = str(rng.choice(list(_tables(project))))
    how = str(rng.choice(["deleted", "half deleted", "100000 more stages"]))
    with without_triggers(project / DATABASE) as connection:
        if how == "100000 more stages":
            insert(connection, "stage", [{"name": str(n), "seconds": 1.0} for n in range(100_000)])
        else:
            connection.execute(f"DELETE FROM {name} WHERE {'1' if how == 'deleted' else 'rowid % 2'}")
    return f"rows of {name} {how}"


def _special_file(project: Path, rng: np.random.Generator) -> str:
    """Put a link, a FIFO, a folder or a file in the place of something in the folder."""
    name = str(rng.choice(TARGETS))
    how = str(
        rng.choice(["fifo", "loop", "link to a file", "link to a folder", "dangling", "folder", "empty", "noise"])
    )
    path = project / name
    if path.is_dir():
        path.rename(project.parent / "away")
    path.unlink(missing_ok=True)
    if how == "fifo":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how in ("empty", "noise"):
        path.write_bytes(b"" if how == "empty" else rng.bytes(5000))
    else:
        victims = project.parent / "elsewhere"
        goals = {"loop": path, "link to a file": victims / "file", "link to a folder": victims / "folder"}
        path.symlink_to(goals.get(how, victims / "nothing"))
    return f"{name}: {how}"


SABOTAGE: dict[str, Callable[[Path, np.random.Generator], str]] = {
    "more in the schema": _add_schema,
    "another table": _replace_table,
    "a cell": _set_cell,
    "a blob": _set_blob,
    "a fact": _set_fact,
    "a field of a fact": _set_field,
    "the source": _set_location,
    "the size of frames": _set_size,
    "the mask": _set_mask,
    "entries of the log": _add_entries,
    "rows": _change_rows,
    "special files": _special_file,
}
