"""Kernels that sample a frame between its pixels, and the feather weight of a pixel.

OpenCV's sampling is not exact: its bicubic kernel (a = -0.75) moves a ramp by up to 0.05 pixels, and before version 5
it rounded positions to 1/32 pixel. The kernel here (Catmull and Rom, a = -0.5) reproduces every quadratic. A position
depends on the canvas pixel alone, so tiles meet exactly.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from smalti.compiled import compiled
from smalti.errors import InputError
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.canvas import Window

STEPS = 4096
"""Steps of the table of a lens. Interpolation between them errs by less than 1e-4 pixels, however strong the lens."""


class Bending(NamedTuple):
    """A lens in the form that kernels take, in frame pixels or in pixels that are scaled and shifted from these."""

    centre_x: float
    centre_y: float
    per_x: float  # table steps for each pixel of distance from the centre along x, before squaring
    per_y: float
    scales: NDArray[np.float64]  # factors of the distance from the centre, by its undistorted square, or empty


def bending_of(lens: Lens, pixels_from_frame: NDArray[np.float64] | None = None) -> Bending:
    """Return the lens in frame pixels, or in other pixels."""
    m = np.eye(3) if pixels_from_frame is None else pixels_from_frame
    (x, y), (scale_x, scale_y) = lens.outline.centre_x_y, (float(m[0, 0]), float(m[1, 1]))
    per_pixel, scales = _tabulate(lens)
    return Bending(
        scale_x * x + float(m[0, 2]), scale_y * y + float(m[1, 2]), per_pixel / scale_x, per_pixel / scale_y, scales
    )


@lru_cache(64)
def _tabulate(lens: Lens) -> tuple[float, NDArray[np.float64]]:
    """Return the root of the steps for each squared pixel, and distorted over undistorted distance at each step."""
    if lens.is_undistorted:
        return 0.0, np.empty(0)
    # A corner has the largest distance of all. Beyond it the last factor continues, which leads out of the frame too.
    farthest = float(np.linalg.norm(lens.rim - lens.outline.centre, axis=1).max())
    distances = farthest * np.sqrt(np.arange(STEPS + 1) / STEPS)
    distorted = lens.distort(lens.outline.centre + np.outer(distances, (1.0, 0.0)))
    scales = np.ones(STEPS + 1)
    scales[1:] = (distorted[1:, 0] - lens.outline.centre[0]) / distances[1:]
    return math.sqrt(STEPS) / farthest, scales


@compiled
def position(b_from_a: NDArray[np.float64], x: float, y: float) -> tuple[float, float]:
    """Map a point."""
    m = b_from_a
    scale = 1.0 / (m[2, 0] * x + m[2, 1] * y + m[2, 2])
    return (m[0, 0] * x + m[0, 1] * y + m[0, 2]) * scale, (m[1, 0] * x + m[1, 1] * y + m[1, 2]) * scale


@compiled
def distorted_position(
    pixels_from_canvas: NDArray[np.float64], bending: Bending, x: float, y: float
) -> tuple[float, float]:
    """Return the distorted frame pixel of a canvas point: first the map, then the lens."""
    undistorted_x, undistorted_y = position(pixels_from_canvas, x, y)
    last = len(bending.scales) - 1
    if last < 0:
        return undistorted_x, undistorted_y
    dx, dy = undistorted_x - bending.centre_x, undistorted_y - bending.centre_y
    step = (dx * bending.per_x) ** 2 + (dy * bending.per_y) ** 2
    scale = bending.scales[last]
    if step < last:
        first = int(step)
        scale = bending.scales[first] + (step - first) * (bending.scales[first + 1] - bending.scales[first])
    return bending.centre_x + scale * dx, bending.centre_y + scale * dy


@compiled
def brighten(flatness: NDArray[np.float32], table_from_pixels: NDArray[np.float64], x: float, y: float) -> np.float32:
    """Return the factor that undoes the shading at a pixel."""
    last = flatness.shape[0] - 1
    u = min(max(table_from_pixels[0, 0] * x + table_from_pixels[0, 1], 0.0), last - 1e-6)
    v = min(max(table_from_pixels[1, 0] * y + table_from_pixels[1, 1], 0.0), last - 1e-6)
    column, row = int(u), int(v)
    tx, ty = np.float32(u - column), np.float32(v - row)
    upper, lower = flatness[row], flatness[row + 1]
    above = upper[column] + tx * (upper[column + 1] - upper[column])
    below = lower[column] + tx * (lower[column + 1] - lower[column])
    flat: np.float32 = above + ty * (below - above)
    return flat


@compiled
def cubic(pixels: NDArray[np.uint8], x: float, y: float) -> tuple[np.float32, np.float32, np.float32]:
    """Return the bicubic interpolation between pixels. Beyond the border the colour of the border continues."""
    height, width = pixels.shape[0], pixels.shape[1]
    x, y = min(max(x, -0.5), width - 0.5), min(max(y, -0.5), height - 0.5)
    first_x, first_y = int(np.floor(x)), int(np.floor(y))
    x0, x1, x2, x3 = _cubic_weights(np.float32(x - first_x))
    wy = _cubic_weights(np.float32(y - first_y))
    red, green, blue = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    if 1 <= first_x < width - 2 and 1 <= first_y < height - 2:
        for tap in range(4):
            p = pixels[first_y - 1 + tap]
            w = wy[tap]
            a, b, c, d = first_x - 1, first_x, first_x + 1, first_x + 2
            red += w * (x0 * p[a, 0] + x1 * p[b, 0] + x2 * p[c, 0] + x3 * p[d, 0])
            green += w * (x0 * p[a, 1] + x1 * p[b, 1] + x2 * p[c, 1] + x3 * p[d, 1])
            blue += w * (x0 * p[a, 2] + x1 * p[b, 2] + x2 * p[c, 2] + x3 * p[d, 2])
        return red, green, blue
    for tap in range(4):
        p = pixels[min(max(first_y - 1 + tap, 0), height - 1)]
        w = wy[tap]
        a, b = min(max(first_x - 1, 0), width - 1), min(max(first_x, 0), width - 1)
        c, d = min(max(first_x + 1, 0), width - 1), min(max(first_x + 2, 0), width - 1)
        red += w * (x0 * p[a, 0] + x1 * p[b, 0] + x2 * p[c, 0] + x3 * p[d, 0])
        green += w * (x0 * p[a, 1] + x1 * p[b, 1] + x2 * p[c, 1] + x3 * p[d, 1])
        blue += w * (x0 * p[a, 2] + x1 * p[b, 2] + x2 * p[c, 2] + x3 * p[d, 2])
    return red, green, blue


@compiled
def linear(pixels: NDArray[np.uint8], x: float, y: float) -> tuple[np.float32, np.float32, np.float32]:
    """Return the bilinear interpolation, which is faster and enough where neighbours hardly differ."""
    height, width = pixels.shape[0], pixels.shape[1]
    x, y = min(max(x, 0.0), width - 1.0), min(max(y, 0.0), height - 1.0)
    first_x, first_y = min(int(x), max(width - 2, 0)), min(int(y), max(height - 2, 0))
    next_x, next_y = min(first_x + 1, width - 1), min(first_y + 1, height - 1)
    tx, ty = np.float32(x - first_x), np.float32(y - first_y)
    one = np.float32(1.0)
    w00, w01, w10, w11 = (one - tx) * (one - ty), tx * (one - ty), (one - tx) * ty, tx * ty
    p, q = pixels[first_y], pixels[next_y]
    return (
        w00 * p[first_x, 0] + w01 * p[next_x, 0] + w10 * q[first_x, 0] + w11 * q[next_x, 0],
        w00 * p[first_x, 1] + w01 * p[next_x, 1] + w10 * q[first_x, 1] + w11 * q[next_x, 1],
        w00 * p[first_x, 2] + w01 * p[next_x, 2] + w10 * q[first_x, 2] + w11 * q[next_x, 2],
    )


@compiled
def look_up(image: NDArray[np.uint8], x: float, y: float, values: NDArray[Any]) -> None:
    """Fill `values` (4,) with a reduced frame (h, w, 4), interpolated linearly between its cells."""
    height, width = image.shape[0], image.shape[1]
    x, y = min(max(x, 0.0), width - 1.0), min(max(y, 0.0), height - 1.0)
    column, row = min(int(x), max(width - 2, 0)), min(int(y), max(height - 2, 0))
    right, below = min(column + 1, width - 1), min(row + 1, height - 1)
    tx, ty = np.float32(x - column), np.float32(y - row)
    one = np.float32(1.0)
    for channel in range(4):
        upper = (one - tx) * image[row, column, channel] + tx * image[row, right, channel]
        lower = (one - tx) * image[below, column, channel] + tx * image[below, right, channel]
        values[channel] = (one - ty) * upper + ty * lower


@compiled
def _cubic_weights(t: np.float32) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Return the weights of the pixels at -1, 0, 1 and 2 for a position t between 0 and 1."""
    half, one = np.float32(0.5), np.float32(1.0)
    before = -half * t * (one - t) * (one - t)
    after = -half * t * t * (one - t)
    second = t * (half + t * (np.float32(2.0) - np.float32(1.5) * t))
    return before, one - before - second - after, second, after


