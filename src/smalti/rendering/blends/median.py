"""The colour that most frames agree on: what floats or walks by vanishes (`median`).

Frames have equal votes but for their rims, where less lets them come and go without a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.blends.overlay import Method
from smalti.rendering.blends.painting import to_bytes
from smalti.rendering.sampling.feather import weight_at
from smalti.rendering.sampling.kernels import Bending, brighten, cubic, position, seen_position

VIEWS = 15
"""Frames that shall see every place; more of a video tell little more."""

SLOTS = 24
"""Colours that are kept of a pixel: those of the frames in which it lies deepest."""

_RIM = 0.2  # of the way from a frame's border to its middle


def _begin(shape: tuple[int, int], frames: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    slots = min(SLOTS, max(frames, 1))
    return np.zeros((*shape, slots, 3), dtype=np.uint8), np.zeros((*shape, slots), dtype=np.uint8)


def _finish(colours: NDArray[np.uint8], weights: NDArray[np.uint8]) -> NDArray[np.uint8]:
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
    feather: NDArray[np.float32],
    left: int,
    top: int,
    colours: NDArray[np.uint8],
    weights: NDArray[np.uint8],
) -> None:
    """Put a frame's colours into free slots, or into those of frames that see a pixel nearer to their border."""
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            x, y = seen_position(frame_from_canvas, bending, left + column, top + row)
            depth = weight_at(feather, x, y)
            if depth <= 0.0:
                continue
            weight = np.uint8(
                max(min(np.float32(255.0) * depth / np.float32(_RIM), np.float32(255.0)), np.float32(1.0))
            )
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
            colour[0] = _to_byte(red * bright * gains[0])
            colour[1] = _to_byte(green * bright * gains[1])
            colour[2] = _to_byte(blue * bright * gains[2])


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
    """Return where the cumulated mass is half of all, each value standing in the middle of its own."""
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


MEDIAN = Method(_begin, _collect, _finish)
