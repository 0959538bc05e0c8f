"""The mosaic as people see it: canvas, the frames that touch a tile, warp, weigh, combine, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.rendering.blend import Feather, WeightedSum
from smalti.rendering.cache import FrameCache, FrameReader
from smalti.rendering.canvas import Canvas, Window, touched_windows
from smalti.rendering.warp import prepare, warp
from smalti.rendering.writers import Bands, writer_for

__all__ = ["FrameReader", "Mosaic", "OnProgress"]

OnProgress = Callable[[int, int], None]
"""Called with the tiles done and the tiles in all."""


class Mosaic:
    """The mosaic as it can be rendered; nothing is rendered before it is asked for.

    Memory is that of the frames kept (`cache_bytes`) and of two tiles (about 25 bytes a pixel), whatever the size of
    the mosaic. A tile is as wide as the canvas if it can, so that a video is read nearly in its own order.
    """

    def __init__(
        self,
        frames: FrameReader,
        mosaic_from_frame: Mapping[int, NDArray[np.float64]],
        width: int,
        height: int,
        mask: NDArray[np.bool_] | None = None,
        *,
        cache_bytes: int = 256 * 2**20,
        tile_pixels: int = 4 * 2**20,
    ) -> None:
        """Take frames of one size, a map (3, 3) for each that is to be seen, the pixels (h, w) that count in all."""
        self._numbers = sorted(mosaic_from_frame)
        for number in self._numbers:
            if np.shape(mosaic_from_frame[number]) != (3, 3):
                raise UsageError(f"frame {number}: its map has shape {np.shape(mosaic_from_frame[number])}, not (3, 3)")
        if mask is not None and mask.shape != (height, width):
            raise UsageError(f"the mask has shape {mask.shape}, the frames have {(height, width)}: make them equal")
        self._maps = np.array([mosaic_from_frame[number] for number in self._numbers], dtype=np.float64)
        self._width, self._height = width, height
        self._feather = Feather(np.ones((height, width), dtype=np.bool_) if mask is None else mask.astype(np.bool_))
        self._frames = FrameCache(frames, width, height, cache_bytes)
        self._tile_pixels = tile_pixels

    def canvas(self, scale: float = 1.0) -> Canvas:
        """Return the grid of pixels that holds all frames."""
        return Canvas.around(self._maps, self._width, self._height, scale, numbers=self._numbers)

    def save(self, path: str | Path, *, scale: float = 1.0, on_progress: OnProgress | None = None) -> Path:
        """Write the mosaic to a PNG or TIFF file, RGBA, transparent where no frame is."""
        path = Path(path)
        write = writer_for(path)
        canvas = self.canvas(scale)
        write(path, self._render_bands(canvas, on_progress))
        return path

    def image(self, max_size: int = 2000) -> NDArray[np.uint8]:
        """Return a preview (h, w, 4), RGBA, whose longer side has at most `max_size` pixels."""
        if max_size < 1:
            raise UsageError(f"max_size {max_size}: an image has at least one pixel")
        whole = self.canvas()
        canvas = self.canvas(min(1.0, max_size / max(whole.width, whole.height)))
        return np.concatenate(list(self._render_bands(canvas, None).pixels))

    def _render_bands(self, canvas: Canvas, on_progress: OnProgress | None) -> Bands:
        columns, rows = _tile_shape(canvas.width, self._tile_pixels)
        return Bands(canvas.width, canvas.height, rows, self._render_rows(canvas, columns, rows, on_progress))

    def _render_rows(
        self, canvas: Canvas, columns: int, rows: int, on_progress: OnProgress | None
    ) -> Iterator[NDArray[np.uint8]]:
        """Yield the tiles, those side by side joined."""
        tiles = -(-canvas.width // columns) * -(-canvas.height // rows)
        beside: list[NDArray[np.uint8]] = []
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done, tile in enumerate(canvas.tiles(columns, rows), start=1):
                beside.append(self._render_tile(canvas, tile, pool))
                if on_progress is not None:
                    on_progress(done, tiles)
                if tile.left + tile.width == canvas.width:
                    yield beside[0] if len(beside) == 1 else np.concatenate(beside, axis=1)
                    beside.clear()

    def _render_tile(self, canvas: Canvas, tile: Window, pool: ThreadPoolExecutor) -> NDArray[np.uint8]:
        """Return (h, w, 4): the frames that touch the tile, added up in ascending order."""
        canvas_from_frame = canvas.canvas_from_frame(self._maps)
        parts = touched_windows(canvas_from_frame, self._width, self._height, tile)
        touching = {
            number: (part, matrix)
            for number, part, matrix in zip(self._numbers, parts, canvas_from_frame, strict=True)
            if part.width > 0 and part.height > 0
        }
        total = WeightedSum.over(tile)
        for number, frame in self._frames.read_many(touching):
            self._add_frame(total, frame, *touching[number], pool)
        return total.combine()

    def _add_frame(
        self,
        total: WeightedSum,
        frame: NDArray[np.uint8],
        part: Window,
        canvas_from_frame: NDArray[np.float64],
        pool: ThreadPoolExecutor,
    ) -> None:
        source = prepare(self._feather.fill_hidden(frame), canvas_from_frame)
        frame_from_canvas = np.asarray(np.linalg.inv(canvas_from_frame), dtype=np.float64)

        def add(strip: Window) -> None:
            total.add(strip, warp(source, strip), self._feather.weigh(frame_from_canvas, strip))

        # Strips write to rows of their own, so the sum does not depend on which core adds them when.
        list(pool.map(add, _strips(part)))


def _tile_shape(width: int, pixels: int) -> tuple[int, int]:
    """Return columns and rows of a tile: full width and as many rows as fit, a power of two from 64 to 2048.

    A canvas so wide that 64 rows are too much is cut into tiles side by side; lower ones would read every frame
    again and again.
    """
    rows = 64
    while rows < 2048 and 2 * rows * width <= pixels:
        rows *= 2
    return min(width, max(256, pixels // rows)), rows


def _strips(window: Window) -> list[Window]:
    """Cut a window into strips that fit into a core's own cache."""
    rows = 32
    tops = range(window.top, window.top + window.height, rows)
    return [Window(window.left, top, window.width, min(rows, window.top + window.height - top)) for top in tops]
