"""A level of one frame as another frame would see it."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_sums
from smalti.records import Homographies, Points
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


LEAST_DEPTH = 0.1
"""Of the frame's centre: what a map moves farther away than ten times that, or behind the camera, is not seen."""


def warp(in_i: Pixels, i_from_j: Homographies, height: int, width: int) -> Planes:
    """Return what j, (height, width), would see of i, interpolated; directions turn with the map (3, 3)."""
    depth = i_from_j[2] @ np.array([(width - 1) / 2, (height - 1) / 2, 1.0])
    warped = np.zeros((4, height, width), dtype=np.float32)
    _warp(in_i, np.ascontiguousarray(i_from_j / depth, dtype=np.float64), warped)
    return warped


def tangent_at(i_from_j: Homographies, point: Points) -> Homographies:
    """Return the affine map (3, 3) that a map (3, 3) is next to a point (2,) of j."""
    x, y, depth = i_from_j @ np.array([*point, 1.0])
    at = np.array([x, y]) / depth
    linear = (i_from_j[:2, :2] - np.outer(at, i_from_j[2, :2])) / depth
    tangent: Homographies = np.eye(3)
    tangent[:2, :2], tangent[:2, 2] = linear, at - linear @ point
    return tangent


@compiled
def _columns_inside(i_from_j: Homographies, y: int, width: int, height: int, columns: int) -> tuple[int, int]:
    """Return the columns of row y, first and one behind the last, that fall between pixels of i."""
    first, last = 0.0, columns - 1.0
    slope, at = i_from_j[:, 0], i_from_j[:, 1] * y + i_from_j[:, 2]
    # Multiplied by the depth, which is positive, all limits are linear: rise · x + least ≥ 0.
    for limit in range(5):
        axis = limit // 2
        rise, least = slope[axis], at[axis]
        if limit == 4:
            least -= LEAST_DEPTH
        elif limit % 2 == 1:
            side = (width if axis == 0 else height) - 1.01
            rise, least = side * slope[2] - rise, side * at[2] - least
        if rise > 0:
            first = max(first, -least / rise)
        elif rise < 0:
            last = min(last, -least / rise)
        elif least < 0:
            return 0, 0
    if first > last:
        return 0, 0
    begin = int(np.ceil(first))
    return begin, max(begin, int(np.floor(last)) + 1)


@compiled
def _turn(i_from_j: Homographies, x: float, y: float) -> tuple[float, float]:
    """Return cosine and sine of the angle by which a map turns what is next to a point of j."""
    depth = i_from_j[2, 0] * x + i_from_j[2, 1] * y + i_from_j[2, 2]
    at_x = (i_from_j[0, 0] * x + i_from_j[0, 1] * y + i_from_j[0, 2]) / depth
    at_y = (i_from_j[1, 0] * x + i_from_j[1, 1] * y + i_from_j[1, 2]) / depth
    cosine = i_from_j[0, 0] + i_from_j[1, 1] - at_x * i_from_j[2, 0] - at_y * i_from_j[2, 1]
    sine = i_from_j[1, 0] - i_from_j[0, 1] - at_y * i_from_j[2, 0] + at_x * i_from_j[2, 1]
    length = max(math.hypot(cosine, sine), 1e-12)
    return cosine / length, sine / length


@compiled_sums
def _warp(in_i: Pixels, i_from_j: Homographies, warped: Planes) -> None:
    height, width = in_i.shape[:2]
    # One address and unsigned steps from it: then the four features of a pixel are read and weighed at once.
    flat, right, down = in_i.reshape(-1), np.uint32(4), np.uint32(4 * width)
    one, two, three = np.uint32(1), np.uint32(2), np.uint32(3)
    step_x, step_y, step_z = np.float32(i_from_j[0, 0]), np.float32(i_from_j[1, 0]), np.float32(i_from_j[2, 0])
    for y in range(warped.shape[1]):
        begin, end = _columns_inside(i_from_j, y, width, height, warped.shape[2])
        start_x = np.float32(i_from_j[0, 0] * begin + i_from_j[0, 1] * y + i_from_j[0, 2])
        start_y = np.float32(i_from_j[1, 0] * begin + i_from_j[1, 1] * y + i_from_j[1, 2])
        start_z = np.float32(i_from_j[2, 0] * begin + i_from_j[2, 1] * y + i_from_j[2, 2])
        # Within a row the angle changes by a few degrees: a straight line from one end to the other will do.
        (cosine, sine), (last_cosine, last_sine) = _turn(i_from_j, begin, y), _turn(i_from_j, end, y)
        first_c, first_s = np.float32(cosine), np.float32(sine)
        step_c = np.float32((last_cosine - cosine) / max(end - begin, 1))
        step_s = np.float32((last_sine - sine) / max(end - begin, 1))
        direction_x, direction_y = warped[0, y, begin:end], warped[1, y, begin:end]
        intensity, field = warped[2, y, begin:end], warped[3, y, begin:end]
        for k in range(end - begin):
            along = np.float32(k)
            near = np.float32(1) / (start_z + step_z * along)
            at_x = max(near * (start_x + step_x * along), np.float32(0))
            at_y = max(near * (start_y + step_y * along), np.float32(0))
            c, s = first_c + step_c * along, first_s + step_s * along
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
