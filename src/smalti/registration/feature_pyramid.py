"""Compute light-independent features of a frame at every resolution (`prepare`), and warp them (`warp`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_sums
from smalti.errors import UsageError
from smalti.records import Homographies, Points

UNIT = 127.0
"""Stored value of a feature of 1."""

SMALLEST_SIDE = 24
"""Of the coarsest level, in its pixels."""

SMOOTHING = 1.2
"""Standard deviation of the frame's blur, in pixels: it removes noise and compression artefacts."""

COARSE_SMOOTHING = 0.7
NEIGHBOURHOODS = (21, 15, 11, 7)
"""Side of the neighbourhood, in pixels of a level, finest first. Its mean and contrast are removed as light.

Coarse levels have few pixels. They distinguish places by pixels that differ from their neighbours."""

NOISE = 1.5
"""Grey levels: weaker variations are not amplified to full contrast. Halved with every level, as averages are."""

FLAT = 0.02
"""Contrasts per pixel: smaller slopes have no direction."""

LEAST_DEPTH = 0.1
"""Share of the projective depth at the frame's centre: points below it, or behind the camera, are not visible."""

Level: TypeAlias = NDArray[np.int8]
"""(h, w, 4): features of UNIT at most."""

Planes: TypeAlias = NDArray[np.float32]
"""(4, h, w): the features of a level in their own units, and 1 inside the field of view, 0 outside."""

Pixels: TypeAlias = NDArray[np.float32]
"""(h, w, 4): the same, with the features of a pixel side by side."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The features of a frame, finest level first; each level has half the pixels a side of the one before.

    Pixel (x, y) of level k has its centre at (2ᵏ x, 2ᵏ y) of the frame. The last axis of a level holds x and y of the
    gradient's direction (shorter than 1 where the frame is flat), the locally normalised intensity, and UNIT inside the
    field of view, 0 outside.
    """

    levels: tuple[Level, ...]


def prepare(gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None) -> Prepared:
    """Compute the features of a frame (h, w), once; `mask` (h, w) is true inside the field of view."""
    if gray.ndim != 2 or min(gray.shape) < SMALLEST_SIDE:
        raise UsageError(f"a frame of shape {gray.shape} cannot be registered, give (h, w) of {SMALLEST_SIDE} or more")
    if mask is None:
        mask = np.ones(gray.shape, dtype=bool)
    if mask.shape != gray.shape:
        raise UsageError(f"a mask of shape {mask.shape} does not fit a frame of shape {gray.shape}")
    shown = mask.astype(np.float32)
    light = gray * shown
    levels: list[Level] = []
    smoothing, noise = SMOOTHING, NOISE
    while True:
        side = NEIGHBOURHOODS[min(len(levels), len(NEIGHBOURHOODS) - 1)]
        levels.append(_features(light, shown, smoothing, noise, side))
        if (min(shown.shape) + 1) // 2 < SMALLEST_SIDE:
            return Prepared(tuple(levels))
        light, shown = _halve(light), _halve(shown)
        smoothing, noise = COARSE_SMOOTHING, noise / 2