# A covered pixel on the border itself still counts if no other frame is there.
_LEAST_WEIGHT = 1e-6


class Feather:
    """The weight of every pixel of a frame. All frames share the mask, and so the weights."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        if not mask.any():
            raise InputError("the mask hides every pixel of the frames: give one that leaves something to see")
        padded = np.pad(mask, 1)
        # Pixels have an extent: the border runs half a pixel before the centre of the first masked pixel.
        inside = _distance(padded) - 0.5
        signed = np.where(padded, inside, 0.5 - _distance(~padded))
        self.weights = np.asarray(signed / inside.max(), dtype=np.float32)
        """(h + 2, w + 2): 1 in the middle, 0 on the border, negative outside; with a border of one pixel."""
        self.is_solid = bool(mask.all())
        """Whether frames have no masked pixels."""
        self._masked, self._nearest_valid = _match_masked(mask)

    def weigh(
        self, frame_from_canvas: NDArray[np.float64], window: Window, lens: Lens | None = None
    ) -> NDArray[np.float32]:
        """Return the frame's weight (h, w) at the window's pixels: 0 outside the mask, positive inside."""
        weights = np.zeros((window.height, window.width), dtype=np.float32)
        height, width = self.weights.shape[0] - 2, self.weights.shape[1] - 2
        bending = bending_of(lens or Lens(Outline.of_pixels(width, height)))
        _fill(self.weights, frame_from_canvas, bending, window.left, window.top, weights)
        return weights

    def fill_masked(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Give masked pixels the colour of the nearest valid one, so that interpolation does not draw the mask."""
        if len(self._masked) == 0:
            return frame
        filled = frame.copy()
        colours = filled.reshape(-1, 3)
        colours[self._masked] = colours[self._nearest_valid]
        return filled


