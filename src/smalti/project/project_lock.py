"""Only one program at a time works in a project's folder."""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Self

from smalti.errors import OutputError, ProjectError
from smalti.interchange.atomic_files import naming, sync_folder
from smalti.interchange.regular_files import kind_of, reading
from smalti.project.answer_store import FILE_NAME
from smalti.project.database import BACKUP_NAME, is_writable

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
        try:
            self.describe(self._what)
        except OutputError:
            self.release()
            raise
        return self

    def describe(self, what: str) -> None:
        """Tell others something else about who has the lock."""
        self._what = what
        if self._release is not None and self._release.alive:
            with naming(self._path):
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
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
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
    """Make a folder for a project, or refuse one that holds something else or cannot be written."""
    kind = kind_of(folder, OutputError)
    if kind == "file":
        raise OutputError(f"{folder}: is a file, name a folder")
    with reading(folder, OutputError):
        names = {file.name for file in folder.iterdir()} if kind == "folder" else set()
    try:
        # A power loss must not take the folder and the first answers with it. A folder that is there may be as new:
        # whoever made it may have been killed before it was synced.
        place = folder.absolute()
        unsynced = [place, *(parent for parent in place.parents if not parent.exists())]
        folder.mkdir(parents=True, exist_ok=True)
        for one in unsynced:
            sync_folder(one.parent)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}), name another folder") from None
    if FILE_NAME in names:
        if not is_writable(folder / FILE_NAME):
            raise OutputError(
                f"{folder}: cannot be written, and build and annotate add to a project; copy it to a writable folder"
            )
    elif BACKUP_NAME in names:
        raise OutputError(
            f"{folder}: {FILE_NAME} is missing; make a new project of its answers with: smalti import NEW "
            f"{folder / BACKUP_NAME}"
        )
    # Whoever was killed as it began leaves nothing but its lock; a power loss may leave SQLite's journal too.
    elif any(name != LOCK_NAME and not name.startswith(FILE_NAME) for name in names):
        raise OutputError(f"{folder}: is not empty and not a project, name another folder")
