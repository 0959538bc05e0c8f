"""The tables of a project's file, and the number of their format."""

from __future__ import annotations

from smalti.project.database import Database

VERSION = 3

LOG = (
    """CREATE TABLE log (
    place INTEGER PRIMARY KEY AUTOINCREMENT, act TEXT NOT NULL, i INTEGER NOT NULL, j INTEGER NOT NULL, role TEXT,
    verdict TEXT, reason TEXT, landmarks BLOB, author TEXT NOT NULL, details TEXT, seconds REAL, time REAL NOT NULL)""",
    # The file itself sees to it that nothing that was said is ever lost, whoever opens it.
    """CREATE TRIGGER log_keeps_its_lines BEFORE UPDATE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is only ever added to'); END""",
    """CREATE TRIGGER log_loses_no_line BEFORE DELETE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is only ever added to'); END""",
)
"""Statements that make the log of answers. What can be null is filled for a give only."""

_TABLES = (
    "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE frame (number INTEGER PRIMARY KEY, label TEXT NOT NULL, reason TEXT NOT NULL)",
    *LOG,
    """CREATE TABLE link (
    i INTEGER NOT NULL, j INTEGER NOT NULL, state TEXT NOT NULL, chi2 REAL NOT NULL, weight REAL NOT NULL,
    residual_px REAL NOT NULL, PRIMARY KEY (i, j))""",
    """CREATE TABLE placement (
    number INTEGER PRIMARY KEY, part INTEGER NOT NULL, chain BLOB NOT NULL, final BLOB NOT NULL,
    sigma_px REAL NOT NULL)""",
    "CREATE TABLE stage (name TEXT PRIMARY KEY, seconds REAL NOT NULL)",
)


def make_tables(database: Database) -> None:
    """Make the tables of a file that has none."""
    with database.writing() as connection:
        # One transaction: a file that has tables has its version too.
        if connection.execute("SELECT name FROM sqlite_master").fetchone() is None:
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute("INSERT INTO fact VALUES ('version', ?)", (str(VERSION),))
