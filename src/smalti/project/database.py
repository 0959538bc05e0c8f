"""The connection to a project's file: any thread, one transaction a change, errors in one line."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from smalti.errors import OutputError, ProjectError

PATIENCE_SECONDS = 10.0
"""How long to wait while another process writes."""


class Database:
    """An open SQLite file. Threads may share it; other processes may have it open too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _connect(path)
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
                raise OutputError(f"{self.path}: cannot be written ({error}); make room or check the rights") from None
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
            self._connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    try:
        # Without an isolation level transactions begin where `writing` says, and nowhere else.
        connection = sqlite3.connect(path, PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from None
    return connection


def _refusal(path: Path, error: sqlite3.DatabaseError) -> ProjectError:
    # The low byte is the kind of an error, and errors of Python's own have none.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return ProjectError(f"{path}: another process keeps it busy; try again")
    return _damaged(path, f" ({error})")


def _damaged(path: Path, why: str = "") -> ProjectError:
    return ProjectError(f"{path}: is damaged or not a project's file{why}; restore it, or build anew")
