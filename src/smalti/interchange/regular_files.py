"""Look at the paths that users give, and open only regular files: a pipe or a device would block or never end."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

from smalti.errors import InputError, SmaltiError, TableError

_OTHER_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(path: Path, error: type[SmaltiError] = InputError) -> Literal["nothing", "file", "folder"]:
    """Return what is at a path; refuse what is neither a regular file nor a folder, and where nobody may look."""
    _check_name(path, error)
    with reading(path, error):
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return "nothing"
    _refuse_other_kinds(path, mode, error)
    return "folder" if stat.S_ISDIR(mode) else "file"


def open_regular(path: Path, error: type[SmaltiError] = InputError, most_bytes: int | None = None) -> BinaryIO:
    """Open a regular file to read its bytes; refuse everything else at once, and more than `most_bytes`."""
    _check_name(path, error)
    with reading(path, error):
        # Without O_NONBLOCK, opening a pipe waits until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(descriptor)
        _refuse_other_kinds(path, found.st_mode, error)
        if stat.S_ISDIR(found.st_mode):
            raise error(f"{path}: is a folder; give a file")
        if most_bytes is not None and found.st_size > most_bytes:
            raise error(
                f"{path}: is too large ({found.st_size / 1e6:.0f} MB, at most {most_bytes / 1e6:.0f} are read); "
                "make it smaller"
            )
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


MOST_TABLE_BYTES = 100 * 10**6
"""About two million landmarks. The text of a table is held in memory."""


def open_table(path: Path) -> TextIO:
    """Open a CSV file in UTF-8, with or without a byte order mark."""
    return io.TextIOWrapper(open_regular(path, TableError, MOST_TABLE_BYTES), encoding="utf-8-sig", newline="")


@contextmanager
def reading(path: Path, error: type[SmaltiError] = InputError) -> Iterator[None]:
    """Turn an error of the system into one line that names the path."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or problem
        raise error(f"{path}: cannot be read ({reason}); check the path and the permissions") from None


def _check_name(path: Path, error: type[SmaltiError]) -> None:
    if "\0" in str(path):
        raise error(f"{path}: is not the name of a file; check the path")


def _refuse_other_kinds(path: Path, mode: int, error: type[SmaltiError]) -> None:
    kind = _OTHER_KINDS.get(stat.S_IFMT(mode))
    if kind is not None:
        raise error(f"{path}: is {kind}, not a file; copy what it holds to a file first")
