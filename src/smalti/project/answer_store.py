"""The project's file: SQLite, one transaction an answer, on disk before anything else happens."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from smalti.errors import ChangedMeanwhileError, NothingToUndoError, PairError, ProjectError, SmaltiError
from smalti.interchange.regular_files import kind_of
from smalti.project.database import (
    LOG_COLUMNS,
    Cell,
    Database,
    check_version,
    make_tables,
    pack_answer,
    pack_placement,
    unpack_log_entry,
    unpack_placement,
)
from smalti.project.entries import Act, AnswerEntry, FrameEntry, History, LinkEntry, LinkState, LogEntry, Placement
from smalti.project.facts import F, Fact, Outcome, pack_fact, unpack_fact
from smalti.records import Author, Pair

FILE_NAME = "project.sqlite"


class Store:
    """What was learned of a sequence. Every method that writes is one transaction; any thread may call any method."""

    def __init__(self, database: Database) -> None:
        self.path = database.path
        self._database = database
        self._history = History.of(())

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make the file, or open the one that is there."""
        database = Database(path)
        try:
            make_tables(database)
            check_version(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open a file that is there."""
        if kind_of(path, ProjectError) != "file":
            raise ProjectError(f"{path.parent}: is not a Smalti project, {path.name} is missing; build one first")
        database = Database(path)
        try:
            check_version(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def fact(self, kind: type[F]) -> F | None:
        """Return the fact of a kind, None if it was not kept yet."""
        rows = self._database.read("SELECT value FROM fact WHERE name = ?", kind.NAME)
        try:
            return unpack_fact(kind, rows[0][0]) if rows else None
        except ValueError:
            raise self._database.damaged() from None

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
        rows = self._database.read("SELECT number, label, reason FROM frame ORDER BY number")
        return [FrameEntry(*row) for row in rows]

    def keep_frames(self, frames: Iterable[FrameEntry]) -> None:
        """Keep all frames at once, in the place of those before."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM frame")
            rows = [(frame.number, frame.label, frame.reason) for frame in frames]
            connection.executemany("INSERT INTO frame VALUES (?, ?, ?)", rows)

    def answers(self) -> list[AnswerEntry]:
        """Return the answers in force, in the order in which they were given."""
        return list(self.history().answers)

    def log(self) -> list[LogEntry]:
        """Return everything that was ever answered, removed, undone and redone."""
        return list(self.history().entries)

    def history(self) -> History:
        """Return what the log means now."""
        known = self._history
        query = f"SELECT {LOG_COLUMNS} FROM log WHERE place > ? ORDER BY place"
        # What was read before stays true: the log is only ever added to.
        rows = self._database.read(query, known.revision)
        if rows:
            try:
                self._history = known = History.of((*known.entries, *map(unpack_log_entry, rows)))
            except (SmaltiError, ValueError, TypeError):
                raise self._database.damaged() from None
        return known

    @property
    def revision(self) -> int:
        """The place of the last entry of the log, 0 if there is none."""
        [(place,)] = self._database.read("SELECT MAX(place) FROM log")
        return place or 0

    def keep_answer(self, entry: AnswerEntry, *, seen_revision: int | None = None) -> int:
        """Keep an answer, in the place of an earlier one on its pair, and return the new revision.

        `seen` is the revision that whoever answers has seen: where the pair changed after it, nothing is kept.
        """
        with self._database.writing() as connection:
            self._refuse_if_changed(entry.answer.pair, seen_revision)
            given = entry.time or time.time()
            return _append(connection, Act.GIVE, entry.answer.pair, given, **pack_answer(entry))

    def remove_answer(self, pair: Pair, *, seen_revision: int | None = None) -> int:
        """Take an answer out of force, whenever it was given, and return the new revision."""
        with self._database.writing() as connection:
            self._refuse_if_changed(pair, seen_revision)
            if self.history().answer_of(pair) is None:
                raise PairError(f"pair {pair}: has no answer that could be removed")
            return _append(connection, Act.REMOVE, pair, time.time())

    def undo(self, *, seen_revision: int | None = None) -> LogEntry:
        """Take back the latest act of a person that stands, and return it.

        Where a person did anything after the revision `seen`, nothing is undone: it might be somebody else's.
        """
        return self._step(Act.UNDO, seen_revision)

    def redo(self, *, seen_revision: int | None = None) -> LogEntry:
        """Bring the latest act that was undone again, and return it; `seen_revision` as for undo."""
        return self._step(Act.REDO, seen_revision)

    def links(self) -> list[LinkEntry]:
        """Return what the finished mosaic says of every yes."""
        rows = self._database.read("SELECT i, j, state, chi2, weight, residual_px FROM link ORDER BY i, j")
        return [LinkEntry(Pair(i, j), LinkState(state), *numbers) for i, j, state, *numbers in rows]

    def placements(self) -> list[Placement]:
        """Return where the frames lie, in their order."""
        rows = self._database.read("SELECT number, part, chain, final, sigma_px FROM placement ORDER BY number")
        return [unpack_placement(row) for row in rows]

    def keep_result(self, placements: Iterable[Placement], links: Iterable[LinkEntry], outcome: Outcome) -> None:
        """Keep the finished mosaic, in the place of the one before, all or nothing."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM placement")
            connection.execute("DELETE FROM link")
            rows = [pack_placement(placement) for placement in placements]
            connection.executemany("INSERT INTO placement VALUES (?, ?, ?, ?, ?)", rows)
            connection.executemany(
                "INSERT INTO link VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (entry.pair.i, entry.pair.j, entry.state, entry.chi2, entry.weight, entry.residual_px)
                    for entry in links
                ],
            )
            _write_fact(connection, outcome)

    def stages(self) -> dict[str, float]:
        """Return the seconds spent in every stage, over all sessions."""
        return dict(self._database.read("SELECT name, seconds FROM stage ORDER BY rowid"))

    def add_seconds(self, stage: str, seconds: float) -> None:
        """Add to the time spent in a stage."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO stage VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET seconds = seconds + excluded.seconds",
                (stage, seconds),
            )

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _step(self, act: Act, seen_revision: int | None) -> LogEntry:
        with self._database.writing() as connection:
            history = self.history()
            entry = history.undoable if act is Act.UNDO else history.redoable
            self._refuse_if_changed(None, seen_revision)
            if entry is None or entry.pair is None:
                raise NothingToUndoError(f"there is nothing to {act}")
            _append(connection, act, entry.pair, time.time())
            return entry

    def _refuse_if_changed(self, pair: Pair | None, seen_revision: int | None) -> None:
        """Refuse what was decided without having seen the latest on a pair, or, without a pair, of any person."""
        if seen_revision is None:
            return
        query = "SELECT i, j FROM log WHERE place > ? AND "
        if pair is None:
            changed = self._database.read(
                f"{query} author = ? ORDER BY place DESC LIMIT 1", seen_revision, Author.PERSON
            )
        else:
            changed = self._database.read(f"{query} i = ? AND j = ? LIMIT 1", seen_revision, pair.i, pair.j)
        for i, j in changed:
            raise ChangedMeanwhileError(Pair(i, j))


def _write_fact(connection: sqlite3.Connection, fact: Fact) -> None:
    connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (fact.NAME, pack_fact(fact)))


def _append(connection: sqlite3.Connection, act: Act, pair: Pair, when: float, **answer: Cell) -> int:
    # Only answers are given by the matcher too; all else is a person's.
    row: dict[str, Cell] = {"act": act, "i": pair.i, "j": pair.j, "author": Author.PERSON, "time": when, **answer}
    marks = ", ".join("?" * len(row))
    place = connection.execute(f"INSERT INTO log ({', '.join(row)}) VALUES ({marks})", (*row.values(),)).lastrowid
    assert place is not None
    return place
