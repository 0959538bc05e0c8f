"""The connection to a project's SQLite file: to write to it, or only to read it, on read-only media too."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from smalti.errors import DamageError, OutputError, ProjectError

PATIENCE_SECONDS = 10.0
"""How long to wait while another process writes."""

LONGEST_CELL = 2**28
"""Bytes. A mask of the largest frames fits; a file that claims more is not read into memory."""

BACKUP_NAME = "answers.jsonl"
"""The readable copy of the answers, beside the database."""


class Database:
    """An open SQLite file. Threads may share it; other processes may have it open too."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.is_read_only = read_only
        self._connection = _connect_to_read(path) if read_only else _connect_to_write(path)
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
            except UnicodeDecodeError:  # SQLite quotes damaged names in what it says
                raise _damaged(self.path) from None

    @property
    def stamp(self) -> tuple[int, int]:
        """Changes whenever somebody has written, here or in another process."""
        with self._lock:
            return int(self.read("PRAGMA data_version")[0][0]), self._connection.total_changes

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let all that is read within be of one moment, whatever others write meanwhile."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self.read("BEGIN")
            try:
                yield
            finally:
                self._connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Make a transaction of what is done within: on disk at the end, undone by any error.

        No other process writes from its first line on, so what is read within stays true.
        """
        if self.is_read_only:
            raise OutputError(f"{self.path}: was opened only to read; open the project with to_write=True")
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

    def damaged(self, what: str = "", *, again: bool = False) -> DamageError:
        """Return the error of a file that does not hold what was written.

        `what` names what is affected; without it the whole file is. `again` says that a build computes it again.
        """
        if again:
            return DamageError(f"{self.path}: {what} is damaged; run the same smalti build again to compute it again")
        return DamageError(f"{self.path}: {what} is damaged; {_remedy(self.path)}") if what else _damaged(self.path)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._close()


def is_writable(path: Path) -> bool:
    """Tell whether a file, there or not yet, can be written in its folder. Root is told of read-only disks too."""
    return os.access(path.parent, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK))


def _connect(address: str, path: Path, *pragmas: str, is_uri: bool = False) -> sqlite3.Connection:
    with ExitStack() as stack:
        try:
            # Without an isolation level transactions begin where `writing` says, and nowhere else.
            connection = sqlite3.connect(
                address, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False, uri=is_uri
            )
            stack.callback(connection.close)
            # The file may come from anywhere: nothing in it is run, and no length in it is believed.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.DatabaseError as error:
            raise _refusal(path, error) from None
        except UnicodeDecodeError:
            raise _damaged(path) from None
        stack.pop_all()
    return connection


def _connect_to_write(path: Path) -> sqlite3.Connection:
    return _connect(str(path), path, "journal_mode = WAL", "synchronous = FULL")


def _connect_to_read(path: Path) -> sqlite3.Connection:
    if is_writable(path):
        # Opened like any other, so that whoever closes it last tidies up.
        return _connect(str(path), path, "query_only = ON")
    unfinished = [one for one in _beside(path) if one.exists() and one.stat().st_size]
    if not unfinished:
        return _connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", path, is_uri=True)
    # SQLite would ignore the answers in these files where it cannot write. It reads them all from a copy.
    folder = Path(tempfile.mkdtemp(prefix="smalti-"))
    try:
        for one in (path, *unfinished):
            shutil.copyfile(one, folder / one.name)
        connection = _connect(str(folder / path.name), path, "query_only = ON")
        # SQLite has opened all of the copy after this, which needs no name any more.
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
    except OSError as error:
        raise ProjectError(f"{path}: cannot be copied to {folder} ({error.strerror}); free disk space there") from None
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return connection


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]


_NO_ENTRY = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH}


def _refusal(path: Path, error: sqlite3.DatabaseError) -> ProjectError:
    # The low byte is the kind of an error, and errors of Python's own have none.
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if kind == sqlite3.SQLITE_BUSY:
        return ProjectError(f"{path}: another process is using it; try again")
    if kind in _NO_ENTRY:
        return ProjectError(f"{path}: cannot be opened ({error}); check the permissions")
    if kind == sqlite3.SQLITE_IOERR:
        return ProjectError(f"{path}: cannot be read ({error}); check the disk")
    return _damaged(path, f" ({error})")


def _damaged(path: Path, why: str = "") -> DamageError:
    return DamageError(f"{path}: is damaged or not a project file{why}; {_remedy(path)}")


def _remedy(path: Path) -> str:
    backup = path.with_name(BACKUP_NAME)
    instead = f"make a new project of its answers: smalti import NEW {backup}" if backup.exists() else "build again"
    return f"restore the file from a backup, or {instead}"
