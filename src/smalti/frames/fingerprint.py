"""A short mark of what a source is, wherever it lies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

_SAMPLE_BYTES = 4096


def make_fingerprint(parts: Iterable[object]) -> str:
    """Hash the parts, in order, to 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape")
        # The length keeps "ab", "c" apart from "a", "bc".
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()[:16]


def sample_bytes(path: Path) -> bytes:
    """Return the file's size and some bytes from its start, middle and end.

    The start alone would not tell apart uncompressed images, whose headers and sizes agree.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        pieces = [size.to_bytes(8, "little")]
        for offset in (0, size // 2, max(0, size - _SAMPLE_BYTES)):
            file.seek(offset)
            pieces.append(file.read(_SAMPLE_BYTES))
    return b"".join(pieces)
