"""`answers.jsonl`: a copy of the answer log beside the database, one line of JSON an entry, for people and for imports.

The first line names the source. Every other line is a row of the log with the row's own checksum, which covers the line
before it. The database is the truth: the copy follows when an entry is on disk there, and catches up where a program
was killed or the power was lost in between.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from smalti.errors import OutputError, ProjectError
from smalti.interchange.atomic_files import sync_folder
from smalti.interchange.checksums import checksum_of, row_checksum
from smalti.interchange.regular_files import open_regular
from smalti.project.facts import SourceFacts, unpack_fact
from smalti.project.packing import (
    LOG_COLUMNS,
    Row,
    landmark_numbers,
    pack_landmark_numbers,
    unpack_log_row,
    unpack_pair,
)
from smalti.records import Author

if sys.platform != "win32":
    import fcntl

FORMAT = 1
LONGEST_LINE = 2**28
_TAIL = 2**16
_CHUNK = 2**20
_AUTHOR = LOG_COLUMNS.index("author")
_LANDMARKS = LOG_COLUMNS.index("landmarks")


class AnswerBackup:
    """The file that follows the log. Several handles on one project may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._has_looked = False  # for holes, which appear only where the power was lost
        # The file's number and size after the last line that was added here, and the place and checksum of that line:
        # while nobody else adds to the file, its end need not be read and parsed for every answer.
        self._added: tuple[int, int, int, bytes] | None = None

    def last_place(self) -> int:
        """Return the place in the log of the last whole line, 0 if there is none, -1 if it is no entry."""
        try:
            with open_regular(self._path, ProjectError) as file:
                return _find_end(file, file.seek(0, os.SEEK_END))[1]
        except ProjectError:  # a copy that cannot be read is told of by `smalti check`
            return 0

    def catch_up(self, rows_after: Callable[[int], Sequence[Row]], source: Callable[[], SourceFacts | None]) -> None:
        """Add the rows that the file lacks; `rows_after` returns those after a place, each with its checksum.

        `source` is what the first line says. What a person did is on disk when this returns. A file of another log is
        moved aside, never overwritten.
        """
        try:
            if not self._path.exists() and not rows_after(0):
                return
            with self._lock, self._opened() as file:
                size = file.seek(0, os.SEEK_END) if self._has_looked else _find_hole(file)
                if self._added is not None and self._added[:2] == (os.fstat(file.fileno()).st_ino, size):
                    end, place, checksum = self._added[1:]
                else:
                    end, place, checksum = _find_end(file, size)
                if place and not any(row[0] == place and row[-1] == checksum for row in rows_after(place - 1)[:1]):
                    place = -1
                if place >= 0:
                    self._add(file, end, rows_after(place), source)
                    self._has_looked = True
                    return
            self._set_aside()
            with self._lock, self._opened() as file:
                self._add(file, 0, rows_after(0), source)
        except OSError as error:
            raise OutputError(
                f"{self._path}: cannot be written ({error.strerror}); free disk space or check the permissions"
            ) from None

    def _add(self, file: BinaryIO, end: int, rows: Sequence[Row], source: Callable[[], SourceFacts | None]) -> None:
        file.truncate(end)  # a program that was killed may have left half a line
        if not rows:
            return
        file.seek(end)
        if end == 0:
            file.write(_header_line(source()))
        for *row, checksum in rows:
            assert isinstance(row[0], int)
            assert isinstance(checksum, bytes)
            file.write(row_line(row, checksum))
            added = row[0], checksum
        file.flush()
        self._added = os.fstat(file.fileno()).st_ino, file.tell(), *added
        if any(row[_AUTHOR] == Author.PERSON for row in rows):
            os.fsync(file.fileno())
        if end == 0:
            sync_folder(self._path.parent)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Yield the file to read and write, and keep others from both."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        with os.fdopen(descriptor, "r+b") as file:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def _set_aside(self) -> None:
        number = 1
        while (target := self._path.with_name(f"{self._path.stem}-{number}{self._path.suffix}")).exists():
            number += 1
        self._path.rename(target)


def _find_hole(file: BinaryIO) -> int:
    """Return where the file has its first zero byte, which no text has, or its size.

    What was not synced when the power was lost may be missing in the middle of the file, not only at its end.
    """
    file.seek(0)
    at = 0
    while chunk := file.read(_CHUNK):
        hole = chunk.find(0)
        if hole >= 0:
            return at + hole
        at += len(chunk)
    return at


