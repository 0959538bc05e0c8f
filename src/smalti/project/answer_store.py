"""The project's file: SQLite, one transaction an answer, on disk before anything else happens."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from smalti.errors import (
    ChangedMeanwhileError,
    DamageError,
    NothingToUndoError,
    OutputError,
    PairError,
    ProjectError,
    SmaltiError,
)
from smalti.interchange.atomic_files import sync_folder
from smalti.interchange.checksums import row_checksum
from smalti.interchange.regular_files import kind_of
from smalti.project.answer_backup import AnswerBackup, read_backup
from smalti.project.database import BACKUP_NAME, Database, is_writable
from smalti.project.entries import Act, AnswerEntry, History, LogEntry
from smalti.project.facts import SourceFacts
from smalti.project.packing import LOG_COLUMNS, Row, pack_log_row, unpack_log_row, unpack_pair
from smalti.project.result_store import ResultStore
from smalti.project.tables import WITHOUT_CHECKSUMS, check_tables, make_tables, upgrade
from smalti.records import Author, Pair

FILE_NAME = "project.sqlite"


class Store(ResultStore):
    """What was learned of a sequence. Every method that writes is one transaction; any thread may call any method.

    Damaged answers are named and never dropped: a file with some cannot be opened to write.
    """

    def __init__(self, database: Database, version: int) -> None:
        """Wrap a file whose tables were checked."""
        super().__init__(database, version)
        self._backup = AnswerBackup(self.path.with_name(BACKUP_NAME))
        self._is_backup_behind = False
        # In one piece, because any thread may read it: what was read so far, and the checksum of its last entry.
        self._known: tuple[History, bytes] = (History.of(()), b"")

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make the file, or open the one that is there, to write to it."""
        database = Database(path)
        with _closing_on_error(database):
            make_tables(database)
            sync_folder(path.parent)
            return cls._to_write(database)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Self:
        """Open a file that is there. Read-only, it is left as it is, and may lie where nothing can be written."""
        if kind_of(path, ProjectError) != "file":
            backup = path.with_name(BACKUP_NAME)
            instead = f"make a new project with: smalti import NEW {backup}" if backup.exists() else "build one first"
            raise ProjectError(f"{path.parent}: is not a Smalti project, {path.name} is missing; {instead}")
        if not read_only and not is_writable(path):
            raise OutputError(f"{path}: cannot be written; copy the project to a writable folder")
        # Read before the database, which is written first: somebody may be answering.
        backed_up = AnswerBackup(path.with_name(BACKUP_NAME)).last_place()
        database = Database(path, read_only=read_only)
        with _closing_on_error(database):
            if not read_only:
                return cls._to_write(database)
            store = cls(database, check_tables(database))
            store._check_end_of_log()
            store._check_facts()
            if backed_up > store.revision and (lost := len(store._read_lost())):
                raise DamageError(
                    f"{path}: has lost its last {_count(lost)}, which {BACKUP_NAME} has; run the same smalti build or "
                    "annotate again to restore them"
                )
            return store

    @classmethod
    def _to_write(cls, database: Database) -> Self:
        if check_tables(database) == WITHOUT_CHECKSUMS:
            # What is damaged already must get no checksum that says otherwise.
            cls(database, WITHOUT_CHECKSUMS).history()
            upgrade(database)
        store = cls(database, check_tables(database))
        store._check_end_of_log()
        store._discard_damaged()
        store.history()
        store._restore()
        store._catch_up()
        return store

    def answers(self) -> list[AnswerEntry]:
        """Return the answers in force, in the order in which they were given."""
        return list(self.history().answers)

    def log(self) -> list[LogEntry]:
        """Return everything that was ever answered, removed, undone and redone."""
        return list(self.history().entries)

    def history(self) -> History:
        """Return what the log means now."""
        return self._read_history()[0]

    @property
    def revision(self) -> int:
        """The place of the last entry of the log, 0 if there is none."""
        [(place,)] = self._database.read("SELECT MAX(place) FROM log")
        return place or 0

    def keep_answer(self, entry: AnswerEntry, *, seen_revision: int | None = None) -> int:
        """Keep an answer, in the place of an earlier one on its pair, and return the new revision.

        `seen` is the revision that whoever answers has seen: where the pair changed after it, nothing is kept.
        """
        with self._adding_to_log() as connection:
            self._check_within(entry.answer.pair)
            self._refuse_if_changed(entry.answer.pair, seen_revision)
            return self._append(connection, Act.GIVE, entry.answer.pair, entry.time or time.time(), entry)

    def remove_answer(self, pair: Pair, *, seen_revision: int | None = None) -> int:
        """Take an answer out of force, whenever it was given, and return the new revision."""
        with self._adding_to_log() as connection:
            self._refuse_if_changed(pair, seen_revision)
            if self.history().answer_of(pair) is None:
                raise PairError(f"pair {pair}: has no answer that could be removed")
            return self._append(connection, Act.REMOVE, pair, time.time())

    def undo(self, *, seen_revision: int | None = None) -> LogEntry:
        """Take back the latest act of a person that stands, and return it.

        Where a person did anything after the revision `seen`, nothing is undone: it might be somebody else's.
        """
        return self._step(Act.UNDO, seen_revision)

    def redo(self, *, seen_revision: int | None = None) -> LogEntry:
        """Bring the latest act that was undone again, and return it; `seen_revision` as for undo."""
        return self._step(Act.REDO, seen_revision)

    def log_checksums(self) -> list[bytes]:
        """Return the checksum of every entry of the log."""
        self.history()
        return [row[-1] for row in self._read_log(0)]

    def append_rows(self, rows: Iterable[Row]) -> None:
        """Add rows of another log, which follow those that are there, as they are and all or nothing."""
        with self._adding_to_log() as connection:
            checksum = self._read_history()[1]
            for row in rows:
                checksum = row_checksum(row, checksum)
                _insert(connection, row, checksum)

    def problems(self) -> list[str]:
        """Return what is damaged, one line each; the file's own structure first."""
        found = super().problems()
        try:
            self.history()
        except DamageError as error:
            found.append(str(error))
        return found

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _step(self, act: Act, seen_revision: int | None) -> LogEntry:
        with self._adding_to_log() as connection:
            history = self.history()
            entry = history.undoable if act is Act.UNDO else history.redoable
            self._refuse_if_changed(None, seen_revision)
            if entry is None or entry.pair is None:
                raise NothingToUndoError(f"there is nothing to {act}")
            self._append(connection, act, entry.pair, time.time())
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

    @contextmanager
    def _adding_to_log(self) -> Iterator[sqlite3.Connection]:
        """Make a transaction that adds to the log; the backup follows when it is on disk."""
        if self._is_backup_behind:
            self._catch_up()
        with self._database.writing() as connection:
            yield connection
        # The answer is kept, whatever becomes of its copy. Without the copy no further answer is taken.
        self._is_backup_behind = True
        with suppress(OutputError):
            self._catch_up()

    def _restore(self) -> None:
        """Add the entries that the file has lost and the backup has.

        SQLite drops what follows a damaged page of its own journal, without a word.
        """
        lost = self._read_lost() if self._backup.last_place() > self.revision else ()
        if lost:
            self.append_rows(lost)
            self.discarded.append(f"{self.path}: had lost its last {_count(len(lost))}; restored from {BACKUP_NAME}")

    def _read_lost(self) -> Sequence[Row]:
        """Return the rows of the backup that follow those of the log; none if it is damaged or of another log."""
        try:
            log = read_backup(self.path.with_name(BACKUP_NAME))
        except ProjectError:
            return ()
        own = self.log_checksums()
        # An empty log says nothing about whose copy this is.
        return log.rows[len(own) :] if own and own == list(log.checksums[: len(own)]) else ()

    def _catch_up(self) -> None:
        """Add to the backup what it lacks."""
        self._backup.catch_up(self._read_log, lambda: self.fact(SourceFacts))
        self._is_backup_behind = False

    def _append(
        self, connection: sqlite3.Connection, act: Act, pair: Pair, when: float, entry: AnswerEntry | None = None
    ) -> int:
        # No other process writes meanwhile.
        last = self._database.read("SELECT place, checksum FROM log ORDER BY place DESC LIMIT 1")
        place, checksum = last[0] if last else (0, b"")
        row = pack_log_row(place + 1, act, pair, when, entry)
        _insert(connection, row, row_checksum(row, checksum))
        return int(place) + 1

    def _read_history(self) -> tuple[History, bytes]:
        """Return the log and the checksum of its last entry."""
        known, checksum = self._known
        # What was read before stays true: the log is only ever added to.
        rows = self._read_log(known.revision)
        if rows:
            entries = list(known.entries)
            for *row, stored in rows:
                entries.append(self._unpack_log_row(row, stored, len(entries) + 1, checksum))
                checksum = stored
            try:
                known = History.of(entries)
            except SmaltiError as error:
                raise self._database.damaged(str(error)) from None
            self._check_frames("an answer", max(entry.pair.j for entry in entries if entry.pair is not None))
            self._known = known, checksum
        return known, checksum

    def _check_within(self, pair: Pair) -> None:
        frames = self._count_frames()
        if frames:
            pair.check_within(frames)

    def _read_log(self, after: int) -> list[tuple[Any, ...]]:
        checksum = "checksum" if self.has_checksums else "NULL"
        query = f"SELECT {', '.join(LOG_COLUMNS)}, {checksum} FROM log WHERE place > ? ORDER BY place"
        return self._database.read(query, after)

    def _unpack_log_row(self, row: list[Any], stored: object, place: int, before: bytes) -> LogEntry:
        if row[0] != place:
            raise self._database.damaged(f"answer {place}, which is missing,")
        try:
            if self.has_checksums and stored != row_checksum(row, before):
                raise ValueError("another checksum")
            return unpack_log_row(row)
        except (ValueError, TypeError):
            raise self._database.damaged(f"answer {place}{_say_pair(row)}") from None

    def _check_end_of_log(self) -> None:
        """Notice if entries were lost at the end: SQLite itself counts those that it ever wrote."""
        query = "SELECT COALESCE(MAX(place), 0), (SELECT MAX(seq) FROM sqlite_sequence WHERE name = 'log') FROM log"
        [(last, written)] = self._database.read(query)
        if last != (written or 0):
            raise self._database.damaged(f"the end of its answers ({last} of {written} are there)")


def _count(answers: int) -> str:
    return "answer" if answers == 1 else f"{answers} answers"


@contextmanager
def _closing_on_error(database: Database) -> Iterator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def _say_pair(row: list[Any]) -> str:
    try:
        return f", on pair {unpack_pair(row[2], row[3])},"
    except ValueError:
        return ""


def _insert(connection: sqlite3.Connection, row: Row, checksum: bytes) -> None:
    marks = ", ".join("?" * (len(LOG_COLUMNS) + 1))
    connection.execute(f"INSERT INTO log ({', '.join(LOG_COLUMNS)}, checksum) VALUES ({marks})", (*row, checksum))
