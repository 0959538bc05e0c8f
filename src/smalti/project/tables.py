"""The tables of a project's file: make them, recognise them, and bring those of 0.2.0 up to date."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

from smalti.errors import DamageError, ProjectError
from smalti.interchange.checksums import row_checksum
from smalti.project.database import Database
from smalti.project.packing import CHECKED_TABLES, LOG_COLUMNS, table_digest

VERSION = 5
"""Format 5 has checksums. Format 4 is that of 0.2.0, which had none; nothing else differs."""

WITHOUT_CHECKSUMS = 4

_TRIGGERS = (
    # The file itself sees to it that nothing that was said is ever lost, whoever opens it.
    """CREATE TRIGGER log_keeps_its_lines BEFORE UPDATE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is only ever added to'); END""",
    """CREATE TRIGGER log_loses_no_line BEFORE DELETE ON log
    BEGIN SELECT RAISE(ABORT, 'the log is only ever added to'); END""",
)

_LOG = """CREATE TABLE log (
    place INTEGER PRIMARY KEY AUTOINCREMENT, act TEXT NOT NULL, i INTEGER NOT NULL, j INTEGER NOT NULL, role TEXT,
    verdict TEXT, reason TEXT, landmarks BLOB, author TEXT NOT NULL, details TEXT, seconds REAL, time REAL NOT NULL"""
# What can be null is filled for a give only.

_WRITTEN_AT_ONCE = (
    "CREATE TABLE frame (number INTEGER PRIMARY KEY, label TEXT NOT NULL, reason TEXT NOT NULL)",
    """CREATE TABLE link (
    i INTEGER NOT NULL, j INTEGER NOT NULL, state TEXT NOT NULL, chi2 REAL NOT NULL, weight REAL NOT NULL,
    residual_px REAL NOT NULL, PRIMARY KEY (i, j))""",
    """CREATE TABLE placement (
    number INTEGER PRIMARY KEY, part INTEGER NOT NULL, chain BLOB NOT NULL, final BLOB NOT NULL,
    sigma_px REAL NOT NULL)""",
)

_STATEMENTS = {
    VERSION: (
        "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL)",
        # Each line's checksum covers the line before it too, so that a line that is lost or moved is noticed.
        f"{_LOG}, checksum BLOB NOT NULL)",
        *_TRIGGERS,
        "CREATE TABLE stage (name TEXT PRIMARY KEY, seconds REAL NOT NULL, checksum BLOB NOT NULL)",
        *_WRITTEN_AT_ONCE,
        "CREATE TABLE digest (name TEXT PRIMARY KEY, checksum BLOB NOT NULL)",
    ),
    WITHOUT_CHECKSUMS: (
        "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        f"{_LOG})",
        *_TRIGGERS,
        "CREATE TABLE stage (name TEXT PRIMARY KEY, seconds REAL NOT NULL)",
        *_WRITTEN_AT_ONCE,
    ),
}


def make_tables(database: Database) -> None:
    """Make the tables of a file that has none."""
    with database.writing() as connection:
        # One transaction: a file that has tables has its version too.
        if connection.execute("SELECT name FROM sqlite_master").fetchone() is None:
            _make(connection)


def check_tables(database: Database) -> int:
    """Return the format of a file; refuse one with other tables, views or triggers before anything else is read."""
    found = {(kind, name): sql for kind, name, sql in database.read("SELECT type, name, sql FROM sqlite_master")}
    version = next((version for version in _STATEMENTS if found == _schema(version)), None)
    if version is not None:
        stated = _read_version(database, version)
        if stated == version:
            return version
        if stated is None:
            raise database.damaged("the number of its format")
    else:
        stated = _stated_version(database, found)
    if stated is None or stated in _STATEMENTS:
        strange = sorted(name for _, name in found.keys() - _schema(VERSION).keys())
        named = f" ({strange[0][:40]!a})" if strange else ""
        raise DamageError(
            f"{database.path}: is damaged or not a project file: its tables are not those of Smalti{named}; restore "
            "it from a backup, and open no such file of somebody whom you do not trust"
        )
    if stated > VERSION:
        raise ProjectError(
            f"{database.path}: was written by a newer Smalti (format {stated}, this one knows {VERSION}); update Smalti"
        )
    raise ProjectError(
        f"{database.path}: was written by a development version before 0.2.0 (format {stated}, this one knows "
        f"{VERSION}); build it again into another folder, or open it with the version that wrote it"
    )


def upgrade(database: Database) -> None:
    """Bring a file of format 4 up to date, all or nothing: the same rows, with checksums."""
    with database.writing() as connection:
        kept = {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
            for table in ("fact", "log", "stage", *CHECKED_TABLES)
        }
        for table in kept:
            connection.execute(f"DROP TABLE {table}")
        _make(connection)
        before = b""
        for row in kept["log"]:
            before = row_checksum(row, before)
            marks = ", ".join("?" * (len(LOG_COLUMNS) + 1))
            connection.execute(f"INSERT INTO log VALUES ({marks})", (*row, before))
        for table in ("fact", "stage"):
            rows = [(*row, row_checksum((table, *row))) for row in kept[table] if row[0] != "version"]
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
        for table, order in CHECKED_TABLES.items():
            for row in kept[table]:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
            if rows:
                connection.execute("INSERT INTO digest VALUES (?, ?)", (table, table_digest(table, rows)))


def _make(connection: sqlite3.Connection) -> None:
    for statement in _STATEMENTS[VERSION]:
        connection.execute(statement)
    version = ("version", str(VERSION))
    connection.execute("INSERT INTO fact VALUES (?, ?, ?)", (*version, row_checksum(("fact", *version))))


@cache
def _schema(version: int) -> dict[tuple[str, str], str | None]:
    """Return what SQLite says about the tables of a format."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in _STATEMENTS[version]:
            connection.execute(statement)
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return {(kind, name): sql for kind, name, sql in rows}


def _read_version(database: Database, version: int) -> int | None:
    """Return the version that a file of known tables states, None if it is damaged."""
    rows = database.read("SELECT * FROM fact WHERE name = 'version'")
    if not rows or not isinstance(rows[0][1], str) or not rows[0][1].isdecimal():
        return None
    if version == VERSION and rows[0][2] != row_checksum(("fact", *rows[0][:2])):
        return None
    return int(rows[0][1][:9])


def _stated_version(database: Database, found: dict[tuple[str, str], str | None]) -> int | None:
    """Return the version that a file of other tables states, None if it is no project's.

    A view or a virtual table would run what somebody has written: nothing is read from such a file.
    """
    if any(kind == "view" or (sql or "").upper().startswith("CREATE VIRTUAL") for (kind, _), sql in found.items()):
        return None
    if ("table", "fact") not in found:
        return None
    columns = {name for _, name, *_ in database.read("PRAGMA table_info(fact)")}
    rows = database.read("SELECT value FROM fact WHERE name = 'version'") if {"name", "value"} <= columns else []
    value = rows[0][0] if rows else None
    return int(value[:9]) if isinstance(value, str) and value.isdecimal() else None
