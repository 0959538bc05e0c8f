"""A small picture of a mosaic and maps over it, collected while the mosaic is painted.

No frame is decoded for it and no seam is found again: it shows the very mosaic that goes into the file.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.homographies import invert_homographies
from smalti.rendering.canvas import Canvas, Window
from smalti.rendering.layout import Layout
from smalti.rendering.pixel_maps import MosaicMaps, count_frames, deviations, number_frames

PICTURE_SIDE = 2000
"""Pixels of the picture's longer side, at most."""

MAP_SIDE = 1000
"""Places along the longer side of the maps, at most."""

_ROWS = 64  # added at a time


class MosaicOverview:
    """Takes the bands of a mosaic from the top. It is complete after the last one."""

    def __init__(self, layout: Layout, canvas: Canvas, even_light: bool) -> None:
        self.canvas = canvas
        self._layout, self._even_light = layout, even_light
        longer = max(canvas.width, canvas.height)
        scale = min(1.0, PICTURE_SIDE / longer)
        columns, rows = (max(1, round(scale * side)) for side in (canvas.width, canvas.height))
        self.picture = np.zeros((rows, columns, 4), dtype=np.uint8)
        """(h, w, 4), RGBA: the mean over the area of each pixel."""
        self._row_sums = np.zeros((1, columns, 4), dtype=np.float32)  # of the picture's row that is not complete
        self._top = 0
        self._step = -(-longer // MAP_SIDE)
        # The pixel of the first place, in both directions. A very long mosaic may be lower than half a step.
        self._start = min(self._step // 2, min(canvas.width, canvas.height) - 1)
        self._chosen: list[NDArray[np.int32]] = []

    def add(self, band: NDArray[np.uint8]) -> None:
        """Add the next rows (h, w, 4) of the mosaic."""
        bottom = self._top + len(band)
        # The band was painted just now, so its seams are still in memory.
        passed = max(-(-(self._top - self._start) // self._step), 0)
        places = Window.between(self._start, self._start + passed * self._step, self.canvas.width, bottom)
        if not places.is_empty:
            patchwork = self._layout.patchwork(self.canvas, self._even_light)
            self._chosen.append(patchwork.indices(places, self._step))
        for first in range(0, len(band), _ROWS):
            self._shrink(band[first : first + _ROWS])

    def maps(self, spread: Mapping[int, NDArray[np.float64]]) -> MosaicMaps:
        """Return the maps; `spread` is that of `deviations`."""
        layout, step = self._layout, self._step
        indices = np.concatenate(self._chosen)
        canvas_from_place = np.array([[step, 0.0, self._start], [0.0, step, self._start], [0.0, 0.0, 1.0]])
        place_from_mosaic = invert_homographies(canvas_from_place) @ self.canvas.canvas_from_mosaic
        everything = Window(0, 0, indices.shape[1], indices.shape[0])
        return MosaicMaps(
            number_frames(layout, indices),
            count_frames(layout, place_from_mosaic, everything),
            deviations(layout, place_from_mosaic, indices, spread, everything),
        )

    def _shrink(self, pixels: NDArray[np.uint8]) -> None:
        """Add rows to the picture. Each sum runs from the top, so the picture does not depend on the bands."""
        rows, columns = self.picture.shape[:2]
        per_row, per_column = rows / self.canvas.height, columns / self.canvas.width
        bottom = self._top + len(pixels)
        first, last = int(self._top * per_row), rows if bottom == self.canvas.height else int(bottom * per_row)
        sums = np.zeros((last - first + 1, columns, 4), dtype=np.float32)
        sums[0] = self._row_sums[0]
        _add_rows(np.ascontiguousarray(pixels), self._top, per_row, per_column, first, sums)
        _finish_rows(sums[:-1], self.picture[first:last])
        self._row_sums, self._top = sums[-1:], bottom


@compiled
def _add_rows(
    pixels: NDArray[np.uint8], top: int, per_row: float, per_column: float, first: int, sums: NDArray[np.float32]
) -> None:
    """Add pixels to the sums (h, w, 4) of colours times alpha, and of alpha, by the area that they share.

    A pixel is at most as large as a pixel of the sums, so it lies in at most two rows and two columns of these.
    """
    width = sums.shape[1]
    line = np.empty((width, 4), dtype=np.float32)
    for row in range(pixels.shape[0]):
        line[:] = np.float32(0.0)
        for column in range(pixels.shape[1]):
            alpha = np.float32(pixels[row, column, 3])
            if alpha == 0.0:
                continue
            start, end = column * per_column, (column + 1) * per_column
            at = min(int(start), width - 1)
            before = np.float32(min(end, at + 1.0) - start)
            after = np.float32(max(end - (at + 1.0), 0.0))
            for share, there in ((before, at), (after, min(at + 1, width - 1))):
                if share > 0.0:
                    weight = share * alpha
                    line[there, 0] += weight * np.float32(pixels[row, column, 0])
                    line[there, 1] += weight * np.float32(pixels[row, column, 1])
                    line[there, 2] += weight * np.float32(pixels[row, column, 2])
                    line[there, 3] += weight
        start, end = (top + row) * per_row, (top + row + 1) * per_row
        at = int(start)
        before, after = np.float32(min(end, at + 1.0) - start), np.float32(max(end - (at + 1.0), 0.0))
        for share, there in ((before, at - first), (after, at + 1 - first)):
            if share > 0.0 and there < sums.shape[0]:
                for column in range(width):
                    for channel in range(4):
                        sums[there, column, channel] += share * line[column, channel]


@compiled
def _finish_rows(sums: NDArray[np.float32], picture: NDArray[np.uint8]) -> None:
    half = np.float32(0.5)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            alpha = sums[row, column, 3]
            opaque = np.uint8(min(alpha + half, np.float32(255.0)))
            picture[row, column, 3] = opaque
            for channel in range(3):
                colour = sums[row, column, channel] / alpha + half if opaque else np.float32(0.0)
                picture[row, column, channel] = np.uint8(min(colour, np.float32(255.0)))
