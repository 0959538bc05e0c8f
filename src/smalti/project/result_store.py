"""Facts and results in a project's file. Every record has a checksum, which is compared when it is read from the file.

What is damaged is named. All but the source can be computed again, and is discarded when somebody opens the file to
write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from smalti.errors import DamageError
from smalti.interchange.checksums import row_checksum
from smalti.project.database import Database
from smalti.project.entries import FrameEntry, LinkEntry, Placement
from smalti.project.facts import F, Fact, Outcome, QuestionsAskedBy, SourceFacts, pack_fact, unpack_fact
from smalti.project.packing import (
    CHECKED_TABLES,
    Row,
    pack_frame,
    pack_link,
    pack_placement,
    table_digest,
    unpack_frames,
    unpack_link,
    unpack_placement,
    unpack_seconds,
)
from smalti.project.tables import WITHOUT_CHECKSUMS

_WHAT = {"frame": "the list of frames", "link": "the list of links", "placement": "the list of frame positions"}

T = TypeVar("T")


class ResultStore:
    """What was found of a sequence, besides answers. Every method that writes is one transaction."""

    def __init__(self, database: Database, version: int) -> None:
        """Wrap a file whose tables were checked."""
        self.path = database.path
        self.has_checksums = version != WITHOUT_CHECKSUMS
        self.discarded: list[str] = []
        """What was damaged and is computed again, one line each."""
        self._database = database
        self._frame_count = 0  # until it is known
        self._tables: dict[str, tuple[tuple[int, int], list[Any]]] = {}  # as last read, and when

    def fact(self, kind: type[F]) -> F | None:
        """Return the fact of a kind, None if it was not kept yet."""
        rows = self._database.read("SELECT * FROM fact WHERE name = ?", kind.NAME)
        try:
            for row in rows:
                self._check_row("fact", row)
            return unpack_fact(kind, rows[0][1]) if rows else None
        except ValueError:
            what = f"what it says of the {kind.NAME}"
            raise self._database.damaged(what, again=kind is not SourceFacts) from None

    def known_fact(self, kind: type[F]) -> F:
        """Return the fact of a kind that every project has."""
        fact = self.fact(kind)
        if fact is None:
            raise self._database.damaged()
        return fact

    def keep_fact(self, fact: Fact) -> None:
        """Keep a fact, in the place of the one before of its kind."""
        with self._database.writing() as connection:
            _write_fact(connection, fact)

    def frames(self) -> list[FrameEntry]:
        """Return the frames in their order."""
        return self._read_table("frame", unpack_frames)

    def keep_frames(self, frames: Iterable[FrameEntry]) -> None:
        """Keep all frames at once, in the place of those before."""
        rows = [pack_frame(frame) for frame in frames]
        with self._database.writing() as connection:
            _write_table(connection, "frame", rows)
        self._frame_count = len(rows)

    def links(self) -> list[LinkEntry]:
        """Return what the finished mosaic says of every yes."""
        links = self._read_table("link", lambda rows: [unpack_link(row) for row in rows])
        self._check_frames(_WHAT["link"], max((link.pair.j for link in links), default=0), again=True)
        return links

    def placements(self) -> list[Placement]:
        """Return where the frames lie, in their order."""
        placements = self._read_table("placement", lambda rows: [unpack_placement(row) for row in rows])
        self._check_frames(_WHAT["placement"], max((one.number for one in placements), default=0), again=True)
        return placements

    def keep_result(self, placements: Iterable[Placement], links: Iterable[LinkEntry], outcome: Outcome) -> None:
        """Keep the finished mosaic, in the place of the one before, all or nothing."""
        with self._database.writing() as connection:
            _write_table(connection, "placement", [pack_placement(placement) for placement in placements])
            _write_table(connection, "link", [pack_link(entry) for entry in links])
            _write_fact(connection, outcome)

    def stages(self) -> dict[str, float]:
        """Return the seconds spent in every stage, over all sessions."""
        rows = self._database.read("SELECT * FROM stage ORDER BY rowid")
        try:
            for row in rows:
                self._check_row("stage", row)
            return dict(unpack_seconds(*row[:2]) for row in rows)
        except ValueError:
            raise self._database.damaged("the time of a stage", again=True) from None

    def add_seconds(self, stage: str, seconds: float) -> None:
        """Add to the time spent in a stage."""
        with self._database.writing() as connection:
            row = (stage, float(self.stages().get(stage, 0.0) + seconds))
            connection.execute(
                "INSERT INTO stage VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET seconds = excluded.seconds, "
                "checksum = excluded.checksum",
                (*row, row_checksum(("stage", *row))),
            )

    def problems(self) -> list[str]:
        """Return what is damaged, one line each; the file's own structure first."""
        rows = self._database.read("PRAGMA integrity_check(10)")
        lines = [line for row in rows for line in str(row[0]).splitlines() if line != "ok"]
        return [str(self._database.damaged(f"its structure ({line})")) for line in lines[:10]] + [
            problem for read, _ in self._readers() if (problem := _problem_of(read))
        ]

    def _readers(self) -> list[tuple[Callable[[], object], Callable[[sqlite3.Connection], None]]]:
        """Return how to read each record, which tells its damage, and how to discard it."""
        names = [str(name) for (name,) in self._database.read("SELECT name FROM fact ORDER BY name")]
        return [
            *((partial(self._check_fact, name), partial(_discard_fact, name)) for name in names if name != "version"),
            (self.stages, _discard_stages),
            (self.frames, partial(_discard_table, "frame")),
            (self.links, partial(_discard_table, "link")),
            (self.placements, partial(_discard_table, "placement")),
        ]

    def _discard_damaged(self) -> None:
        """Delete what is damaged and can be computed again, and remember it."""
        for read, discard in self._readers():
            problem = _problem_of(read)
            if problem is not None:
                with self._database.writing() as connection:
                    discard(connection)
                self.discarded.append(problem.partition("; ")[0] + "; it is computed again")

    def _check_facts(self) -> None:
        """Refuse a file with a damaged fact: one whose name is damaged would seem to be missing."""
        for row in self._database.read("SELECT * FROM fact WHERE name != 'version'"):
            self._check_fact(str(row[0]))

    def _check_fact(self, name: str) -> None:
        kind = next((kind for kind in Fact.__subclasses__() if name == kind.NAME), None)
        if kind is not None:
            self.fact(kind)
            return
        for row in self._database.read("SELECT * FROM fact WHERE name = ?", name):
            try:  # of a stage that this program does not need
                self._check_row("fact", row)
            except ValueError:
                raise self._database.damaged(f"what it says of {name[:40]!a}", again=True) from None

    def _check_row(self, table: str, row: tuple[Any, ...]) -> None:
        """Raise ValueError where a row of a fact or a stage is not as it was written."""
        if self.has_checksums and row[2] != row_checksum((table, *row[:2])):
            raise ValueError("another checksum")

    def _check_frames(self, what: str, last: int, *, again: bool = False) -> None:
        """Refuse a frame that the project does not have. Before the frames were read, any may be there."""
        if last >= (self._count_frames() or last + 1):
            raise self._database.damaged(f"{what} (it names frame {last})", again=again)

    def _count_frames(self) -> int:
        """Return the number of frames, 0 until they are known."""
        self._frame_count = self._frame_count or len(self.frames())
        return self._frame_count

    def _read_table(self, table: str, unpack: Callable[[list[tuple[Any, ...]]], list[T]]) -> list[T]:
        """Return the rows of a table that is written all at once. They stay in memory until somebody writes."""
        with self._database.reading():
            stamp = self._database.stamp
            if self._tables.get(table, (None,))[0] == stamp:
                return list(self._tables[table][1])
            rows = self._database.read(f"SELECT * FROM {table} ORDER BY {CHECKED_TABLES[table]}")
            digests = []
            if self.has_checksums:
                digests = self._database.read("SELECT checksum FROM digest WHERE name = ?", table)
        try:
            if self.has_checksums and (rows or digests) and digests != [(table_digest(table, rows),)]:
                raise ValueError("another digest")
            unpacked = unpack(rows)
        except (ValueError, TypeError):
            raise self._database.damaged(_WHAT[table], again=True) from None
        self._tables[table] = (stamp, unpacked)
        return list(unpacked)