@compiled
def weight_at(weights: NDArray[np.float32], x: float, y: float) -> np.float32:
    """Return the weight at a point of the frame, 0 outside the mask."""
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    # The tolerance closes the gap that rounding could leave between frames that just meet.
    if not (-0.500001 <= x <= width - 0.499999 and -0.500001 <= y <= height - 0.499999):
        return np.float32(0.0)
    nearest_x = min(max(int(np.floor(x + 0.5)), 0), width - 1)
    nearest_y = min(max(int(np.floor(y + 0.5)), 0), height - 1)
    if weights[nearest_y + 1, nearest_x + 1] <= 0.0:
        return np.float32(0.0)
    first_x, first_y = int(np.floor(x)), int(np.floor(y))
    tx, ty = np.float32(x - first_x), np.float32(y - first_y)
    upper, lower = weights[first_y + 1], weights[first_y + 2]
    above = upper[first_x + 1] + tx * (upper[first_x + 2] - upper[first_x + 1])
    below = lower[first_x + 1] + tx * (lower[first_x + 2] - lower[first_x + 1])
    return max(above + ty * (below - above), np.float32(_LEAST_WEIGHT))


@compiled
def covers(weights: NDArray[np.float32], x: float, y: float) -> bool:
    """Tell whether a point of the frame lies inside the mask. This is the same as a positive weight, but faster."""
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    if not (-0.500001 <= x <= width - 0.499999 and -0.500001 <= y <= height - 0.499999):
        return False
    nearest_x = min(max(int(np.floor(x + 0.5)), 0), width - 1)
    nearest_y = min(max(int(np.floor(y + 0.5)), 0), height - 1)
    return bool(weights[nearest_y + 1, nearest_x + 1] > 0.0)


@compiled
def worth_at(worth: NDArray[np.uint8], cell: int, x: float, y: float) -> np.uint8:
    """Return what the cell of a survey (rows, columns) around a point of the frame is worth."""
    row = min(max(int(y + 0.5) // cell, 0), worth.shape[0] - 1)
    column = min(max(int(x + 0.5) // cell, 0), worth.shape[1] - 1)
    found: np.uint8 = worth[row, column]
    return found


@compiled
def _fill(
    weights: NDArray[np.float32],
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    left: int,
    top: int,
    sampled: NDArray[np.float32],
) -> None:
    for row in range(sampled.shape[0]):
        for column in range(sampled.shape[1]):
            x, y = distorted_position(frame_from_canvas, bending, left + column, top + row)
            sampled[row, column] = weight_at(weights, x, y)


def _distance(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return for every pixel of the mask the distance to the nearest pixel outside."""
    distances = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(distances, dtype=np.float32)


def _match_masked(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the masked pixels, and for each the nearest valid one, as flat indices."""
    hidden = np.flatnonzero(~mask)
    if len(hidden) == 0:
        return hidden, hidden
    rows, columns = ndimage.distance_transform_edt(~mask, return_distances=False, return_indices=True)
    nearest = np.ravel_multi_index((rows, columns), mask.shape)
    return hidden, nearest.ravel()[hidden]
