"""The table of blends, and the two blends that use every frame at a point: weighted mean and median.

Frames have equal weights except near their rims. There the weight decreases, so that frames begin and end without a
step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UnknownNameError
from smalti.geometry.homographies import invert_homographies
from smalti.rendering.blends.seam_blends import MultibandPainting, PatchPainting, levels_for, reach_of
from smalti.rendering.blends.tile_painting import Method, OverlayPainting, Technique, to_bytes
from smalti.rendering.canvas import Canvas, Window, boxes_within
from smalti.rendering.frame_survey import DOUBTFUL, HIDDEN
from smalti.rendering.layout import Layout
from smalti.rendering.light_comparison import Light
from smalti.rendering.sampling_kernels import (
    Bending,
    brighten,
    cubic,
    distorted_position,
    position,
    weight_at,
    worth_at,
)
from smalti.rendering.seams.seam_candidates import select_frames
from smalti.rendering.tone_curve import shown

Blend = Literal["multiband", "feather", "median", "none"]
BLENDS: tuple[Blend, ...] = get_args(Blend)

MEDIAN_VIEWS = 15
"""Frames at every point, at least. More frames of a video add little."""

SLOTS = 24
"""Colours kept of a pixel: those of the frames in which it is deepest inside."""

_DOUBTFUL_WEIGHT = 1 / 255  # where a highlight may hide the scene: it hardly counts beside other frames

_RIM = 0.2  # of the distance from a frame's border to its middle


def check_blend(name: str) -> None:
    """Refuse a name that is not a blend."""
    if name not in BLENDS:
        raise UnknownNameError("blend", name, BLENDS)


def technique_of(blend: Blend, canvas: Canvas, layout: Layout, even_light: bool) -> Technique:
    """Return the technique that paints a canvas with this blend."""
    exposure = layout.exposure(even_light)
    light, white = lru_cache(maxsize=4096)(exposure.light), exposure.white
    canvas_from_frame = canvas.canvas_from_frame(layout.mosaic_from_frame)
    if blend in ("feather", "median"):
        return _mix(blend, canvas, layout, light, white)
    patchwork = layout.patchwork(canvas, even_light)
    if blend == "none":
        return Technique(
            lambda tile: PatchPainting(tile, patchwork, light, white),
            patchwork.prepare,
            levels=1,
            reach=0,
            bytes_per_pixel=24,
        )
    zoom = np.sqrt(np.abs(np.linalg.det(canvas_from_frame[:, :2, :2])))
    levels = levels_for(float(np.median(zoom)) * min(layout.width, layout.height))
    reach = reach_of(levels)
    return Technique(
        lambda tile: MultibandPainting(tile, patchwork, light, white, levels),
        lambda window, pool: patchwork.prepare(window.grow(reach + 2**levels), pool),
        levels=levels + 1,
        reach=reach,
        bytes_per_pixel=60,
    )


def _mix(blend: Blend, canvas: Canvas, layout: Layout, light: Callable[[int], Light], white: float) -> Technique:
    """Return the technique that uses all frames at a point; for the median, enough of them."""
    frame_from_canvas = invert_homographies(canvas.canvas_from_frame(layout.mosaic_from_frame))
    indices = np.arange(len(frame_from_canvas))
    if blend == "median":
        quality = layout.plan().quality
        indices = select_frames(
            layout.mosaic_from_frame, layout.lens, layout.feather.weights, quality, MEDIAN_VIEWS, layout.worth
        )
    method = MEDIAN if blend == "median" else FEATHER

    boxes = layout.boxes(canvas)[indices]

    def begin(tile: Window) -> OverlayPainting:
        touching, parts = boxes_within(boxes, tile)
        touched = {int(indices[n]): Window.between(*part) for n, part in zip(touching, parts.tolist(), strict=True)}
        return OverlayPainting(
            method, tile, touched, frame_from_canvas, layout.lens, layout.feather, light, white, layout.worth
        )

    bytes_per_pixel = 4 * SLOTS + 20 if blend == "median" else 28
    return Technique(begin, lambda window, pool: None, levels=1, reach=0, bytes_per_pixel=bytes_per_pixel)


def _begin_mean(shape: tuple[int, int], frames: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return np.zeros((*shape, 3), dtype=np.float32), np.zeros(shape, dtype=np.float32)


def _finish_mean(colours: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    covered = weights > 0
    np.divide(colours, weights[..., None], out=colours, where=covered[..., None])
    return to_bytes(colours, covered)


@compiled
def _add_weighted(
    pixels: NDArray[np.uint8],
    source_from_frame: NDArray[np.float64],
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    gains: NDArray[np.float32],
    flatness: NDArray[np.float32],
    table_from_frame: NDArray[np.float64],
    white: float,
    weights: NDArray[np.float32],
    worth: NDArray[np.uint8],
    cell: int,
    left: int,
    top: int,
    colour_sums: NDArray[np.float32],
    weight_sums: NDArray[np.float32],
) -> None:
    for row in range(weight_sums.shape[0]):
        for column in range(weight_sums.shape[1]):
            x, y = distorted_position(frame_from_canvas, bending, left + column, top + row)
            weight = weight_at(weights, x, y)
            if weight <= 0.0:
                continue
            if worth.size:
                worth_here = worth_at(worth, cell, x, y)
                if worth_here == HIDDEN:
                    continue
                if worth_here == DOUBTFUL:
                    weight *= np.float32(_DOUBTFUL_WEIGHT)
            bright = brighten(flatness, table_from_frame, x, y)
            u, v = position(source_from_frame, x, y)
            red, green, blue = cubic(pixels, u, v)
            colour_sums[row, column, 0] += weight * shown(red * bright * gains[0], white)
            colour_sums[row, column, 1] += weight * shown(green * bright * gains[1], white)
            colour_sums[row, column, 2] += weight * shown(blue * bright * gains[2], white)
            weight_sums[row, column] += weight


FEATHER = Method(_begin_mean, _add_weighted, _finish_mean)


def _begin_median(shape: tuple[int, int], frames: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    slots = min(SLOTS, max(frames, 1))
    return np.zeros((*shape, slots, 3), dtype=np.uint8), np.zeros((*shape, slots), dtype=np.uint8)


def _finish_median(colours: NDArray[np.uint8], weights: NDArray[np.uint8]) -> NDArray[np.uint8]:
    middle = np.zeros((*weights.shape[:2], 3), dtype=np.float32)
    _take_middle(colours, weights, middle)
    return to_bytes(middle, weights.max(axis=2) > 0)


@compiled
def _collect(
    pixels: NDArray[np.uint8],
    source_from_frame: NDArray[np.float64],
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    gains: NDArray[np.float32],
    flatness: NDArray[np.float32],
    table_from_frame: NDArray[np.float64],
    white: float,
    feather: NDArray[np.float32],
    worth: NDArray[np.uint8],
    cell: int,
    left: int,
    top: int,
    colours: NDArray[np.uint8],
    weights: NDArray[np.uint8],
) -> None:
    """Put a frame's colours into free slots, or into slots of frames in which the pixel is nearer to the border."""
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            x, y = distorted_position(frame_from_canvas, bending, left + column, top + row)
            depth = weight_at(feather, x, y)
            if depth <= 0.0:
                continue
            weight = np.uint8(
                max(min(np.float32(255.0) * depth / np.float32(_RIM), np.float32(255.0)), np.float32(1.0))
            )
            if worth.size:
                worth_here = worth_at(worth, cell, x, y)
                if worth_here == HIDDEN:
                    continue
                if worth_here == DOUBTFUL:
                    weight = np.uint8(1)
            slots = weights[row, column]
            worst = 0
            for slot in range(slots.shape[0]):
                if slots[slot] < slots[worst]:
                    worst = slot
                if slots[slot] == 0:
                    break
            if slots[worst] >= weight:
                continue
            slots[worst] = weight
            bright = brighten(flatness, table_from_frame, x, y)
            u, v = position(source_from_frame, x, y)
            red, green, blue = cubic(pixels, u, v)
            colour = colours[row, column, worst]
            colour[0] = _to_byte(shown(red * bright * gains[0], white))
            colour[1] = _to_byte(shown(green * bright * gains[1], white))
            colour[2] = _to_byte(shown(blue * bright * gains[2], white))