def _problem_of(read: Callable[[], object]) -> str | None:
    try:
        read()
    except DamageError as error:
        return str(error)
    return None


def _discard_fact(name: str, connection: sqlite3.Connection) -> None:
    if name == SourceFacts.NAME:
        return  # cannot be computed again; whoever needs it says so
    connection.execute("DELETE FROM fact WHERE name = ?", (name,))
    if name == QuestionsAskedBy.NAME:
        # Whoever asked, the next build takes all answers up first.
        _write_fact(connection, QuestionsAskedBy("several"))


def _discard_stages(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM stage")


def _discard_table(table: str, connection: sqlite3.Connection) -> None:
    _write_table(connection, table, [])
    if table != "frame":
        # Without its links and positions a mosaic is not finished.
        connection.execute("DELETE FROM fact WHERE name = ?", (Outcome.NAME,))


def _write_fact(connection: sqlite3.Connection, fact: Fact) -> None:
    row = (fact.NAME, pack_fact(fact))
    connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?, ?)", (*row, row_checksum(("fact", *row))))


def _write_table(connection: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    """Write all rows of a table at once, and their digest."""
    connection.execute(f"DELETE FROM {table}")
    for row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    kept = connection.execute(f"SELECT * FROM {table} ORDER BY {CHECKED_TABLES[table]}").fetchall()
    connection.execute("INSERT OR REPLACE INTO digest VALUES (?, ?)", (table, table_digest(table, kept)))
