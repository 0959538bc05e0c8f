"""Every pixel from one frame, as it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.blends.painting import to_bytes
from smalti.rendering.canvas import Window
from smalti.rendering.light.correction import Light
from smalti.rendering.sampling.kernels import Bending, bending_of, brighten, cubic, seen_position
from smalti.rendering.sampling.pyramid import FramePyramid
from smalti.rendering.seams.candidates import NONE
from smalti.rendering.seams.patchwork import Patchwork


class PatchPainting:
    """Every pixel from the one frame that shows it (`none`)."""

    def __init__(self, tile: Window, patchwork: Patchwork, light: Callable[[int], Light]) -> None:
        self._tile, self._patchwork, self._light = tile, patchwork, light
        self._shown = patchwork.places(tile)
        self._colours = np.zeros((tile.height, tile.width, 3), dtype=np.float32)

    @property
    def places(self) -> list[int]:
        """The places of the frames it wants, ascending."""
        return [int(place) for place in np.unique(self._shown) if place != NONE]

    def add(self, place: int, frame: FramePyramid) -> None:
        """Add one of them."""
        light, level_from_frame = self._light(place), frame.level_from_frame(0)
        _fill_shown(
            frame.levels[0],
            level_from_frame @ self._patchwork.frame_from_canvas[place],
            bending_of(self._patchwork.lens, level_from_frame),
            light.gains,
            light.flatness,
            light.table_from_pixels(frame.frame_from_level(0)),
            self._tile.left,
            self._tile.top,
            self._shown,
            place,
            self._colours,
        )

    def finish(self) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA."""
        return to_bytes(self._colours, self._shown != NONE)


@compiled
def _fill_shown(
    pixels: NDArray[np.uint8],
    source_from_canvas: NDArray[np.float64],
    bending: Bending,
    gains: NDArray[np.float32],
    flatness: NDArray[np.float32],
    table_from_pixels: NDArray[np.float64],
    left: int,
    top: int,
    shown: NDArray[np.int32],
    place: int,
    colours: NDArray[np.float32],
) -> None:
    for row in range(shown.shape[0]):
        for column in range(shown.shape[1]):
            if shown[row, column] != place:
                continue
            x, y = seen_position(source_from_canvas, bending, left + column, top + row)
            bright = brighten(flatness, table_from_pixels, x, y)
            red, green, blue = cubic(pixels, x, y)
            colours[row, column, 0] = red * bright * gains[0]
            colours[row, column, 1] = green * bright * gains[1]
            colours[row, column, 2] = blue * bright * gains[2]
