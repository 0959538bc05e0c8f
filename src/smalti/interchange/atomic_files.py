"""Write files and folders whole or not at all: under a temporary name beside the target, synced, then renamed.

A power loss forgets what was not synced: content that is renamed before may be missing under the final name.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from smalti.errors import OutputError

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def check_place(path: Path) -> None:
    """Refuse a target that cannot be written, before any work is done for it."""
    with naming(path):
        mode = path.stat().st_mode if path.exists() else 0
    if stat.S_ISDIR(mode) and path.suffix != ".zarr":
        raise OutputError(f"{path}: is a folder: give the name of a file")
    if mode and not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise OutputError(f"{path}: is a pipe, a socket or a device: give the name of a file")
    _check_folder_of(path)


def check_new_folder(path: Path) -> None:
    """Refuse a folder that holds something already or cannot be made, before any work is done for it."""
    with naming(path):
        is_taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
    if is_taken or not path.name:  # "." has no name
        raise OutputError(f"{path}: is not an empty folder; name a new one")
    _check_folder_of(path)


def _check_folder_of(path: Path) -> None:
    with naming(path):
        has_folder = path.parent.is_dir()
    if not has_folder:
        raise OutputError(f"{path}: its folder does not exist: make it, or choose another one")
    with naming(path):
        # Permissions, quotas and read-only disks: only a file that was made shows that one can be made.
        tempfile.TemporaryFile(dir=path.parent).close()


@contextmanager
def replacing(path: Path) -> Iterator[io.BufferedWriter]:
    """Yield a file beside `path` to write to; it is renamed to `path` on success and deleted otherwise."""
    with replacing_by_name(path) as part, _PartFile(part, path) as file:
        yield file


@contextmanager
def replacing_by_name(path: Path) -> Iterator[Path]:
    """Yield the name of a file beside `path`, for libraries that open files themselves; otherwise like `replacing`."""
    with naming(path):
        is_folder = path.is_dir()
    if is_folder:
        raise OutputError(f"{path}: is a folder: give the name of a file")
    with _claiming(path, _open_file) as part:
        try:
            yield part
            with naming(path):
                move_into_place(part, path)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all. Bytes of file names that are no text become escapes."""
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a folder beside `path` to fill; it replaces `path` on success and is deleted otherwise."""
    with _claiming(path, _open_folder) as part:
        old = part.with_suffix(".old")
        try:
            with naming(path):
                _clear_folder(part)
                # A program that was killed while it exchanged the two has left the only whole one here.
                if old.exists() and not path.exists():
                    old.rename(path)
            shutil.rmtree(old, ignore_errors=True)
            yield part
            with naming(path):
                _sync_tree(part)
                _exchange(part, path, old)
                # Now the old one may be removed: a power loss cannot undo the renaming.
                sync_folder(path.parent)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        # If the old folder cannot be removed completely, do not fail: the new one is in place.
        shutil.rmtree(old, ignore_errors=True)


def move_into_place(part: Path, path: Path) -> None:
    """Give a complete file its final name, so that even a power loss leaves this one or the one before, whole."""
    _sync(part, os.O_RDWR)  # where the system wants to have the right to write for this
    part.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names of the files in a folder are on disk: syncing a file does not save its name."""
    if os.name == "nt":  # which does so itself
        return
    try:
        _sync(folder, os.O_RDONLY)
    except OSError as error:
        # One may write to some folders without being able to sync them, because of rights or the kind of disk.
        if error.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an error of the disk into one line that names the target."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path}: cannot be written ({reason}): choose a writable folder with free space") from error


class Spool:
    """Rows stored temporarily on disk, beside the target, to be read once.

    The file has no name, so that nothing can leave it behind.
    """

    def __init__(self, target: Path, row_shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._target, self._row_shape, self._dtype = target, row_shape, np.dtype(dtype)
        with naming(target):
            # Without a buffer, closing writes nothing and cannot fail.
            self._file = tempfile.TemporaryFile(dir=target.parent, buffering=0)  # noqa: SIM115

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        content = np.ascontiguousarray(rows, dtype=self._dtype).data.cast("B")
        with naming(self._target):
            while content:
                content = content[self._file.write(content) :]

    def read(self, height: int, band_height: int) -> Iterator[NDArray[Any]]:
        """Yield all `height` rows from the first on, in bands."""
        with naming(self._target):
            self._file.seek(0)
        for top in range(0, height, band_height):
            rows = np.empty((min(band_height, height - top), *self._row_shape), dtype=self._dtype)
            with naming(self._target):
                count = self._file.readinto(rows.data)
            assert count == rows.nbytes, "as many rows were written as are read"
            yield rows


class _PartFile(io.BufferedWriter):
    """A file whose errors name the target, so that errors of code that feeds it are not taken for write errors."""

    def __init__(self, part: Path, target: Path) -> None:
        self._target = target
        with naming(target):
            super().__init__(io.FileIO(part, "wb"), 2**20)

    def write(self, content: ReadableBuffer, /) -> int:
        with naming(self._target):
            return super().write(content)

    def seek(self, target: int, whence: int = 0, /) -> int:
        with naming(self._target):
            return super().seek(target, whence)

    def flush(self) -> None:
        with naming(self._target):
            super().flush()

    def close(self) -> None:
        with naming(self._target):
            super().close()


def _sync_tree(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            _sync(Path(parent, name), os.O_RDWR)
        sync_folder(Path(parent))


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


LONGEST_KEPT_NAME = 200
"""Bytes. Systems limit names to 255, and the hidden name is longer than that of the target."""


@contextmanager
def _claiming(path: Path, open_part: Callable[[Path], int]) -> Iterator[Path]:
    """Yield the hidden place beside a target, and keep others from writing there.

    It always has the same name, so the next run takes over what a killed one has left.
    """
    name = path.name
    if len(os.fsencode(name)) > LONGEST_KEPT_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    part = path.with_name(f".{name}.part")
    claim = _claim(path, part, open_part)
    if claim is None:
        # Without locks, a name for each process keeps two of them apart.
        yield part.with_suffix(f".{os.getpid()}.part")
        return
    try:
        yield part
    finally:
        os.close(claim)


def _claim(path: Path, part: Path, open_part: Callable[[Path], int]) -> int | None:
    """Return the descriptor of the locked place; None where there are no locks.

    The kernel lets go of the lock when the process ends, however it ends.
    """
    if sys.platform == "win32":
        return None
    with naming(path):
        while True:
            descriptor = open_part(part)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise OutputError(
                    f"{path}: another program is writing it: wait for it, or choose another name"
                ) from None
            except OSError:
                os.close(descriptor)
                with suppress(OSError):
                    part.rmdir() if part.is_dir() else part.unlink()
                return None
            # Whoever had the lock has moved the file to its place: a lock on that one keeps nobody out.
            if part.exists() and os.path.samestat(os.fstat(descriptor), part.stat()):
                return descriptor
            os.close(descriptor)


def _open_file(part: Path) -> int:
    # A link that somebody has put there must not lead to another file.
    return os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)


def _open_folder(part: Path) -> int:
    part.mkdir(exist_ok=True)
    return os.open(part, os.O_RDONLY | os.O_NOFOLLOW)


def _clear_folder(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _exchange(part: Path, path: Path, old: Path) -> None:
    """Move `path` to `old` and `part` to `path`, or leave both as they are."""
    with suppress(FileNotFoundError):
        path.rename(old)
    try:
        part.rename(path)
    except BaseException:
        with suppress(FileNotFoundError):
            old.rename(path)
        raise
