"""The connection to a project's SQLite file, its tables, and how entries and arrays are packed."""

from __future__ import annotations

import base64
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError, ProjectError
from smalti.geometry.linear_maps import square
from smalti.project.entries import Act, AnswerEntry, LogEntry, Placement, Role
from smalti.records import Answer, Author, Landmarks, Pair, Verdict

Cell: TypeAlias = str | int | float | bytes | None
"""A value in a table."""

PATIENCE_SECONDS = 10.0
"""How long to wait while another process writes."""


class Database:
    """An open SQLite file. Threads may share it; other processes may have it open too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _connect(path)
        # A project that is dropped without being closed must not leave its file open.
        self._close = weakref.finalize(self, self._connection.close)
        self._close.atexit = False  # a thread may still write when the program ends
        # Reentrant: who writes may read within the transaction. Others must not, they would see half of it.
        self._lock = threading.RLock()

    def read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.ProgrammingError:  # our own bug
                raise
            except sqlite3.DatabaseError as error:
                raise _refusal(self.path, error) from None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Make a transaction of what is done within: on disk at the end, undone by any error.

        No other process writes from its first line on, so what is read within stays true.
        """
        with self._lock:
            try:
                with self._connection:
                    self._connection.execute("BEGIN IMMEDIATE")
                    yield self._connection
            except sqlite3.OperationalError as error:
                raise OutputError(
                    f"{self.path}: cannot be written ({error}); free disk space or check the permissions"
                ) from None
            except (sqlite3.IntegrityError, sqlite3.ProgrammingError):  # our own bug
                raise
            except sqlite3.DatabaseError as error:
                raise _refusal(self.path, error) from None

    def damaged(self) -> ProjectError:
        """Return the error of a file that does not hold what it should."""
        return _damaged(self.path)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._close()


def _connect(path: Path) -> sqlite3.Connection:
    with ExitStack() as stack:
        try:
            # Without an isolation level transactions begin where `writing` says, and nowhere else.
            connection = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
            stack.callback(connection.close)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as error:
            raise _refusal(path, error) from None
        stack.pop_all()
    return connection


def _refusal(path: Path, error: sqlite3.DatabaseError) -> ProjectError:
    # The low byte is the kind of an error, and errors of Python's own have none.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return ProjectError(f"{path}: another process is using it; try again")
    return _damaged(path, f" ({error})")


def _damaged(path: Path, why: str = "") -> ProjectError:
    return ProjectError(f"{path}: is damaged or not a project file{why}; restore it, or build again")


VERSION = 4

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


def check_version(database: Database) -> None:
    """Refuse a file of another format."""
    rows = database.read("SELECT value FROM fact WHERE name = 'version'")
    try:
        version = int(rows[0][0])
    except (LookupError, ValueError, TypeError):
        raise database.damaged() from None
    if version == VERSION:
        return
    if version > VERSION:
        raise ProjectError(
            f"{database.path}: was written by a newer Smalti (format {version}, this one knows {VERSION}); "
            "update Smalti"
        )
    raise ProjectError(
        f"{database.path}: was written by a development version before 0.2.0 (format {version}, this one knows "
        f"{VERSION}); build it again into another folder, or open it with the version that wrote it"
    )


def make_tables(database: Database) -> None:
    """Make the tables of a file that has none."""
    with database.writing() as connection:
        # One transaction: a file that has tables has its version too.
        if connection.execute("SELECT name FROM sqlite_master").fetchone() is None:
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute("INSERT INTO fact VALUES ('version', ?)", (str(VERSION),))


LOG_COLUMNS = "place, act, i, j, role, verdict, reason, landmarks, author, details, seconds, time"


def unpack_log_entry(row: tuple[Any, ...]) -> LogEntry:
    """Return the entry of a row of LOG_COLUMNS."""
    place, act, i, j, role, verdict, reason, landmarks, author, details, seconds, time = row
    pair = Pair(i, j)
    if Act(act) is not Act.GIVE:
        return LogEntry(place, Act(act), pair, None)
    kept = None
    if landmarks is not None:
        numbers = _unpack(landmarks, (-1, 5))
        kept = Landmarks(pair, numbers[:, :2], numbers[:, 2:4], numbers[:, 4])
    answer = Answer(pair, Verdict(verdict), kept, reason, Author(author))
    return LogEntry(place, Act.GIVE, pair, AnswerEntry(answer, Role(role), seconds, details, place, time))


def pack_answer(entry: AnswerEntry) -> dict[str, Cell]:
    """Return what an answer says, by the columns of the log."""
    answer = entry.answer
    return {
        "role": entry.role,
        "verdict": answer.verdict,
        "reason": answer.reason,
        "landmarks": None if answer.landmarks is None else _pack_landmarks(answer.landmarks),
        "author": answer.author,
        "details": entry.details,
        "seconds": entry.seconds,
    }


def unpack_placement(row: tuple[Any, ...]) -> Placement:
    """Return the placement of a row of its table."""
    number, part, chain, final, sigma_px = row
    # A Smalti of before kept two rows of the chain's maps: the third was always (0, 0, 1).
    by_chain = square(_unpack(chain, (2, 3))) if len(chain) == 48 else _unpack(chain, (3, 3))
    return Placement(number, part, by_chain, _unpack(final, (3, 3)), sigma_px)


def pack_placement(placement: Placement) -> tuple[Cell, ...]:
    """Return the row of a placement."""
    maps = map(_pack, (placement.chain, placement.final))
    return (placement.number, placement.part, *maps, placement.sigma_px)


def pack_mask(mask: NDArray[np.bool_]) -> str:
    """Return a mask (h, w) as text."""
    _, image = cv2.imencode(".png", mask.astype(np.uint8) * 255)
    return base64.b64encode(image.tobytes()).decode()


def unpack_mask(packed: str) -> NDArray[np.bool_]:
    """Return the mask (h, w) of a text."""
    image = cv2.imdecode(np.frombuffer(base64.b64decode(packed), dtype=np.uint8), cv2.IMREAD_GRAYSCALE)
    return np.asarray(image) > 0


def _pack_landmarks(landmarks: Landmarks) -> bytes:
    sigma = np.broadcast_to(np.asarray(landmarks.sigma), (len(landmarks),))
    return _pack(np.column_stack([landmarks.points_i, landmarks.points_j, sigma]))


def _pack(numbers: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<f8").tobytes()


def _unpack(packed: bytes, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.frombuffer(packed, dtype="<f8").reshape(shape).astype(np.float64)
