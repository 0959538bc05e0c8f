"""Frequency bands of a tile. Each is a weighted mean of the frames' difference to the next coarser level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.lens import Lens
from smalti.rendering.blends.tile_painting import to_bytes
from smalti.rendering.canvas import Window
from smalti.rendering.frame_cache import FramePyramid
from smalti.rendering.light_comparison import Light
from smalti.rendering.sampling_kernels import Bending, bending_of, brighten, cubic, distorted_position, linear


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Σ w·(I - coarser I) and Σ w over the pixels of a level that a tile needs."""

    window: Window
    colours: NDArray[np.float32]  # (h, w, 3)
    weights: NDArray[np.float32]  # (h, w)


class LevelSums:
    """A tile to which frames are added one by one."""

    def __init__(self, tile: Window, levels: int) -> None:
        self._levels = [_Level(window, *_blank(window)) for window in _windows(tile, levels)]

    def add(
        self,
        frame: FramePyramid,
        frame_from_canvas: NDArray[np.float64],
        lens: Lens,
        light: Light,
        shown: NDArray[np.bool_],
        around: Window,
    ) -> None:
        """Add a frame where it is drawn: `shown` (h, w) over a window `around` that begins at multiples of 2^levels."""
        coarser: NDArray[np.float32] = np.zeros((1, 1, 3), dtype=np.float32)
        coarser_left = coarser_top = 0
        weights = _halve_weights(shown, len(self._levels))
        for number in reversed(range(len(self._levels))):
            level = self._levels[number]
            left, top = around.left >> number, around.top >> number
            own = Window(left, top, weights[number].shape[1], weights[number].shape[0])
            part = level.window.intersect(own)
            if part.is_empty:
                return
            source = _source_level(frame, frame_from_canvas, number)
            source_from_frame = frame.level_from_frame(source)
            step = 2.0**number
            canvas_from_level = np.diag([step, step, 1.0])
            finer = np.empty((part.height, part.width, 3), dtype=np.float32)
            _add_level(
                frame.levels[source],
                source_from_frame @ frame_from_canvas @ canvas_from_level,
                bending_of(lens, source_from_frame),
                number == 0,
                light.gains,
                light.flatness,
                light.table_from_pixels(frame.frame_from_level(source)),
                part.left,
                part.top,
                np.ascontiguousarray(weights[number][part.slices_in(own)]),
                number == len(self._levels) - 1,
                coarser,
                coarser_left,
                coarser_top,
                finer,
                level.colours[part.slices_in(level.window)],
                level.weights[part.slices_in(level.window)],
            )
            coarser, coarser_left, coarser_top = finer, part.left, part.top

    def combine(self, covered: NDArray[np.bool_], white: float) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA, opaque where a frame is drawn. The tone curve maps `white` to 254."""
        coarser = self._levels[-1]
        _divide(coarser.colours, coarser.weights)
        for level in reversed(self._levels[:-1]):
            _collapse(
                level.colours,
                level.weights,
                level.window.left,
                level.window.top,
                coarser.colours,
                coarser.window.left,
                coarser.window.top,
            )
            coarser = level
        return to_bytes(coarser.colours, covered, white)


def _blank(window: Window) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    shape = (window.height, window.width)
    return np.zeros((*shape, 3), dtype=np.float32), np.zeros(shape, dtype=np.float32)


def _windows(tile: Window, levels: int) -> list[Window]:
    """Return the tile, and for each coarser level the pixels that surround those of the finer one."""
    windows = [tile]
    for _ in range(levels):
        fine = windows[-1]
        left, top = fine.left >> 1, fine.top >> 1
        right, bottom = ((fine.left + fine.width - 1) >> 1) + 2, ((fine.top + fine.height - 1) >> 1) + 2
        windows.append(Window(left, top, right - left, bottom - top))
    return windows


def _halve_weights(shown: NDArray[np.bool_], levels: int) -> list[NDArray[np.float32]]:
    weights = [np.asarray(shown, dtype=np.float32)]
    while len(weights) < levels:
        rows, columns = weights[-1].shape
        halved = np.zeros((-(-rows // 2), -(-columns // 2)), dtype=np.float32)
        _halve(weights[-1], halved)
        weights.append(halved)
    return weights


def _source_level(frame: FramePyramid, frame_from_canvas: NDArray[np.float64], number: int) -> int:
    """Return the level of the frame's pyramid whose pixels are about as large as those of the canvas level."""
    if number == 0:
        return 0
    to_level = frame.level_from_frame(0) @ frame_from_canvas
    zoom = math.sqrt(abs(float(np.linalg.det(to_level[:2, :2])))) / abs(float(to_level[2, 2]))
    return int(np.clip(round(number + math.log2(max(zoom, 1e-6))), 0, len(frame.levels) - 1))


