"""A frame as dense registration sees it: what its light does not change, at every resolution, inside its field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError

UNIT = 127.0
"""Stored for a feature of 1."""

SMALLEST_SIDE = 24
"""Of the coarsest level, in its pixels."""

SMOOTHING = 1.2
"""Of the frame, in pixels: noise, and what compression leaves, is finer."""

COARSE_SMOOTHING = 0.7
NEIGHBOURHOODS = (21, 15, 11, 7)
"""Pixels of a level, finest first, over which light counts as even: its mean and its contrast are taken out. Coarse
levels have few pixels, and tell places apart by those that differ from their neighbours."""

NOISE = 1.5
"""Grey levels: what varies less is not blown up to full contrast. Halved with every level, as averages are."""

FLAT = 0.02
"""Contrasts a pixel: a slope that is too small to have a direction."""

Level: TypeAlias = NDArray[np.int8]
"""(h, w, 4): features of UNIT at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The features of a frame, finest level first; a level has half the pixels a side of the one before.

    Pixel (x, y) of level k has its centre at (2ᵏ x, 2ᵏ y) of the frame. The last axis of a level holds x and y of the
    gradient's direction (shorter than 1 where the frame is flat), the locally normalised intensity, and UNIT inside
    the field of view, 0 outside.
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
    """Return a level (h, w, 4); `light` is multiplied by how much of a pixel is `shown`."""
    smooth_shown = _smooth(shown, smoothing)
    smooth = _divide(_smooth(light, smoothing), smooth_shown)
    inside = (smooth_shown > 0.5).astype(np.float32)
    share = _mean(inside, side)
    mean = _divide(_mean(smooth * inside, side), share)
    flat = smooth - mean
    contrast = _divide(_mean(flat * flat * inside, side), share)
    intensity = flat / np.sqrt(contrast + np.float32(noise**2))
    # Slopes of what is left when the light is taken out: those of the light point to the same side in every frame.
    along_x = cv2.Sobel(intensity, cv2.CV_32F, 1, 0, ksize=3, scale=1 / 8)
    along_y = cv2.Sobel(intensity, cv2.CV_32F, 0, 1, ksize=3, scale=1 / 8)
    slope = along_x * along_x + along_y * along_y
    edges = np.asarray(cv2.erode(inside, np.ones((3, 3), np.uint8)), dtype=np.float32)
    usual = _divide(_mean(slope * edges, side), _mean(edges, side))
    length = np.sqrt(slope + usual + np.float32(FLAT**2))
    intensity /= np.sqrt(1 + (intensity / 2) ** 2)  # highlights count as bright, not as more than that
    level = np.empty((*shown.shape, 4), dtype=np.int8)
    level[..., 0] = np.rint(UNIT * along_x / length)
    level[..., 1] = np.rint(UNIT * along_y / length)
    level[..., 2] = np.rint(UNIT / 2 * intensity)
    field = np.zeros((shown.shape[0] + 2, shown.shape[1] + 2), dtype=np.uint8)
    field[1:-1, 1:-1] = shown > 0.5
    # Along the rim neighbourhoods are cut short, and what is taken for their light is not.
    level[..., 3] = UNIT * cv2.erode(field, _disc(max(2, side // 2 - 2)))[1:-1, 1:-1]
    return level


def _smooth(values: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(values, (0, 0), sigma), dtype=np.float32)


def _divide(sums: NDArray[np.float32], shares: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return means of what is inside, 0 where nothing is."""
    return np.asarray(sums / np.maximum(shares, np.float32(1e-6)), dtype=np.float32)


def _halve(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(cv2.pyrDown(values), dtype=np.float32)


def _mean(values: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    return np.asarray(cv2.blur(values, (side, side), borderType=cv2.BORDER_CONSTANT), dtype=np.float32)


def _disc(radius: int) -> NDArray[np.uint8]:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)), dtype=np.uint8)
