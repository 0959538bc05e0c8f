"""Find the centre line of a vessel under a stroke that a person drew, to a fraction of a pixel.

A vessel is a line that is darker or brighter than both its sides. Along the stroke, a path of least cost follows the
second derivative across it, at the scale where this is strongest. Each point of the path then moves to where the first
derivative across the vessel is zero. Image noise moves this place by the noise of the first derivative over the second
one; smoothing along the line reduces it, and the standard deviation of every point follows from both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, gaussian_filter1d, map_coordinates
from scipy.signal import savgol_filter

from smalti.records import Points

SCALES = (1.2, 1.8, 2.7, 4.0, 6.0)
"""Standard deviations of the derivatives' Gaussian, px: about half the width of the vessels that are found."""

REACH = 10.0
"""How far from the stroke the vessel may lie, px: three times the error of a quick hand."""

SURROUNDINGS = 24.0
"""How far from the stroke the picture is compared with what is under the stroke, px."""

CELLS_PER_PX = 2  # of the search across the stroke
STEEPEST = 2  # cells by which the path may go aside in a pixel
BENDING, LEAVING = 0.08, 0.25  # cost of a cell aside, and of the way to the end of the reach; the gain is 1 at most
STROKE_SMOOTHING = 3.0  # px along the stroke: the tremor of a hand
SHORTEST_PX = 20.0
LEAST_RATIO = 1.5
"""Least median response on the path, in standard deviations of the responses around it. Paths of least cost through
noise and through texture without lines stay below 1 (`tests/registration/test_vessels.py`)."""

ROUNDS, LONGEST_STEP, FARTHEST = 6, 1.0, 3.0  # of the refinement, and its largest way from the path, px
SMOOTHING_LENGTH = 6.0  # window of the smoothing along the line, in scales
ERODED = 2.0  # scales next to what the mask hides
FLOOR_PX = 0.1
"""Light and what lies beside a vessel move its centre line by about this, however little noise there is."""

LONGEST = 4.0  # in widths and heights of the frame, of a stroke

LARGEST_SIGMA = 1.5  # px; a line that is less certain is none
LEAST_SHARE = 0.7  # of the stroke, under which a vessel must be


@dataclass(frozen=True, slots=True, eq=False)
class Vessel:
    """The centre line of a vessel, a point a pixel; or the stroke, and why nothing was found under it."""

    found: bool
    points: Points  # (n, 2)
    sigma_px: NDArray[np.float64]  # (n,), across the line
    window_px: float  # points that lie closer together share their noise
    reason: str

    @property
    def length_px(self) -> float:
        """How long the line is."""
        return float(len(self.points) - 1)


def trace_vessel(image: NDArray[np.uint8], stroke: Points, mask: NDArray[np.bool_] | None = None) -> Vessel:
    """Find the vessel under a stroke (n, 2) in a frame (h, w); `mask` tells which pixels show the scene."""
    size = np.array(image.shape[::-1], dtype=np.float64)
    line = np.clip(stroke, -size, 2.0 * size)

    def refuse(reason: str) -> Vessel:
        return Vessel(False, line, np.full(len(line), np.inf), 0.0, reason)

    if len(line) and np.linalg.norm(np.diff(line, axis=0), axis=1).sum() > LONGEST * size.sum():
        return refuse("the stroke is too long, draw once along a vessel")
    line = resample(line)
    if len(line) < SHORTEST_PX:
        return refuse(f"the stroke is too short, draw along at least {SHORTEST_PX:.0f} px of the vessel")
    line = resample(gaussian_filter1d(line, STROKE_SMOOTHING, axis=0, mode="nearest"))
    area = _Area.around(image, line, mask)
    if not area.visible.any():
        return refuse("nothing of the scene is visible under the stroke; draw where it is")
    found = max((_follow(area, line, sign) for sign in (1.0, -1.0)), key=lambda path: path.ratio)
    if found.ratio < LEAST_RATIO:
        return refuse("there is no clear vessel under the stroke; draw along one, or mark points")
    return _refine(area, found) or refuse(
        "the vessel is too faint or too interrupted to be followed; draw along another"
    )


def resample(line: Points) -> Points:
    """Return a polyline (n, 2) with a point a pixel."""
    line = np.asarray(line, dtype=np.float64)
    if len(line) < 2:
        return line
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    line, steps = line[np.concatenate([[True], steps > 0])], steps[steps > 0]
    along = np.concatenate([[0.0], np.cumsum(steps)])
    at = np.linspace(0.0, along[-1], int(along[-1]) + 1)
    return np.column_stack([np.interp(at, along, line[:, axis]) for axis in (0, 1)])