def _find_end(file: BinaryIO, size: int) -> tuple[int, int, bytes]:
    """Return the end of the last whole line of the first `size` bytes, its place in the log and its checksum.

    The place is 0 for a file without entries, and -1 where the last line is no entry of a log.
    """
    tail, start = b"", size
    while start > 0 and tail.rstrip(b"\n").count(b"\n") < 2:
        start = max(0, start - max(_TAIL, len(tail)))
        file.seek(start)
        tail = file.read(size - start)
    whole = tail[: tail.rfind(b"\n") + 1]
    end = size - len(tail) + len(whole)
    if not whole:
        return 0, 0, b""
    line = whole.splitlines()[-1]
    try:
        if end == len(line) + 1:
            _read_header(line)
            return end, 0, b""
        row, checksum = _read_row_line(line)
    except ValueError:
        return end, -1, b""
    return end, int(row[0]), checksum  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class BackedUpLog:
    """The content of a backup."""

    source: SourceFacts | None
    rows: tuple[Row, ...]  # of LOG_COLUMNS
    checksums: tuple[bytes, ...]
    is_torn: bool  # whether the last line is incomplete and was left out


def read_backup(path: Path) -> BackedUpLog:
    """Read a backup; raise ProjectError where it is damaged, with the line and the answer that are affected."""
    rows: list[Row] = []
    checksums: list[bytes] = []
    source, number, is_torn = None, 0, False
    try:
        with open_regular(path, ProjectError) as file:
            while line := file.readline(LONGEST_LINE):
                number += 1
                if not line.endswith(b"\n"):
                    is_torn = True
                    break
                if number == 1:
                    source = _read_header(line)
                    continue
                row, checksum = _read_row_line(line)
                if row[0] != len(rows) + 1:
                    raise ValueError(f"entry {len(rows) + 1} should follow")
                before = checksums[-1] if checksums else b""
                # The same numbers can be written in several ways: a changed digit is noticed in any case.
                if checksum != row_checksum(row, before) or line != row_line(row, checksum):
                    raise ValueError(f"entry {len(rows) + 1}, on pair {unpack_pair(row[2], row[3])}, was changed")
                unpack_log_row(row)
                rows.append(row)
                checksums.append(checksum)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read ({error.strerror}); check the path and the permissions") from None
    except (ValueError, RecursionError) as error:
        what = "is not a file of answers" if number == 1 else f"line {number} is damaged"
        raise ProjectError(f"{path}: {what} ({error}); give the {path.name} of a project as Smalti wrote it") from None
    if not rows and source is None:
        raise ProjectError(f"{path}: holds no answers; give the answers.jsonl of a project")
    return BackedUpLog(source, tuple(rows), tuple(checksums), is_torn)


def row_line(row: Sequence[Any], checksum: bytes) -> bytes:
    """Return the line of a row of LOG_COLUMNS."""
    said = {name: cell for name, cell in zip(LOG_COLUMNS, row, strict=True) if cell is not None}
    if "landmarks" in said:  # x_i, y_i, x_j, y_j, the standard deviation of each, and directions where there are curves
        said["landmarks"] = landmark_numbers(said["landmarks"]).tolist()
    return json.dumps({**said, "checksum": checksum.hex()}, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _read_row_line(line: bytes) -> tuple[Row, bytes]:
    said = _read_object(line)
    checksum = said.pop("checksum", None)
    unknown = said.keys() - set(LOG_COLUMNS)
    if unknown or not isinstance(checksum, str):
        raise ValueError("is not an entry of a log")
    cells = [said.get(name) for name in LOG_COLUMNS]
    if cells[_LANDMARKS] is not None:
        cells[_LANDMARKS] = pack_landmark_numbers(np.array(cells[_LANDMARKS], dtype="<f8"))
    if any(not isinstance(cell, str | int | float | bytes | None) for cell in cells):
        raise ValueError("is not an entry of a log")
    return tuple(cells), bytes.fromhex(checksum)


def _header_line(source: SourceFacts | None) -> bytes:
    said = {"smalti": "answers", "format": FORMAT, "source": None if source is None else asdict(source)}
    packed = json.dumps(said)
    return json.dumps({**said, "checksum": checksum_of(packed.encode()).hex()}).encode() + b"\n"


def _read_header(line: bytes) -> SourceFacts | None:
    said = _read_object(line)
    checksum = said.pop("checksum", None)
    if said.get("smalti") != "answers" or said.get("format") != FORMAT:
        raise ValueError("its first line does not say so")
    if checksum != checksum_of(json.dumps(said).encode()).hex():
        raise ValueError("its first line was changed")
    return None if said["source"] is None else unpack_fact(SourceFacts, json.dumps(said["source"]))


def _read_object(line: bytes) -> dict[str, Any]:
    said = json.loads(line)
    if not isinstance(said, dict):
        raise ValueError("is not an entry of a log")
    return said
