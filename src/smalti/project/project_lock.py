"""Only one program at a time works in a project's folder."""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Self

from smalti.errors import OutputError, ProjectError
from smalti.interchange.regular_files import kind_of, reading
from smalti.project.answer_store import FILE_NAME

if sys.platform != "win32":
    import fcntl

LOCK_NAME = "lock"


class ProjectLock:
    """Keeps others from working in a folder; `what` tells them who does.

    The kernel lets go of it when the process ends, however it ends. On Windows, which has no such locks, nobody is
    kept out.
    """

    def __init__(self, folder: Path, what: str) -> None:
        self._folder = folder
        self._path = folder / LOCK_NAME
        self._what = what
        self._descriptor = -1
        self._release: weakref.finalize[..., ProjectLock] | None = None

    def acquire(self) -> Self:
        """Take the lock, or say who has it."""
        if sys.platform == "win32":
            return self
        try:
            self._descriptor = self._take()
        except OSError as error:
            raise OutputError(
                f"{self._path}: cannot be locked ({error.strerror}); check the permissions, or keep the project on a "
                "disk that supports locks"
            ) from None
        # A project that is dropped without being closed must not lock its folder for ever.
        self._release = weakref.finalize(self, _let_go, self._descriptor, self._path, os.getpid())
        self.describe(self._what)
        return self

    def describe(self, what: str) -> None:
        """Tell others something else about who has the lock."""
        self._what = what
        if self._release is not None and self._release.alive:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n{what}\n".encode(), 0)

    def release(self) -> None:
        """Let others work in the folder."""
        if self._release is not None:
            self._release()

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    def _take(self) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Whoever had it deleted the file on leaving: a lock on a deleted file keeps nobody out.
                if _is_at(descriptor, self._path):
                    return descriptor
            except BlockingIOError:
                holder = os.pread(descriptor, 10_000, 0).decode(errors="replace")
                os.close(descriptor)
                raise self._refusal(holder) from None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _refusal(self, holder: str) -> ProjectError:
        process, _, what = " ".join(holder.split("\n")).strip().partition(" ")
        if not process:  # it has not written its name yet
            return ProjectError(f"{self._folder}: is in use by another process; end it first")
        if process == str(os.getpid()):
            return ProjectError(f"{self._folder}: is in use by this process ({what}); close that project first")
        remedy = "open that page or end it first" if "http" in what else "wait for it or end it first"
        return ProjectError(f"{self._folder}: is in use by process {process} ({what}); {remedy}")


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _let_go(descriptor: int, path: Path, owner: int) -> None:
    # A process that was forked off has the descriptor too, but the lock is not its own.
    if os.getpid() == owner:
        with suppress(OSError):  # a file that stays locks nobody out
            if _is_at(descriptor, path):
                path.unlink()
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder for a project, or refuse one that holds something else."""
    kind = kind_of(folder, OutputError)
    if kind == "file":
        raise OutputError(f"{folder}: is a file, name a folder")
    with reading(folder, OutputError):
        names = {file.name for file in folder.iterdir()} if kind == "folder" else set()
    # A process that was killed as it began leaves nothing but its lock.
    if names - {LOCK_NAME} and FILE_NAME not in names:
        raise OutputError(f"{folder}: is not empty and not a project, name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}), name another folder") from None
