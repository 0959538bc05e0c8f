"""Project files as the first Smalti wrote them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from smalti.project.entries import AnswerEntry

TABLES = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS frame (number INTEGER PRIMARY KEY, label TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answer (
    place INTEGER PRIMARY KEY AUTOINCREMENT, i INTEGER NOT NULL, j INTEGER NOT NULL, role TEXT NOT NULL,
    verdict TEXT NOT NULL, reason TEXT NOT NULL, landmarks BLOB, seconds REAL NOT NULL, UNIQUE (i, j));
CREATE TABLE IF NOT EXISTS link (
    i INTEGER NOT NULL, j INTEGER NOT NULL, state TEXT NOT NULL, chi2 REAL NOT NULL, weight REAL NOT NULL,
    residual_px REAL NOT NULL, PRIMARY KEY (i, j));
CREATE TABLE IF NOT EXISTS placement (
    number INTEGER PRIMARY KEY, part INTEGER NOT NULL, chain BLOB NOT NULL, affine BLOB NOT NULL, final BLOB NOT NULL,
    sigma_px REAL NOT NULL);
CREATE TABLE IF NOT EXISTS stage (name TEXT PRIMARY KEY, seconds REAL NOT NULL);
"""


def write_format_1(path: Path, entries: list[AnswerEntry], **facts: object) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN; {TABLES} INSERT INTO fact VALUES ('version', '1'); COMMIT;")
        for entry in entries:
            with connection:
                insert(connection, entry)
        with connection:
            connection.execute("INSERT INTO frame VALUES (0, '0.png', 'too dark')")
            connection.execute("INSERT INTO link VALUES (0, 1, 'believed', 5.5, 0.75, 1.25)")
            identity = np.eye(3, dtype="<f8")
            maps = (identity[:2].tobytes(), identity[:2].tobytes(), identity.tobytes())
            connection.execute("INSERT INTO placement VALUES (0, 0, ?, ?, ?, 0.5)", maps)
            connection.execute("INSERT INTO stage VALUES ('loop', 2.5)")
            for name, value in facts.items():
                connection.execute("INSERT INTO fact VALUES (?, ?)", (name, json.dumps(value)))
    return path


def insert(connection: sqlite3.Connection, entry: AnswerEntry) -> None:
    answer, packed = entry.answer, None
    if answer.landmarks is not None:
        sigma = np.broadcast_to(np.asarray(answer.landmarks.sigma), (len(answer.landmarks),))
        columns = np.column_stack([answer.landmarks.points_i, answer.landmarks.points_j, sigma])
        packed = np.ascontiguousarray(columns, dtype="<f8").tobytes()
    connection.execute(
        "INSERT INTO answer (i, j, role, verdict, reason, landmarks, seconds) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (answer.pair.i, answer.pair.j, entry.role, answer.verdict, answer.reason, packed, entry.seconds),
    )
