"""Change cells of a project's database behind its back, as a bad disk would."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np

from smalti.interchange.checksums import row_checksum
from smalti.project.packing import CHECKED_TABLES, table_digest
from tests.campaign.mutations import flip_bits


@contextmanager
def without_triggers(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a database whose triggers do not fire; they are there again at the end."""
    with closing(sqlite3.connect(path)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        yield connection
        for _, text in triggers:
            connection.execute(text)


def list_cells(path: Path) -> list[tuple[str, str, int]]:
    """Return table, column and row of every cell that holds something, in a fixed order."""
    with closing(sqlite3.connect(path)) as connection:
        return [
            (table, column, row)
            for table, columns in tables_of(connection).items()
            for column in columns
            for (row,) in connection.execute(f"SELECT rowid FROM {table} WHERE {column} IS NOT NULL ORDER BY rowid")
        ]


def read_tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the content of all tables."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables_of(connection)}


def tables_of(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of every table."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    names = [name.decode() if isinstance(name, bytes) else name for (name,) in connection.execute(query)]
    return {
        name: [
            column.decode() if isinstance(column, bytes) else column
            for _, column, *_ in connection.execute(f"PRAGMA table_info({name})")
        ]
        for name in names
    }


def insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, object]]) -> None:
    """Add rows; a checksum, where the table has one, is wrong."""
    known = {"checksum": b""} if "checksum" in tables_of(connection)[table] else {}
    for row in rows:
        given = {**row, **known}
        marks = ", ".join("?" * len(given))
        connection.execute(f"INSERT INTO {table} ({', '.join(given)}) VALUES ({marks})", (*given.values(),))


def reseal(path: Path) -> None:
    """Write checksums that fit what the tables say now, as somebody can who knows how; cells of odd kinds have none."""
    with suppress(sqlite3.Error, UnicodeError, AssertionError), without_triggers(path) as connection:
        before = b""
        for row in connection.execute("SELECT * FROM log ORDER BY place").fetchall():
            before = row_checksum(row[:-1], before)
            connection.execute("UPDATE log SET checksum = ? WHERE place = ?", (before, row[0]))
        for table in ("fact", "stage"):
            for row, *cells, _ in connection.execute(f"SELECT rowid, * FROM {table}").fetchall():
                checksum = row_checksum((table, *cells))
                connection.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", (checksum, row))
        for table, order in CHECKED_TABLES.items():
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
            connection.execute("INSERT OR REPLACE INTO digest VALUES (?, ?)", (table, table_digest(table, rows)))


def flip_cell(path: Path, cell: tuple[str, str, int], rng: np.random.Generator, count: int) -> str:
    """Flip bits of the value in a cell and say what it is now; what the column does not allow stays as it was."""
    table, column, row = cell
    with without_triggers(path) as connection:
        kind, before = connection.execute(
            f"SELECT typeof({column}), CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END "
            f"FROM {table} WHERE rowid = ?",
            (row,),
        ).fetchone()
        place = "CAST(? AS TEXT)" if kind == "text" else "?"
        after = _flip(kind, before, rng, count)
        try:
            connection.execute(f"UPDATE {table} SET {column} = {place} WHERE rowid = ?", (after, row))
        except sqlite3.IntegrityError:  # another row has this key
            return f"{cell} stays {str(before)[:30]}"
    return f"{cell} {str(before)[:30]} → {str(after)[:30]}"


def _flip(kind: str, value: object, rng: np.random.Generator, count: int) -> object:
    if kind == "integer":
        # SQLite keeps a small number in few bytes: there are no others to flip.
        size = 1 if -128 <= value < 128 else 8
        return int.from_bytes(flip_bits(value.to_bytes(size, "little", signed=True), rng, count), "little", signed=True)
    if kind == "real":
        [flipped] = struct.unpack("<d", flip_bits(struct.pack("<d", value), rng, count))
        return flipped if flipped == flipped else value  # NaN is null to SQLite
    return flip_bits(value, rng, count) if value else value
