"""Checksums of table rows and of files, which tell what was written from what a disk has changed since."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from smalti.errors import InputError

CHECKSUM_BYTES = 16
_SEAL = b"smalti seal\n"
SEAL_BYTES = len(_SEAL) + CHECKSUM_BYTES
_CHUNK = 2**20


def checksum_of(content: bytes) -> bytes:
    """Return the checksum of some bytes."""
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES).digest()


def row_checksum(cells: Iterable[object], before: bytes = b"") -> bytes:
    """Return the checksum of a row; `before` is that of the row before it, where rows follow each other."""
    digest = hashlib.blake2b(before, digest_size=CHECKSUM_BYTES)
    for cell in cells:
        # The kind and the length distinguish "ab", "c" from "a", "bc", and 1 from "1".
        kind, packed = _pack_cell(cell)
        digest.update(kind + len(packed).to_bytes(8, "little") + packed)
    return digest.digest()


def _pack_cell(cell: object) -> tuple[bytes, bytes]:
    if cell is None:
        return b"n", b""
    if isinstance(cell, bytes):
        return b"b", cell
    if isinstance(cell, str):
        return b"s", cell.encode()
    if isinstance(cell, float):
        return b"f", struct.pack("<d", cell + 0.0)  # SQLite keeps no sign of zero
    assert isinstance(cell, int), "tables hold nothing else"
    return b"i", str(cell).encode()


def seal(content: bytes) -> bytes:
    """Return the content with its checksum behind it."""
    return content + _SEAL + checksum_of(content)


def is_seal(end: bytes) -> bool:
    """Tell whether the last SEAL_BYTES of a file are a seal, whatever comes before them."""
    return len(end) == SEAL_BYTES and end.startswith(_SEAL)


def unseal(sealed: bytes) -> bytes | None:
    """Return the content of what was sealed, None if it was changed since."""
    end = len(sealed) - SEAL_BYTES
    if end < 0 or sealed[end:] != _SEAL + checksum_of(sealed[:end]):
        return None
    return sealed[:end]


def file_digest(path: Path) -> str:
    """Return the digest of a whole file, in hexadecimal digits."""
    return GradualDigests([path]).finish()[0]


class GradualDigests:
    """Digests of whole files, computed piece by piece while something else reads the same files.

    Read in step, the pieces come from memory: the disk is not read twice.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        with _naming_input(paths):
            self._bytes = sum(path.stat().st_size for path in paths)
        self._found: list[str] = []
        self._pieces = self._read(paths)
        self._done = 0

    def advance(self, share: float) -> None:
        """Read on, up to this share of all bytes."""
        while self._done < share * self._bytes:
            read = next(self._pieces, None)
            if read is None:
                return
            self._done += read

    def finish(self) -> list[str]:
        """Read the rest, and return the digest of every file in order."""
        for _ in self._pieces:
            pass
        return self._found

    def _read(self, paths: Sequence[Path]) -> Iterator[int]:
        """Yield the number of bytes of each piece."""
        for path in paths:
            digest = hashlib.blake2b(digest_size=CHECKSUM_BYTES)
            with _naming_input([path]), path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    yield len(chunk)
            self._found.append(digest.hexdigest())


@contextmanager
def _naming_input(paths: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename or paths[0]}: cannot be read ({error.strerror}), check the path") from None
