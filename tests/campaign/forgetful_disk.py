"""A disk that forgets what was not synced: records what a program writes, and makes what a power loss may leave of it.

The model is more forgetful than any file system in use. Content is safe only after fsync of the file, a name only after
fsync of its folder. Of everything else any part may be there: none, all, some sectors, a size without content, names
in any order. Only the rename within a folder is one step, as everywhere.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

OPEN, WRITE, TRUNCATE, RENAME, UNLINK, MKDIR, RMDIR, LINK, FSYNC, CLOSE, DUP, MARK = range(1, 13)
"""Operations, numbered as in forgetful.c; a mark is written by the program itself."""

IS_NEW = 1 << 40
HEAD = struct.Struct("<iiqQQ")
SHIM_SOURCE = Path(__file__).with_name("forgetful.c")
CANNOT_RECORD = "needs Linux and gcc"
MEANINGLESS = "-shm"
"""SQLite's index of the -wal, in shared memory: made again after a power loss, whatever is in it."""


def can_record() -> bool:
    return sys.platform == "linux" and shutil.which("gcc") is not None


def compile_shim(folder: Path) -> Path:
    """Compile the layer that records, once a folder."""
    shim = folder / "forgetful.so"
    if not shim.exists():
        command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(shim), str(SHIM_SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True, capture_output=True)
    return shim


def recording_environment(
    shim: Path, folder: Path, *, log: Path | None = None, space: Space | None = None
) -> dict[str, str]:
    """Return the environment of a program whose writes below a folder are recorded, or fail when space runs out."""
    chosen = {"LD_PRELOAD": str(shim), "FORGETFUL_FOLDER": str(folder.resolve())}
    if log is not None:
        chosen["FORGETFUL_LOG"] = str(log)
    if space is not None:
        chosen["FORGETFUL_SPACE"] = str(space.path)
    return {**os.environ, **chosen}