@compiled
def _to_byte(value: np.float32) -> np.uint8:
    return np.uint8(min(max(value + np.float32(0.5), np.float32(0.0)), np.float32(255.0)))


@compiled
def _take_middle(colours: NDArray[np.uint8], weights: NDArray[np.uint8], middle: NDArray[np.float32]) -> None:
    """Fill `middle` with the weighted median: half of the weight lies on either side, linear in between."""
    slots = weights.shape[2]
    values = np.empty(slots, dtype=np.float32)
    masses = np.empty(slots, dtype=np.float32)
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            for channel in range(3):
                count, total = 0, np.float32(0.0)
                for slot in range(slots):
                    mass = np.float32(weights[row, column, slot])
                    if mass == 0:
                        break
                    value, at = np.float32(colours[row, column, slot, channel]), count
                    while at > 0 and values[at - 1] > value:
                        values[at], masses[at] = values[at - 1], masses[at - 1]
                        at -= 1
                    values[at], masses[at] = value, mass
                    count += 1
                    total += mass
                if count:
                    middle[row, column, channel] = _middle(values, masses, count, total)


@compiled
def _middle(values: NDArray[np.float32], masses: NDArray[np.float32], count: int, total: np.float32) -> np.float32:
    """Return where the cumulated mass is half of all. Each value stands in the middle of its own mass."""
    half = total / np.float32(2.0)
    passed, centre_before = np.float32(0.0), np.float32(0.0)
    middle: np.float32 = values[0]
    for n in range(count):
        centre = passed + masses[n] / np.float32(2.0)
        if centre >= half:
            if n > 0:
                middle += (half - centre_before) / (centre - centre_before) * (values[n] - middle)
            return middle
        passed += masses[n]
        centre_before, middle = centre, values[n]
    return middle


MEDIAN = Method(_begin_median, _collect, _finish_median)