def _features(
    light: NDArray[np.float32], shown: NDArray[np.float32], smoothing: float, noise: float, side: int
) -> Level:
    """Return a level (h, w, 4); `light` is multiplied by `shown`, the share of each pixel inside the mask."""
    smooth_shown = _smooth(shown, smoothing)
    smooth = _divide(_smooth(light, smoothing), smooth_shown)
    inside = (smooth_shown > 0.5).astype(np.float32)
    share = _mean(inside, side)
    mean = _divide(_mean(smooth * inside, side), share)
    flat = smooth - mean
    contrast = _divide(_mean(flat * flat * inside, side), share)
    intensity = flat / np.sqrt(contrast + np.float32(noise**2))
    # Slopes without the light: slopes of the light point the same way in every frame.
    along_x = cv2.Sobel(intensity, cv2.CV_32F, 1, 0, ksize=3, scale=1 / 8)
    along_y = cv2.Sobel(intensity, cv2.CV_32F, 0, 1, ksize=3, scale=1 / 8)
    slope = along_x * along_x + along_y * along_y
    edges = np.asarray(cv2.erode(inside, np.ones((3, 3), np.uint8)), dtype=np.float32)
    usual = _divide(_mean(slope * edges, side), _mean(edges, side))
    length = np.sqrt(slope + usual + np.float32(FLAT**2))
    intensity /= np.sqrt(1 + (intensity / 2) ** 2)  # limits highlights
    level = np.empty((*shown.shape, 4), dtype=np.int8)
    level[..., 0] = np.rint(UNIT * along_x / length)
    level[..., 1] = np.rint(UNIT * along_y / length)
    level[..., 2] = np.rint(UNIT / 2 * intensity)
    field = np.zeros((shown.shape[0] + 2, shown.shape[1] + 2), dtype=np.uint8)
    field[1:-1, 1:-1] = shown > 0.5
    # At the rim, neighbourhoods are cut off, and their estimate of the light is wrong.
    level[..., 3] = UNIT * cv2.erode(field, _disc(max(2, side // 2 - 2)))[1:-1, 1:-1]
    return level


def _smooth(values: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(values, (0, 0), sigma), dtype=np.float32)


def _divide(sums: NDArray[np.float32], shares: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means over what is inside, 0 where nothing is."""
    return np.asarray(sums / np.maximum(shares, np.float32(1e-6)), dtype=np.float32)


def _halve(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(cv2.pyrDown(values), dtype=np.float32)


def _mean(values: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    return np.asarray(cv2.blur(values, (side, side), borderType=cv2.BORDER_CONSTANT), dtype=np.float32)


def _disc(radius: int) -> NDArray[np.uint8]:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), dtype=np.uint8)


def planes_of(level: Level) -> Planes:
    """Return a level as planes."""
    return np.ascontiguousarray(np.moveaxis(level, 2, 0), dtype=np.float32) * np.float32(1 / UNIT)


def pixels_of(level: Level) -> Pixels:
    """Return a level as pixels, to be warped."""
    return level * np.float32(1 / UNIT)


def warp(in_i: Pixels, i_from_j: Homographies, height: int, width: int) -> Planes:
    """Return i as j, (height, width), would show it, interpolated; gradient directions turn with the map (3, 3)."""
    depth = i_from_j[2] @ np.array([(width - 1) / 2, (height - 1) / 2, 1.0])
    warped = np.zeros((4, height, width), dtype=np.float32)
    _warp(in_i, np.ascontiguousarray(i_from_j / depth, dtype=np.float64), warped)
    return warped


def tangent_at(i_from_j: Homographies, point: Points) -> Homographies:
    """Return the affine map (3, 3) that approximates a map (3, 3) near a point (2,) of j."""
    x, y, depth = i_from_j @ np.array([*point, 1.0])
    at = np.array([x, y]) / depth
    linear = (i_from_j[:2, :2] - np.outer(at, i_from_j[2, :2])) / depth
    tangent: Homographies = np.eye(3)
    tangent[:2, :2], tangent[:2, 2] = linear, at - linear @ point
    return tangent


@compiled
def _columns_inside(i_from_j: Homographies, y: int, width: int, height: int, columns: int) -> tuple[int, int]:
    """Return the columns of row y, first and one after the last, that fall between pixels of i."""
    first, last = 0.0, columns - 1.0
    slope, at = i_from_j[:, 0], i_from_j[:, 1] * y + i_from_j[:, 2]
    # After multiplication by the depth, which is positive, all limits are linear: rise · x + least ≥ 0.
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
    """Return cosine and sine of the angle by which a map rotates the neighbourhood of a point of j."""
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
    # One address and unsigned offsets: the compiler then reads and weights the four features of a pixel at once.
    flat, right, down = in_i.reshape(-1), np.uint32(4), np.uint32(4 * width)
    one, two, three = np.uint32(1), np.uint32(2), np.uint32(3)
    step_x, step_y, step_z = np.float32(i_from_j[0, 0]), np.float32(i_from_j[1, 0]), np.float32(i_from_j[2, 0])
    for y in range(warped.shape[1]):
        begin, end = _columns_inside(i_from_j, y, width, height, warped.shape[2])
        start_x = np.float32(i_from_j[0, 0] * begin + i_from_j[0, 1] * y + i_from_j[0, 2])
        start_y = np.float32(i_from_j[1, 0] * begin + i_from_j[1, 1] * y + i_from_j[1, 2])
        start_z = np.float32(i_from_j[2, 0] * begin + i_from_j[2, 1] * y + i_from_j[2, 2])
        # Within a row the angle changes by a few degrees: interpolate linearly from one end to the other.
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
