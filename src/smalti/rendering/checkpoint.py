"""Finished bands of a long rendering, kept until the file is whole: an interrupted one goes on where it stopped."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.rendering.formats.files import naming

FROM_PIXELS = 50_000_000
"""Smaller mosaics take less than a minute: they are begun anew."""

PIECES = 8
"""Of a band, packed on all cores."""


class Checkpoint:
    """A folder with a file a band; bands are kept in their order."""

    def __init__(self, folder: Path, *identity: object) -> None:
        """Take all that the bands depend on: with anything else they are others."""
        digest = hashlib.sha256()
        for part in identity:
            digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        self._folder = folder / f"bands-{digest.hexdigest()[:16]}"

    def __len__(self) -> int:
        """Return how many bands from the first on are kept."""
        count = 0
        while self._path(count).exists():
            count += 1
        return count

    def resume(
        self, shapes: Sequence[tuple[int, int, int]], paint: Callable[[int], Iterator[NDArray[np.uint8]]]
    ) -> Iterator[NDArray[np.uint8]]:
        """Yield the bands that are kept, then those that `paint` makes from a number on, kept before they are given."""
        done = len(self)
        for number in range(done):
            yield _unpack(self._path(number).read_bytes(), shapes[number])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, band in enumerate(paint(done), start=done):
                self._keep(number, list(pool.map(_deflate, np.array_split(band, PIECES))))
                yield band

    def clear(self) -> None:
        """Keep nothing any more: the file is whole."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self, number: int, pieces: list[bytes]) -> None:
        path = self._path(number)
        part = path.with_suffix(".part")
        with naming(path):
            self._folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                for piece in pieces:
                    file.write(struct.pack("<Q", len(piece)))
                    file.write(piece)
            part.replace(path)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.z"


def _deflate(rows: NDArray[np.uint8]) -> bytes:
    return zlib.compress(np.ascontiguousarray(rows).data, 1)


def _unpack(packed: bytes, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    pieces, at = [], 0
    while at < len(packed):
        (length,) = struct.unpack_from("<Q", packed, at)
        pieces.append(zlib.decompress(packed[at + 8 : at + 8 + length]))
        at += 8 + length
    return np.frombuffer(b"".join(pieces), dtype=np.uint8).reshape(shape)
