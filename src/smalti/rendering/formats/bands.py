"""The input of every format: bands of pixels and metadata. Encoding on all cores; pyramids of arriving bands."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """A raster that arrives from the top: `pixels` yields (band_height, width[, 4]). The last band may be lower.

    A picture is uint8 (h, w, 4), RGBA, with unassociated alpha. A map is (h, w) of uint16, uint32 or float32. A band is
    still read while the next one is made, so every band is an array of its own.
    """

    width: int
    height: int
    band_height: int  # a power of two, 64 to 2048
    pixels: Iterator[NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Caption:
    """The metadata of an image file."""

    name: str = "mosaic"
    # 2×3: from the centre of pixel (x, y) to metres east and north.
    world_from_pixel: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None
    epsg: int | None = None  # the reference system of these metres; None: a local plane
    pixel_size_um: float | None = None  # side of a pixel

    def __post_init__(self) -> None:
        # GeoTIFF cannot store others, and its readers take 32767 for "none".
        if self.epsg is not None and not 1024 <= self.epsg <= 32766:
            raise UsageError(f"EPSG {self.epsg}: give the code of a projected system in metres, 1024 to 32766")

    @property
    def pixel_sides_um(self) -> tuple[float, float] | None:
        """Width and height of a pixel: as given, else from `world_from_pixel`, else unknown."""
        if self.pixel_size_um is not None:
            return self.pixel_size_um, self.pixel_size_um
        if self.world_from_pixel is None:
            return None
        (a, b, _), (d, e, _) = self.world_from_pixel
        return 1e6 * math.hypot(a, d), 1e6 * math.hypot(b, e)


Writer: TypeAlias = Callable[[Path, Bands, Caption], None]


_Piece = TypeVar("_Piece")
_Encoded = TypeVar("_Encoded")


@contextmanager
def encoding(
    bands: Iterable[NDArray[Any]],
    split: Callable[[NDArray[Any]], Iterable[_Piece]],
    encode: Callable[[_Piece], _Encoded],
) -> Iterator[Iterator[_Encoded]]:
    """Yield the encoded pieces of every band. The next band is made meanwhile.

    When the context ends, for whatever reason, no thread works on pieces any more. So their files can be moved or
    removed.
    """
    with closing(_encode(bands, split, encode)) as encoded:
        yield encoded


def _encode(
    bands: Iterable[NDArray[Any]],
    split: Callable[[NDArray[Any]], Iterable[_Piece]],
    encode: Callable[[_Piece], _Encoded],
) -> Generator[_Encoded, None, None]:
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        waiting: list[Future[_Encoded]] = []
        for band in bands:
            started = [pool.submit(encode, piece) for piece in split(band)]
            for future in waiting:
                yield future.result()
            waiting = started
        for future in waiting:
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def reduce_half(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return RGBA (ceil(h/2), ceil(w/2), 4): the mean of every 2×2 block, at the edge of the pixels that exist.

    Colours are weighted by alpha, so that transparent pixels do not darken an edge. Alpha is the plain mean: a margin
    becomes translucent in proportion to its coverage, and every level covers the same area.
    """
    height, width, _ = pixels.shape
    reduced = np.empty((-(-height // 2), -(-width // 2), 4), dtype=np.uint8)
    _average(np.ascontiguousarray(pixels), reduced)
    return reduced


def pick_half(values: NDArray[Any]) -> NDArray[Any]:
    """Return every second value of every second row. The mean of two labels would be a wrong label."""
    return values[::2, ::2]


def level_sizes(width: int, height: int, smallest: int) -> list[tuple[int, int]]:
    """Return widths and heights, halved (rounded up) until the longer side is at most `smallest`; full size first."""
    sizes = [(width, height)]
    while max(sizes[-1]) > smallest:
        sizes.append((-(-sizes[-1][0] // 2), -(-sizes[-1][1] // 2)))
    return sizes


class Cascade:
    """Cuts arriving rows of an image, and of all its smaller levels, into rows of tiles.

    It stores less than one row of tiles a level.
    """

    def __init__(self, sizes: list[tuple[int, int]], side: int, overlap: int = 0) -> None:
        self._tile_rows = [TileRows(height, side, overlap) for _, height in sizes]
        self._awaited = [height for _, height in sizes]
        self._single: list[NDArray[np.uint8] | None] = [None] * len(sizes)

    def add(self, rows: NDArray[np.uint8], level: int = 0) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
        """Yield (level, number, rows) for every row of tiles that is now complete, RGBA. Level 0 is the full size."""
        for number, complete in self._tile_rows[level].add(rows):
            yield level, number, complete
        self._awaited[level] -= len(rows)
        if level + 1 == len(self._awaited):
            return
        single = self._single[level]
        if single is not None:
            rows = np.concatenate([single, rows])
        # A row without its partner waits, unless it is the last one.
        paired = len(rows) if self._awaited[level] == 0 else len(rows) // 2 * 2
        self._single[level] = rows[paired:].copy() if paired < len(rows) else None
        if paired > 0:
            yield from self.add(reduce_half(rows[:paired]), level + 1)


class TileRows:
    """Collects rows until they make a row of tiles. `overlap` rows of the neighbours belong to it on either side."""

    def __init__(self, height: int, side: int, overlap: int = 0) -> None:
        self._height, self._side, self._overlap = height, side, overlap
        self._number = 0  # of the next row of tiles
        self._held: list[NDArray[Any]] = []
        self._top = 0  # the image row of the first stored row

    def add(self, rows: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield (number, rows of the image) for every row of tiles that is now complete."""
        self._held.append(rows)
        arrived = self._top + sum(map(len, self._held))
        while self._number * self._side < self._height:
            top = max(0, self._number * self._side - self._overlap)
            bottom = min(self._height, (self._number + 1) * self._side + self._overlap)
            self._drop(top)
            if arrived < bottom:
                break
            yield self._number, self._take(bottom - top)
            self._number += 1
        if self._held and self._held[0].base is not None:
            # A view of a few rows would keep a whole band in memory.
            self._held[0] = self._held[0].copy()

    def _drop(self, top: int) -> None:
        """Drop the rows above `top`."""
        while self._held and self._top + len(self._held[0]) <= top:
            self._top += len(self._held.pop(0))
        if self._held and self._top < top:
            self._held[0] = self._held[0][top - self._top :]
            self._top = top

    def _take(self, count: int) -> NDArray[Any]:
        """Return the first `count` rows, and keep them."""
        taken: list[NDArray[Any]] = []
        for rows in self._held:
            taken.append(rows[:count])
            count -= len(taken[-1])
            if count == 0:
                break
        return taken[0] if len(taken) == 1 else np.concatenate(taken)


def pad_tile(part: NDArray[Any], side: int) -> NDArray[Any]:
    """Return a whole tile (side, side, ...), zero beyond the image."""
    tile = np.zeros((side, side, *part.shape[2:]), dtype=part.dtype)
    tile[: part.shape[0], : part.shape[1]] = part
    return tile


@compiled
def _average(pixels: NDArray[np.uint8], reduced: NDArray[np.uint8]) -> None:
    height, width, _ = pixels.shape
    for row in range(reduced.shape[0]):
        for column in range(reduced.shape[1]):
            count = alpha = red = green = blue = 0
            for y in range(2 * row, min(2 * row + 2, height)):
                for x in range(2 * column, min(2 * column + 2, width)):
                    weight = int(pixels[y, x, 3])
                    count += 1
                    alpha += weight
                    red += weight * pixels[y, x, 0]
                    green += weight * pixels[y, x, 1]
                    blue += weight * pixels[y, x, 2]
            whole = max(alpha, 1)
            reduced[row, column, 0] = (2 * red + whole) // (2 * whole)
            reduced[row, column, 1] = (2 * green + whole) // (2 * whole)
            reduced[row, column, 2] = (2 * blue + whole) // (2 * whole)
            reduced[row, column, 3] = (2 * alpha + count) // (2 * count)
