"""Paint tiles on all cores in bounded memory, and store finished bands so that an interrupted rendering can go on."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.interchange.atomic_files import naming
from smalti.interchange.checksums import seal, unseal
from smalti.rendering.blends.tile_painting import Painting, Technique
from smalti.rendering.canvas import Window
from smalti.rendering.frame_cache import FrameCache, FramePyramid

TILE_WIDTH = 1024


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory that each part of the work may take, in bytes."""

    frames: int  # decoded, and kept for later tiles
    chunk: int  # decoded, on the way into tiles; there are two chunks
    paintings: int
    bands: int  # finished rows on the way into the file

    @classmethod
    def within(cls, memory_bytes: int) -> MemoryBudget:
        """Divide the memory that the program itself leaves."""
        free = max(memory_bytes - PROGRAM_BYTES, memory_bytes // 4)
        return cls(frames=free // 4, chunk=free // 12, paintings=free * 3 // 10, bands=free // 4)


PROGRAM_BYTES = 320 * 2**20
"""Memory of Python, its libraries and compiled code."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The division of a canvas window into bands of full width, and of these into tiles."""

    rows: int  # of a band, a power of two from 64 to 2048
    across: int  # tiles of a band
    bands: int

    @classmethod
    def of(cls, window: Window, budget: MemoryBudget) -> Tiling:
        """Make bands as high as the memory allows. While one is painted, the one before is written."""
        rows = 64
        # The next size must fit three times: one band is painted, one handed over, one encoded.
        while rows < 2048 and rows < window.height and 3 * 4 * 2 * rows * window.width <= budget.bands:
            rows *= 2
        return cls(rows, -(-window.width // TILE_WIDTH), -(-window.height // rows))

    @property
    def tiles(self) -> int:
        """The number of all tiles."""
        return self.across * self.bands


class TileScheduler:
    """Paints a window of the canvas band by band."""

    def __init__(
        self, window: Window, technique: Technique, frames: FrameCache, boxes: NDArray[np.int64], budget: MemoryBudget
    ) -> None:
        """Take the area (n, 4) that each frame may affect: left, top, right and bottom on the canvas."""
        self._window, self._technique, self._frames, self._budget = window, technique, frames, budget
        self._boxes = boxes
        self._tiling = Tiling.of(window, budget)

    def paint(self, on_tile: Callable[[int], None], first_band: int = 0) -> Iterator[NDArray[np.uint8]]:
        """Yield the bands from the top, (band_height, width, 4). Call `on_tile` with the number of finished tiles."""
        rows = self._tiling.rows
        rest = Window.between(
            self._window.left, self._window.top + first_band * rows, self._window.right, self._window.bottom
        )
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for band in rest.tiles(self._window.width, rows):
                image = np.empty((band.height, band.width, 4), dtype=np.uint8)
                for group in self._groups(band):
                    self._technique.prepare(_around(group), pool)
                    for tile, painted in zip(group, self._paint_group(group, pool), strict=True):
                        image[tile.slices_in(band)] = painted
                    on_tile(len(group))
                yield image

    def _groups(self, band: Window) -> Iterator[list[Window]]:
        """Cut a band into tiles, and these into groups that are painted together."""
        most = max(1, int(self._budget.paintings / (self._technique.bytes_per_pixel * band.height * TILE_WIDTH)))
        tiles = list(band.tiles(TILE_WIDTH, band.height))
        return (tiles[start : start + most] for start in range(0, len(tiles), most))

    def _paint_group(self, group: Sequence[Window], pool: ThreadPoolExecutor) -> list[NDArray[np.uint8]]:
        paintings = list(pool.map(self._technique.painter, group))
        wanted = [set(painting.indices) for painting in paintings]
        around = _around(group)

        def is_wanted_later(index: int) -> bool:
            _, _, right, bottom = self._boxes[index]
            return bool(bottom > around.bottom or (right > around.right and around.right < self._window.right))

        adding: list[Future[None]] = []
        for chunk in self._chunks(self._frames.read_many(set().union(*wanted), is_wanted_later)):
            # While these frames are painted, the next ones are decoded.
            _finish(adding)
            adding = [
                pool.submit(_add_all, painting, [(index, frame) for index, frame in chunk if index in indices])
                for painting, indices in zip(paintings, wanted, strict=True)
                if any(index in indices for index, _ in chunk)
            ]
        _finish(adding)
        return list(pool.map(lambda painting: painting.finish(), paintings))

    def _chunks(self, frames: Iterator[tuple[int, FramePyramid]]) -> Iterator[list[tuple[int, FramePyramid]]]:
        chunk: list[tuple[int, FramePyramid]] = []
        size = 0
        for index, frame in frames:
            chunk.append((index, frame))
            size += frame.nbytes
            if size >= self._budget.chunk:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk


def _add_all(painting: Painting, frames: Sequence[tuple[int, FramePyramid]]) -> None:
    for index, frame in frames:
        painting.add(index, frame)


def _finish(futures: Sequence[Future[None]]) -> None:
    wait(futures)
    for future in futures:
        future.result()


def _around(tiles: Sequence[Window]) -> Window:
    return Window.between(tiles[0].left, tiles[0].top, tiles[-1].right, tiles[-1].bottom)


CHECKPOINT_FROM_PIXELS = 50_000_000
"""Smaller mosaics take less than a minute. They are started again from the beginning."""

PIECES = 8
"""Parts of a band, which are compressed on all cores."""


class Checkpoint:
    """A folder with one file for each finished band, in order."""

    def __init__(self, folder: Path, *identity: object) -> None:
        """Take everything that the bands depend on. Each combination has its own folder."""
        digest = hashlib.sha256()
        for part in identity:
            digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        self._folder = folder / f"bands-{digest.hexdigest()[:16]}"

    def __len__(self) -> int:
        """Return the number of stored bands, counted from the first."""
        count = 0
        while self._path(count).exists():
            count += 1
        return count

    def resume(
        self,
        shapes: Sequence[tuple[int, int, int]],
        paint: Callable[[int], Iterator[NDArray[np.uint8]]],
        say: Callable[[str], None] = lambda message: None,
    ) -> Iterator[NDArray[np.uint8]]:
        """Yield the stored bands, then those that `paint` makes from a band number on; store each before that.

        A damaged band and those after it are painted again.
        """
        done = 0
        for number in range(len(self)):
            packed = unseal(self._path(number).read_bytes())
            if packed is None:
                say(f"{self._path(number)}: is damaged; it is rendered again")
                break
            yield _unpack(packed, shapes[number])
            done += 1
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, band in enumerate(paint(done), start=done):
                self._keep(number, list(pool.map(_deflate, np.array_split(band, PIECES))))
                yield band

    def clear(self) -> None:
        """Remove all bands, because the file is complete."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self, number: int, pieces: list[bytes]) -> None:
        path = self._path(number)
        part = path.with_suffix(".part")
        with naming(path):
            self._folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(seal(b"".join(struct.pack("<Q", len(piece)) + piece for piece in pieces)))
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
