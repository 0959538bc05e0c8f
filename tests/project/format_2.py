"""Project files as the Smalti with affine mosaics wrote them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.project.entries import AnswerEntry

TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE frame (number INTEGER PRIMARY KEY, label TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE log (
    place INTEGER PRIMARY KEY AUTOINCREMENT, act TEXT NOT NULL, i INTEGER NOT NULL, j INTEGER NOT NULL, role TEXT,
    verdict TEXT, reason TEXT, landmarks BLOB, author TEXT NOT NULL, details TEXT, seconds REAL, time REAL NOT NULL);
CREATE TRIGGER log_keeps_its_lines BEFORE UPDATE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is only ever added to'); END;
CREATE TRIGGER log_loses_no_line BEFORE DELETE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is only ever added to'); END;
CREATE TABLE link (
    i INTEGER NOT NULL, j INTEGER NOT NULL, state TEXT NOT NULL, chi2 REAL NOT NULL, weight REAL NOT NULL,
    residual_px REAL NOT NULL, PRIMARY KEY (i, j));
CREATE TABLE placement (
    number INTEGER PRIMARY KEY, part INTEGER NOT NULL, chain BLOB NOT NULL, affine BLOB NOT NULL, final BLOB NOT NULL,
    sigma_px REAL NOT NULL);
CREATE TABLE stage (name TEXT PRIMARY KEY, seconds REAL NOT NULL);
"""

Placed = tuple[int, NDArray[np.float64], NDArray[np.float64]]
"""A frame's number, its map (2, 3) by the chain and its final one (3, 3)."""


def write_format_2(path: Path, entries: Sequence[AnswerEntry], placed: Sequence[Placed] = (), **facts: object) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN; {TABLES} INSERT INTO fact VALUES ('version', '2'); COMMIT;")
        with connection:
            for entry in entries:
                _insert(connection, entry)
            connection.execute("INSERT INTO frame VALUES (0, '0.png', 'too dark')")
            connection.execute("INSERT INTO link VALUES (0, 1, 'held', 5.5, 0.75, 1.25)")
            connection.execute("INSERT INTO stage VALUES ('loop', 2.5)")
            for number, chain, final in placed:
                maps = [np.ascontiguousarray(one, dtype="<f8").tobytes() for one in (chain, chain, final)]
                connection.execute("INSERT INTO placement VALUES (?, 0, ?, ?, ?, 0.5)", (number, *maps))
            for name, value in facts.items():
                connection.execute("INSERT INTO fact VALUES (?, ?)", (name, json.dumps(value)))
    return path


def bring_back_to_format_2(path: Path, **facts: object) -> None:
    """Make a finished project's file what the Smalti of format 2 would have left of the same answers."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE placement RENAME TO newer")
        connection.execute(next(f"CREATE {table}" for table in TABLES.split("CREATE ") if "TABLE placement" in table))
        for number, part, chain, final, sigma_px in connection.execute("SELECT * FROM newer").fetchall():
            rows = np.frombuffer(chain, dtype="<f8").reshape(3, 3)[:2].tobytes()
            values = (number, part, rows, rows, final, sigma_px)
            connection.execute("INSERT INTO placement VALUES (?, ?, ?, ?, ?, ?)", values)
        connection.execute("DROP TABLE newer")
        connection.execute("DELETE FROM fact WHERE name IN ('family', 'camera', 'breaks', 'lens')")
        for name, value in {"version": 2, **facts}.items():
            connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, json.dumps(value)))


def _insert(connection: sqlite3.Connection, entry: AnswerEntry) -> None:
    answer, packed = entry.answer, None
    if answer.landmarks is not None:
        sigma = np.broadcast_to(np.asarray(answer.landmarks.sigma), (len(answer.landmarks),))
        columns = np.column_stack([answer.landmarks.points_i, answer.landmarks.points_j, sigma])
        packed = np.ascontiguousarray(columns, dtype="<f8").tobytes()
    connection.execute(
        "INSERT INTO log (act, i, j, role, verdict, reason, landmarks, author, details, seconds, time) "
        "VALUES ('give', ?, ?, ?, ?, ?, ?, 'matcher', '', ?, 0)",
        (answer.pair.i, answer.pair.j, entry.role, answer.verdict, answer.reason, packed, entry.seconds),
    )