class Space:
    """How many bytes may still be written below a folder; programs that run count them down."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set(2**40)

    def set(self, count: int) -> None:
        # In place: programs have this file in their memory.
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            file.write(struct.pack("<q", count))

    def left(self) -> int:
        return int(struct.unpack("<q", self.path.read_bytes())[0])


def mark(number: int, log: Path | None = None) -> None:
    """Write into a record, by default that of this program, how much was acknowledged; all before must be kept."""
    content = str(number).encode()
    descriptor = os.open(log or os.environ["FORGETFUL_LOG"], os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, HEAD.pack(MARK, -1, 0, len(content), 0) + content)
    os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Operation:
    """A record of the log; paths are relative to the recorded folder."""

    kind: int
    descriptor: int
    number: int  # flags, a position or a size
    first: bytes  # a path or content
    second: bytes = b""


def read_log(log: Path) -> list[Operation]:
    content, at, operations = log.read_bytes(), 0, []
    while at < len(content):
        kind, descriptor, number, *lengths = HEAD.unpack_from(content, at)
        at += HEAD.size
        ends = at + lengths[0], at + lengths[0] + lengths[1]
        operations.append(Operation(kind, descriptor, number, content[at : ends[0]], content[ends[0] : ends[1]]))
        at = ends[1]
    return operations


Piece: TypeAlias = tuple[int, bytes | None]
"""Where content was written; without content, the size that the file was given."""


@dataclass(eq=False)
class _File:
    synced: bytes = b""
    pending: list[Piece] = field(default_factory=list)

    def content(self) -> bytes:
        return _apply(self.synced, self.pending)

    def sync(self) -> None:
        self.synced, self.pending = self.content(), []

    def survive(self, rng: np.random.Generator) -> bytes:
        """Return what may be there: nothing new, everything, or some sectors."""
        if not self.pending or (chance := rng.random()) < 0.3:
            return self.synced
        if chance < 0.4:
            return self.content()
        if chance < 0.5:  # the size alone
            whole = len(self.content())
            return _apply(self.synced, [(whole, None)])
        sector, share = int(rng.choice([512, 4096])), rng.random()
        kept = [piece for piece in _sectors(self.pending, sector) if rng.random() < share]
        survived = _apply(self.synced, kept)
        return _apply(survived, [(len(self.content()), None)]) if rng.random() < 0.5 else survived


def _sectors(pieces: list[Piece], side: int) -> Iterator[Piece]:
    for start, content in pieces:
        if content is None:
            yield start, None
            continue
        at = 0
        while at < len(content):
            end = min(len(content), side - (start + at) % side + at)
            yield start + at, content[at:end]
            at = end


def _apply(content: bytes, pieces: list[Piece]) -> bytes:
    if not pieces:
        return content
    changed = bytearray(content)
    for start, written in pieces:
        if written is None:
            del changed[start:]
            changed.extend(bytes(start - len(changed)))
        else:
            changed.extend(bytes(max(0, start - len(changed))))
            changed[start : start + len(written)] = written
    return bytes(changed)


@dataclass(eq=False)
class _Folder:
    synced: dict[str, _Node] = field(default_factory=dict)
    names: dict[str, _Node] = field(default_factory=dict)
    pending: list[dict[str, _Node | None]] = field(default_factory=list)  # names that appear, or vanish

    def change(self, **names: _Node | None) -> None:
        self.pending.append(names)
        _rename(self.names, names)

    def sync(self) -> None:
        self.synced, self.pending = dict(self.names), []

    def survive(self, rng: np.random.Generator) -> dict[str, _Node]:
        """Return the names that may be there: nothing new, everything, some of the first, or any of them."""
        names = dict(self.synced)
        chance, count = rng.random(), len(self.pending)
        kept = np.zeros(count, dtype=bool)
        if 0.3 <= chance < 0.4:
            kept[:] = True
        elif 0.4 <= chance < 0.7:
            kept[: rng.integers(count + 1)] = True
        elif chance >= 0.7:
            kept = rng.random(count) < rng.random()
        for change, is_kept in zip(self.pending, kept.tolist(), strict=True):
            if is_kept:
                _rename(names, change)
        return names


_Node: TypeAlias = _File | _Folder


def _rename(names: dict[str, _Node], change: dict[str, _Node | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class ForgetfulDisk:
    """The files below a folder: as the program sees them, and as a power loss may leave them."""

    def __init__(self, folder: Path) -> None:
        """Begin with what is in a folder now; all of it is synced."""
        self._prefix = os.fsencode(folder.resolve())
        self._top = _read(folder)
        self._open: dict[int, _Node] = {}

    def do(self, operation: Operation) -> None:
        """Repeat an operation of a log of this folder."""
        kind, descriptor, number = operation.kind, operation.descriptor, operation.number
        if kind == OPEN:
            self._open[descriptor] = self._opened(operation.first, number)
        elif kind == CLOSE:
            del self._open[descriptor]
        elif kind == DUP:
            self._open[number] = self._open[descriptor]
        elif kind == WRITE:
            self._file(descriptor).pending.append((number, operation.first))
        elif kind == TRUNCATE:
            self._file(descriptor).pending.append((number, None))
        elif kind == FSYNC:
            self._open[descriptor].sync()
        elif kind == MKDIR:
            parent, name = self._place(operation.first)
            parent.change(**{name: _Folder()})
        elif kind in (UNLINK, RMDIR):
            parent, name = self._place(operation.first)
            parent.change(**{name: None})
        elif kind in (RENAME, LINK):
            self._move(operation, is_link=kind == LINK)

    def write(self, to: Path) -> None:
        """Write what is there for the program, to a folder that is not there yet."""
        _write(self._top, to, None)

    def lose_power(self, to: Path, rng: np.random.Generator) -> None:
        """Write something that may be there after a power loss now, to a folder that is not there yet."""
        _write(self._top, to, rng)

    def _file(self, descriptor: int) -> _File:
        node = self._open[descriptor]
        assert isinstance(node, _File)
        return node

    def _place(self, path: bytes) -> tuple[_Folder, str]:
        """Return the folder of a path, and the name in it."""
        *parents, name = os.fsdecode(os.path.normpath(path[len(self._prefix) :]).strip(b"/")).split("/")
        folder = self._top
        for parent in parents:
            inner = folder.names[parent]
            assert isinstance(inner, _Folder)
            folder = inner
        return folder, name

    def _opened(self, path: bytes, flags: int) -> _Node:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            return _File()
        parent, name = self._place(path)
        if name in ("", "."):
            return parent
        if flags & IS_NEW:
            parent.change(**{name: _File()})
        node = parent.names[name]
        if flags & os.O_TRUNC and isinstance(node, _File):
            node.pending.append((0, None))
        return node

    def _move(self, operation: Operation, *, is_link: bool) -> None:
        (old, name), (new, new_name) = self._place(operation.first), self._place(operation.second)
        node = old.names[name]
        if is_link:
            new.change(**{new_name: node})
        elif old is new:
            old.change(**{name: None, new_name: node})
        else:
            new.change(**{new_name: node})
            old.change(**{name: None})


def _read(folder: Path) -> _Folder:
    names: dict[str, _Node] = {
        entry.name: _read(entry) if entry.is_dir() else _File(entry.read_bytes()) for entry in folder.iterdir()
    }
    return _Folder(names, dict(names))


def _write(folder: _Folder, to: Path, rng: np.random.Generator | None) -> None:
    to.mkdir()
    for name, node in (folder.names if rng is None else folder.survive(rng)).items():
        if isinstance(node, _Folder):
            _write(node, to / name, rng)
        elif name.endswith(MEANINGLESS):
            (to / name).write_bytes(b"" if rng is None else rng.bytes(len(node.content())))
        else:
            (to / name).write_bytes(node.content() if rng is None else node.survive(rng))
