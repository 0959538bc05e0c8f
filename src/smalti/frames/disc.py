"""Find the round field of view of a single frame of a scope: a disc on a dark surround, maybe with a notch."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.frames.pixels import Region, edge_of, keep_large_parts, reach, shrink

# The rim is found at this size: this is fast, and exact to a fraction of a reduced pixel.
_LONGER_SIDE = 160

# In gray levels. A surround may glow a little, but the scene is brighter.
_SURROUND_PERCENTILE, _SCENE_PERCENTILE = 2, 90
_SURROUND_BELOW = 40.0
_LEAST_STEP = 20.0
_RIM_STEP = 0.12  # share of the way from surround to scene: the light falls off towards the rim

_RAYS = 96
_RIM_TOLERANCE = 1.5  # reduced pixels
_LEAST_ARC = 0.25  # share of the rays that end on the circle,
_LEAST_AGREEMENT = 0.6  # and share of those that end inside the picture
_RADII = (0.15, 1.0)  # share of the picture's longer side


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle in pixels; radius 0 means none."""

    x: float
    y: float
    radius: float


def find_own_field(gray: NDArray[np.uint8], margin: int) -> Region:
    """Return where one frame (h, w) shows the scene: its own disc, without dark parts at the rim.

    A margin, in pixels, is left out along the rim. A frame without a round rim is all scene.
    """
    height, width = gray.shape
    factor = max(1.0, max(height, width) / _LONGER_SIDE)
    size = (max(1, round(width / factor)), max(1, round(height / factor)))
    lit = _find_lit(np.asarray(cv2.resize(gray, size, interpolation=cv2.INTER_AREA), dtype=np.uint8))
    circle = _fit_circle(_find_rim(lit), max(size))
    if not circle.radius:
        return np.ones(gray.shape, dtype=bool)
    centre = ((circle.x + 0.5) * factor - 0.5, (circle.y + 0.5) * factor - 0.5)
    margin += round(factor / 2)  # a reduced pixel counts as lit if a part of it is
    disc = _draw(gray.shape, Circle(*centre, circle.radius * factor - margin))
    shown = cv2.resize(lit.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST)
    return disc & shrink(np.asarray(shown, dtype=bool), margin)


def _find_lit(small: NDArray[np.uint8]) -> Region:
    """Return all but the dark parts that reach the picture's edge; everything if there are none."""
    surround, scene = np.percentile(small, (_SURROUND_PERCENTILE, _SCENE_PERCENTILE))
    if surround > _SURROUND_BELOW or scene - surround < _LEAST_STEP:
        return np.ones(small.shape, dtype=bool)
    dark = small < surround + _RIM_STEP * (scene - surround)
    return keep_large_parts(~reach(dark, edge_of(small.shape)), least=1.0)


def _find_rim(lit: Region) -> NDArray[np.float64]:
    """Return where rays from the middle of the lit part finally leave it, (_RAYS, 2); NaN at the picture's edge."""
    depth = cv2.distanceTransform(cv2.copyMakeBorder(lit.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT), 2, 3)
    _, _, _, middle = cv2.minMaxLoc(depth)
    angles = np.arange(_RAYS) * (2 * np.pi / _RAYS)
    steps = np.arange(0.0, np.hypot(*lit.shape), 0.5)
    x = middle[0] - 1 + np.cos(angles)[:, None] * steps
    y = middle[1] - 1 + np.sin(angles)[:, None] * steps
    height, width = lit.shape
    within = (x > -0.5) & (x < width - 0.5) & (y > -0.5) & (y < height - 0.5)
    shown = within & lit[np.clip(np.rint(y), 0, height - 1).astype(int), np.clip(np.rint(x), 0, width - 1).astype(int)]
    last = len(steps) - 1 - np.argmax(shown[:, ::-1], axis=1)
    last_within = within.sum(axis=1) - 1
    rays = np.arange(_RAYS)
    rim = np.stack([x[rays, last] + 0.25 * np.cos(angles), y[rays, last] + 0.25 * np.sin(angles)], axis=1)
    rim[last >= last_within - 2] = np.nan
    return rim


def _fit_circle(rim: NDArray[np.float64], longer_side: int) -> Circle:
    """Fit a circle to the points that agree on one; points around a dark part at the rim are outliers."""
    none = Circle(0.0, 0.0, 0.0)
    free = np.isfinite(rim[:, 0])
    if free.sum() < _LEAST_ARC * _RAYS:
        return none
    points = rim[free]
    count = len(points)
    best, inliers = none, np.zeros(count, dtype=bool)
    for start in range(0, count // 3 + 1, 3):
        circle = _solve_circle(points[[start % count, (start + count // 3) % count, (start + 2 * count // 3) % count]])
        near = _distances(circle, points) < _RIM_TOLERANCE
        if near.sum() > inliers.sum():
            best, inliers = circle, near
    for _ in range(2):
        if inliers.sum() < max(_LEAST_ARC * _RAYS, _LEAST_AGREEMENT * count):
            return none
        best = _solve_circle(points[inliers])
        inliers = _distances(best, points) < _RIM_TOLERANCE
    low, high = _RADII
    return best if low * longer_side <= best.radius <= high * longer_side else none


def _solve_circle(points: NDArray[np.float64]) -> Circle:
    """Return the algebraic least-squares circle: x² + y² = 2ax + 2by + c."""
    middle = points.mean(axis=0)
    x, y = (points - middle).T
    solution = np.linalg.lstsq(np.stack([2 * x, 2 * y, np.ones_like(x)], axis=1), x * x + y * y, rcond=None)[0]
    a, b, c = (float(value) for value in solution)
    return Circle(a + float(middle[0]), b + float(middle[1]), float(np.sqrt(max(c + a * a + b * b, 0.0))))


def _distances(circle: Circle, points: NDArray[np.float64]) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = np.abs(np.hypot(*(points - [circle.x, circle.y]).T) - circle.radius)
    return distances


def _draw(shape: tuple[int, ...], circle: Circle) -> Region:
    disc = np.zeros(shape, dtype=np.uint8)
    # OpenCV takes sixteenths of a pixel.
    centre = (round(16 * circle.x), round(16 * circle.y))
    cv2.circle(disc, centre, max(0, round(16 * circle.radius)), 1, thickness=-1, shift=4)
    return disc.astype(bool)