@compiled
def _halve(weights: NDArray[np.float32], halved: NDArray[np.float32]) -> None:
    """Smooth with the binomial kernel of five and take every second pixel; beyond the border is 0.

    Differs from OpenCV, whose rounding depends on the position of a pixel in its vectors: there the same weights,
    shifted, differ in the last bit.
    """
    rows, columns = weights.shape
    kernel = (np.float32(0.0625), np.float32(0.25), np.float32(0.375), np.float32(0.25), np.float32(0.0625))
    across = np.zeros((rows, halved.shape[1]), dtype=np.float32)
    for row in range(rows):
        for column in range(halved.shape[1]):
            total = np.float32(0.0)
            for tap in range(5):
                at = 2 * column + tap - 2
                if 0 <= at < columns:
                    total += kernel[tap] * weights[row, at]
            across[row, column] = total
    for row in range(halved.shape[0]):
        for tap in range(5):
            at = 2 * row + tap - 2
            if 0 <= at < rows:
                for column in range(halved.shape[1]):
                    halved[row, column] += kernel[tap] * across[at, column]


@compiled
def _add_level(
    pixels: NDArray[np.uint8],
    source_from_level: NDArray[np.float64],
    bending: Bending,
    finest: bool,
    gains: NDArray[np.float32],
    flatness: NDArray[np.float32],
    table_from_pixels: NDArray[np.float64],
    left: int,
    top: int,
    weights: NDArray[np.float32],
    coarsest: bool,
    coarser: NDArray[np.float32],
    coarser_left: int,
    coarser_top: int,
    finer: NDArray[np.float32],
    colour_sums: NDArray[np.float32],
    weight_sums: NDArray[np.float32],
) -> None:
    """Sample a level where its weights (h, w) are positive, keep it in `finer`, and add its difference to `coarser`."""
    for row in range(weights.shape[0]):
        y_level = top + row
        above = (y_level >> 1) - coarser_top
        below = above + (y_level & 1)
        for column in range(weights.shape[1]):
            weight = weights[row, column]
            if weight <= 0.0:
                continue
            x_level = left + column
            x, y = distorted_position(source_from_level, bending, x_level, y_level)
            colour = cubic(pixels, x, y) if finest else linear(pixels, x, y)
            bright = brighten(flatness, table_from_pixels, x, y)
            before = (x_level >> 1) - coarser_left
            after = before + (x_level & 1)
            for channel in range(3):
                value = colour[channel] * bright * gains[channel]
                finer[row, column, channel] = value
                if not coarsest:
                    value -= np.float32(0.25) * (
                        coarser[above, before, channel]
                        + coarser[above, after, channel]
                        + coarser[below, before, channel]
                        + coarser[below, after, channel]
                    )
                colour_sums[row, column, channel] += weight * value
            weight_sums[row, column] += weight


@compiled
def _divide(colours: NDArray[np.float32], weights: NDArray[np.float32]) -> None:
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            weight = weights[row, column]
            scale = np.float32(1.0) / weight if weight > 0.0 else np.float32(0.0)
            for channel in range(3):
                colours[row, column, channel] *= scale


@compiled
def _collapse(
    colours: NDArray[np.float32],
    weights: NDArray[np.float32],
    left: int,
    top: int,
    coarser: NDArray[np.float32],
    coarser_left: int,
    coarser_top: int,
) -> None:
    """Divide a level by its weights and add the coarser one to it, in place."""
    quarter = np.float32(0.25)
    for row in range(weights.shape[0]):
        above = ((top + row) >> 1) - coarser_top
        below = above + ((top + row) & 1)
        for column in range(weights.shape[1]):
            weight = weights[row, column]
            if weight <= 0.0:
                continue
            before = ((left + column) >> 1) - coarser_left
            after = before + ((left + column) & 1)
            scale = np.float32(1.0) / weight
            for channel in range(3):
                base = (
                    coarser[above, before, channel]
                    + coarser[above, after, channel]
                    + coarser[below, before, channel]
                    + coarser[below, after, channel]
                )
                colours[row, column, channel] = colours[row, column, channel] * scale + quarter * base