def normals_of(line: Points) -> NDArray[np.float64]:
    """Return the unit vectors (n, 2) across a polyline (n, 2)."""
    steps = np.gradient(line, axis=0)[:, ::-1] * (-1.0, 1.0)
    return np.asarray(steps / np.maximum(np.linalg.norm(steps, axis=1, keepdims=True), 1e-12))


@dataclass(frozen=True, eq=False)
class _Area:
    """The part of a frame around a stroke."""

    pixels: NDArray[np.float64]
    visible: NDArray[np.bool_]
    first: NDArray[np.float64]  # (2,): its first pixel in the frame

    @classmethod
    def around(cls, image: NDArray[np.uint8], line: Points, mask: NDArray[np.bool_] | None) -> _Area:
        margin = SURROUNDINGS + 3 * SCALES[-1]
        size = np.array(image.shape[::-1])
        first = np.clip(np.floor(line.min(axis=0) - margin), 0, size - 1).astype(int)
        last = np.clip(np.ceil(line.max(axis=0) + margin), first, size - 1).astype(int)
        part = (slice(first[1], last[1] + 1), slice(first[0], last[0] + 1))
        pixels = image[part].astype(np.float64)
        visible = np.ones(pixels.shape, dtype=np.bool_) if mask is None else mask[part]
        if visible.any() and not visible.all():
            # The rim of the field must not be a line: beyond it, the picture goes on as the mean around it.
            weight = gaussian_filter(visible.astype(np.float64), SCALES[-1])
            mean = gaussian_filter(np.where(visible, pixels, 0.0), SCALES[-1]) / np.maximum(weight, 1e-6)
            pixels = np.where(visible, pixels, np.where(weight > 1e-6, mean, pixels[visible].mean()))
        return cls(pixels, visible, first.astype(np.float64))

    @cached_property
    def noise(self) -> float:
        """Standard deviation of a pixel."""
        # The mixed second difference is 0 in shading and along edges; the median ignores most of the detail.
        rough = cv2.filter2D(self.pixels, -1, np.outer((1.0, -2.0, 1.0), (1.0, -2.0, 1.0)))
        # Rounding to whole grey levels is noise too, where the median does not see it.
        return math.hypot(float(np.median(np.abs(rough[self.visible]))) / 0.6745 / 6.0, 12**-0.5)

    def derivative(self, scale: float, by_x: int, by_y: int) -> NDArray[np.float64]:
        return np.asarray(gaussian_filter(self.pixels, scale, order=(by_y, by_x), mode="nearest"))

    def sample(self, field: NDArray[np.float64], points: Points, order: Literal[1, 3] = 1) -> NDArray[np.float64]:
        """Return values of a field at points (..., 2) of the frame."""
        row_column = np.moveaxis(points - self.first, -1, 0)[::-1]
        return np.asarray(map_coordinates(field, row_column, order=order, mode="nearest"))

    def seen(self, points: Points, scale: float) -> NDArray[np.bool_]:
        """Tell which points (..., 2) lie well inside the scene."""
        side = 2 * math.ceil(ERODED * scale) + 1
        inner = cv2.erode(self.visible.astype(np.uint8), np.ones((side, side), np.uint8))
        at = points - self.first
        inside = ((at >= 0) & (at <= np.array(self.pixels.shape[::-1]) - 1)).all(axis=-1)
        return np.asarray(inside & (self.sample(inner.astype(np.float64), points) > 0.99))


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """A line along a vessel to half a pixel."""

    points: Points
    scale: float
    sign: float  # 1: darker than its sides
    ratio: float  # its response, over the standard deviation of those around it


