"""A level of one frame as another frame would see it."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_sums
from smalti.records import Transforms
from smalti.registration.pyramid import UNIT, Level

Planes: TypeAlias = NDArray[np.float32]
"""(4, h, w): the features of a level in their own units, and 1 inside the field of view, 0 outside."""

Pixels: TypeAlias = NDArray[np.float32]
"""(h, w, 4): the same, with the features of a pixel side by side."""


def planes_of(level: Level) -> Planes:
    """Return a level as planes."""
    return np.ascontiguousarray(np.moveaxis(level, 2, 0), dtype=np.float32) * np.float32(1 / UNIT)


def pixels_of(level: Level) -> Pixels:
    """Return a level as pixels, to be warped."""
    return level * np.float32(1 / UNIT)


def warp(in_i: Pixels, i_from_j: Transforms, height: int, width: int) -> Planes:
    """Return what j, (height, width), would see of i, interpolated; directions turn with the map (2, 3)."""
    linear = i_from_j[:, :2]
    angle = math.atan2(linear[1, 0] - linear[0, 1], linear[0, 0] + linear[1, 1])
    warped = np.zeros((4, height, width), dtype=np.float32)
    _warp(in_i, np.array(i_from_j, dtype=np.float64), math.cos(angle), math.sin(angle), warped)
    return warped


@compiled
def _columns_inside(i_from_j: Transforms, y: int, width: int, height: int, columns: int) -> tuple[int, int]:
    """Return the columns of row y, first and one behind the last, that fall between pixels of i."""
    first, last = 0.0, columns - 1.0
    for axis, side in enumerate((width, height)):
        slope, at = i_from_j[axis, 0], i_from_j[axis, 1] * y + i_from_j[axis, 2]
        if abs(slope) < 1e-9:
            slope = 1e-9
        here, there = -at / slope, (side - 1.01 - at) / slope
        first, last = max(first, min(here, there)), min(last, max(here, there))
    begin = int(np.ceil(first))
    return begin, max(begin, int(np.floor(last)) + 1)


@compiled_sums
def _warp(in_i: Pixels, i_from_j: Transforms, cosine: float, sine: float, warped: Planes) -> None:
    height, width = in_i.shape[:2]
    # One address and unsigned steps from it: then the four features of a pixel are read and weighed at once.
    flat, right, down = in_i.reshape(-1), np.uint32(4), np.uint32(4 * width)
    one, two, three = np.uint32(1), np.uint32(2), np.uint32(3)
    c, s = np.float32(cosine), np.float32(sine)
    step_x, step_y = np.float32(i_from_j[0, 0]), np.float32(i_from_j[1, 0])
    for y in range(warped.shape[1]):
        begin, end = _columns_inside(i_from_j, y, width, height, warped.shape[2])
        start_x = np.float32(i_from_j[0, 0] * begin + i_from_j[0, 1] * y + i_from_j[0, 2])
        start_y = np.float32(i_from_j[1, 0] * begin + i_from_j[1, 1] * y + i_from_j[1, 2])
        direction_x, direction_y = warped[0, y, begin:end], warped[1, y, begin:end]
        intensity, field = warped[2, y, begin:end], warped[3, y, begin:end]
        for k in range(end - begin):
            at_x = max(start_x + step_x * np.float32(k), np.float32(0))
            at_y = max(start_y + step_y * np.float32(k), np.float32(0))
            left, top = np.uint32(at_x), np.uint32(at_y)
            u, v = at_x - np.float32(left), at_y - np.float32(top)
            p = top * down + left * right
            q, r, t = p + right, p + down, p + down + right
            wt = u * v
            wq, wr = u - wt, v - wt
            wp = np.float32(1) - u - wr
            x = wp * flat[p] + wq * flat[q] + wr * flat[r] + wt * flat[t]
            z = wp * flat[p + one] + wq * flat[q + one] + wr * flat[r + one] + wt * flat[t + one]
            bright = wp * flat[p + two] + wq * flat[q + two] + wr * flat[r + two] + wt * flat[t + two]
            inside = wp * flat[p + three] + wq * flat[q + three] + wr * flat[r + three] + wt * flat[t + three]
            direction_x[k] = c * x + s * z
            direction_y[k] = c * z - s * x
            intensity[k] = bright
            field[k] = np.float32(1) if inside > np.float32(0.999) else np.float32(0)
