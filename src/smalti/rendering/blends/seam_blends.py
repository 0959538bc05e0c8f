"""Blends along seams: every pixel from one frame, either as it is (`none`) or blended in frequency bands (`multiband`).

The usual method builds Laplacian pyramids of warped frames. Here every level is sampled directly from the frame's own
pyramid, at the pixels where the weight of the level is positive: the first level only where the frame is drawn, each
coarser level a little around. So a frame costs what it shows and not what it covers. Every value depends on its pixel
alone, so tiles meet exactly. For a single frame the sum of all levels is the frame itself, whatever the levels are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.blends.band_levels import LevelSums
from smalti.rendering.blends.tile_painting import to_bytes
from smalti.rendering.canvas import Window
from smalti.rendering.frame_cache import FramePyramid
from smalti.rendering.light_comparison import Light
from smalti.rendering.sampling_kernels import Bending, bending_of, brighten, cubic, distorted_position
from smalti.rendering.seams.patchwork import Patchwork
from smalti.rendering.seams.seam_candidates import NONE


class PatchPainting:
    """Draws every pixel from one frame (`none`)."""

    def __init__(self, tile: Window, patchwork: Patchwork, light: Callable[[int], Light], white: float) -> None:
        self._tile, self._patchwork, self._light, self._white = tile, patchwork, light, white
        self._shown = patchwork.indices(tile)
        self._colours = np.zeros((tile.height, tile.width, 3), dtype=np.float32)

    @property
    def indices(self) -> list[int]:
        """The indices of the frames of this tile, ascending."""
        return [int(index) for index in np.unique(self._shown) if index != NONE]

    def add(self, index: int, frame: FramePyramid) -> None:
        """Add one of these frames."""
        light, level_from_frame = self._light(index), frame.level_from_frame(0)
        _fill_shown(
            frame.levels[0],
            level_from_frame @ self._patchwork.frame_from_canvas[index],
            bending_of(self._patchwork.lens, level_from_frame),
            light.gains,
            light.flatness,
            light.table_from_pixels(frame.frame_from_level(0)),
            self._tile.left,
            self._tile.top,
            self._shown,
            index,
            self._colours,
        )

    def finish(self) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA."""
        return to_bytes(self._colours, self._shown != NONE, self._white)


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
    index: int,
    colours: NDArray[np.float32],
) -> None:
    for row in range(shown.shape[0]):
        for column in range(shown.shape[1]):
            if shown[row, column] != index:
                continue
            x, y = distorted_position(source_from_canvas, bending, left + column, top + row)
            bright = brighten(flatness, table_from_pixels, x, y)
            red, green, blue = cubic(pixels, x, y)
            colours[row, column, 0] = red * bright * gains[0]
            colours[row, column, 1] = green * bright * gains[1]
            colours[row, column, 2] = blue * bright * gains[2]


MOST_LEVELS = 6
"""The most levels: bands of 64 pixels. Wider ones would spread a highlight over the picture."""


def levels_for(frame_side: float) -> int:
    """Return the number of levels for frames whose shorter side has this length on the canvas."""
    return min(int(math.log2(max(frame_side / 16, 2.0))), MOST_LEVELS)


def reach_of(levels: int) -> int:
    """Return how far from a tile the choice of frames affects its pixels."""
    return 4 << levels


class MultibandPainting:
    """Draws every pixel from one frame, and blends the seams in frequency bands (`multiband`)."""

    def __init__(
        self, tile: Window, patchwork: Patchwork, light: Callable[[int], Light], white: float, levels: int
    ) -> None:
        self._tile, self._patchwork, self._light, self._white = tile, patchwork, light, white
        self._step = 1 << levels
        self._around = tile.grow(reach_of(levels), self._step)
        self._shown = patchwork.indices(self._around)
        self._boxes = self._find_boxes()
        self._sum = LevelSums(tile, levels)

    @property
    def indices(self) -> list[int]:
        """The indices of the frames of this tile, ascending."""
        return sorted(self._boxes)

    def add(self, index: int, frame: FramePyramid) -> None:
        """Add one of these frames."""
        box = self._boxes[index]
        shown = self._shown[box.slices_in(self._around)] == index
        frame_from_canvas = self._patchwork.frame_from_canvas[index]
        self._sum.add(frame, frame_from_canvas, self._patchwork.lens, self._light(index), shown, box)

    def finish(self) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA."""
        return self._sum.combine(self._shown[self._tile.slices_in(self._around)] != NONE, self._white)

    def _find_boxes(self) -> dict[int, Window]:
        """Return where each relevant frame is drawn, with the margin that its bands reach."""
        boxes = {}
        for index, shown in _bounds(self._shown, len(self._patchwork.frame_from_canvas)).items():
            moved = Window(shown.left + self._around.left, shown.top + self._around.top, shown.width, shown.height)
            box = moved.grow(2 * self._step, self._step)
            # The coarse pixels of the tile reach two coarse pixels beyond it.
            if not box.intersect(self._tile.grow(2 * self._step)).is_empty:
                boxes[index] = box.intersect(self._around)
        return boxes


def _bounds(shown: NDArray[np.int32], frames: int) -> dict[int, Window]:
    """Return the bounding box of each frame that is drawn."""
    boxes = np.zeros((frames, 4), dtype=np.int64)
    _measure(shown, boxes)
    indices = np.flatnonzero(boxes[:, 2])
    return {int(index): Window.between(*boxes[index].tolist()) for index in indices}


@compiled
def _measure(shown: NDArray[np.int32], boxes: NDArray[np.int64]) -> None:
    """Fill `boxes` (n, 4): left, top, right and bottom of each frame index, 0 for frames that are not drawn."""
    for row in range(shown.shape[0]):
        for column in range(shown.shape[1]):
            index = shown[row, column]
            if index == NONE:
                continue
            box = boxes[index]
            if box[2] == 0:
                box[0], box[1] = column, row
            box[0] = min(box[0], column)
            box[2], box[3] = max(box[2], column + 1), row + 1