def _follow(area: _Area, line: Points, sign: float) -> _Path:
    """Return the path of least cost along a stroke: the most response, with little bending and near the stroke."""
    across = np.arange(-SURROUNDINGS, SURROUNDINGS + 1e-9, 1 / CELLS_PER_PX)
    near = np.abs(across) <= REACH
    normals = normals_of(line)
    strip = line[:, None] + across[:, None] * normals[:, None]
    responses, seen = [], []
    for scale in SCALES:
        xx, xy, yy = (area.sample(area.derivative(scale, *by), strip) for by in ((2, 0), (1, 1), (0, 2)))
        (n_x, n_y) = normals.T[:, :, None]
        over = n_x**2 * xx + 2 * n_x * n_y * xy + n_y**2 * yy
        beside = n_y**2 * xx - 2 * n_x * n_y * xy + n_x**2 * yy
        # On a blob both are alike; scale^1.5 makes a line's response largest where the scale is that of the line.
        response = scale**1.5 * (sign * over - np.abs(beside))
        seen.append(area.seen(strip, scale))
        responses.append(np.where(seen[-1], response, 0.0))
    strongest = np.maximum(np.max(responses, axis=0), 0.0)[:, near]
    best = max(float(np.quantile(strongest, 0.98)), 1e-9)
    cost = 1.0 - np.minimum(strongest / best, 1.0) + LEAVING * (across[near] / REACH) ** 2
    cells = np.flatnonzero(near)[_cheapest(cost)]
    rows = np.arange(len(line))
    medians = [float(np.median(response[rows, cells])) for response in responses]
    chosen = int(np.argmax(medians))
    around = responses[chosen][:, ~near][seen[chosen][:, ~near]]
    if len(around) < len(line):
        return _Path(line, SCALES[chosen], sign, 0.0)
    spread = 1.4826 * float(np.median(np.abs(around - np.median(around))))
    return _Path(strip[rows, cells], SCALES[chosen], sign, medians[chosen] / max(spread, 1e-9))


def _cheapest(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return a cell for every row of a strip (rows, cells), so that the path over them costs least."""
    rows, cells = cost.shape
    moves = np.arange(-STEEPEST, STEEPEST + 1)
    total, came = cost[0], np.zeros((rows, cells), dtype=np.int64)
    for row in range(1, rows):
        padded = np.pad(total, STEEPEST, constant_values=np.inf)
        options = np.stack([padded[STEEPEST + move : STEEPEST + move + cells] + BENDING * move**2 for move in moves])
        came[row] = np.argmin(options, axis=0)
        total = cost[row] + options[came[row], np.arange(cells)]
    path = np.empty(rows, dtype=np.int64)
    path[-1] = np.argmin(total)
    for row in range(rows - 1, 0, -1):
        path[row - 1] = path[row] + moves[came[row, path[row]]]
    return path


def _refine(area: _Area, path: _Path) -> Vessel | None:
    """Move a path to the vessel's centre line; None where it cannot be followed."""
    scale, window = path.scale, 2 * math.ceil(SMOOTHING_LENGTH * path.scale / 2) + 1
    fields = {by: area.derivative(scale, *by) for by in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))}
    line = resample(gaussian_filter1d(path.points, scale, axis=0, mode="nearest"))
    window = min(window, len(line) - 1 + len(line) % 2)
    begun = line
    for _ in range(ROUNDS):
        n_x, n_y = normals_of(line).T
        x, y, xx, xy, yy = (area.sample(field, line, order=3) for field in fields.values())
        slope = n_x * x + n_y * y
        bend = path.sign * (n_x**2 * xx + 2 * n_x * n_y * xy + n_y**2 * yy)
        is_good = (bend > 0) & area.seen(line, scale)
        if is_good.mean() < LEAST_SHARE:
            return None
        bend = np.maximum(bend, 0.3 * float(np.median(bend[is_good])))
        step = np.clip(-path.sign * slope / bend, -LONGEST_STEP, LONGEST_STEP)
        line = line + np.where(is_good, step, 0.0)[:, None] * np.column_stack([n_x, n_y])
        # A round at a time: the normals of the next one are those of a smooth line.
        line = savgol_filter(line, window, 2, axis=0, mode="interp")
    is_good &= np.abs(np.sum((line - begun) * np.column_stack([n_x, n_y]), axis=1)) < FARTHEST
    noise = area.noise / math.sqrt(8 * math.pi) / scale**2 / bend
    sigma = np.hypot(_smoothed_noise(noise, window, scale), FLOOR_PX)
    first, last = np.flatnonzero(is_good)[[0, -1]] if is_good.any() else (0, 0)
    kept = slice(first, last + 1)
    if is_good.mean() < LEAST_SHARE or last - first + 1 < SHORTEST_PX or np.median(sigma[kept]) > LARGEST_SIGMA:
        return None
    return Vessel(True, line[kept], sigma[kept], float(window), "")


def _smoothed_noise(noise: NDArray[np.float64], window: int, scale: float) -> NDArray[np.float64]:
    """Return the standard deviation of points (n,) after smoothing, from that before.

    The first derivative at two places d apart along the line shares the noise by exp(-d² / (4 scale²)).
    """
    smoothing = savgol_filter(np.eye(len(noise)), window, 2, axis=0, mode="interp")
    at = np.arange(len(noise))
    shared = np.exp(-((at[:, None] - at) ** 2) / (4 * scale**2))
    rows = smoothing * noise
    return np.asarray(np.sqrt(np.maximum(np.sum((rows @ shared) * rows, axis=1), 0.0)))
