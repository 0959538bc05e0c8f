"""What is measured of every frame, to tell whether it is of use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

# Frames are judged at this size: fast, and free of most noise and most traces of compression.
_LONGER_SIDE = 320
_TILE = 16

# Texture is judged at this one, and below this standard deviation: hardly any noise is left, and no shading either.
_TEXTURE_SIDE = 120
_TEXTURE_PX = 2.0
_FAINTEST_LIGHT = 10.0

# In pixels of the reduced image. Copies of one picture stay below these through strong compression; a scene
# that moves by a quarter of a pixel does not.
_REPEAT_CHANGE = 0.05
_REPEAT_LARGEST_CHANGE = 0.25
_FAINTEST_GRADIENT = 1.0


@dataclass(frozen=True, slots=True)
class FrameMeasure:
    """What is measured of one frame, in gray levels from 0 to 255.

    `dark` and `bright` are the 1st and the 99th percentile, `contrast` is the standard deviation.
    `sharpness` is the mean squared gradient; `detail` is its ratio to the variance, which falls with blur but
    not with a duller scene. `texture` is the standard deviation of the brightness about its local mean, as a share
    of it; `seen` is the share of the frame that is measured at all. `change` is how far the scene seems to have
    moved since the previous frame, in pixels of the reduced image, infinite if there is none; `largest_change` is
    that of the busiest tile.
    """

    brightness: float
    contrast: float
    dark: float
    bright: float
    sharpness: float
    detail: float
    texture: float
    seen: float
    change: float
    largest_change: float

    @property
    def is_repeat(self) -> bool:
        """Tell whether the frame is the previous one over again, up to compression."""
        return self.change < _REPEAT_CHANGE and self.largest_change < _REPEAT_LARGEST_CHANGE


def measure(
    gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None, previous: NDArray[np.uint8] | None = None
) -> FrameMeasure:
    """Measure a frame (h, w) where the mask is True.

    `previous` is the last frame that was not itself a repeat: against the frame just before, a scene that
    creeps would pass for frozen.
    """
    return _measure(_reduce(gray, _LONGER_SIDE), mask, None if previous is None else _reduce(previous, _LONGER_SIDE))


def measure_frames(
    images: Iterable[NDArray[np.uint8]], mask: NDArray[np.bool_] | None = None
) -> Iterator[FrameMeasure]:
    """Measure gray frames in their order, all where one mask is True; see `measure_views`."""
    return measure_views((gray, mask) for gray in images)


def measure_views(
    views: Iterable[tuple[NDArray[np.uint8], NDArray[np.bool_] | None]],
) -> Iterator[FrameMeasure]:
    """Measure gray frames in their order, each where its own mask is True, against the last that was not a repeat."""
    previous: NDArray[np.uint8] | None = None
    for gray, mask in views:
        image = _reduce(gray, _LONGER_SIDE)
        measured = _measure(image, mask, previous)
        if not measured.is_repeat:
            previous = image
        yield measured


def _measure(
    image: NDArray[np.uint8], mask: NDArray[np.bool_] | None, previous: NDArray[np.uint8] | None
) -> FrameMeasure:
    inside = np.ones(image.shape, dtype=bool) if mask is None else _reduce_mask(mask, _LONGER_SIDE)
    counts = np.bincount(image[inside], minlength=256)
    total = int(counts.sum())
    if total == 0:
        return FrameMeasure(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, math.inf)
    levels = np.arange(256)
    mean = float(counts @ levels) / total
    variance = float(counts @ (levels - mean) ** 2) / total
    dark, bright = np.searchsorted(np.cumsum(counts), (0.01 * total, 0.99 * total))
    squared = _squared_gradient(image)
    sharpness = float(squared[inside].mean())
    change = largest = math.inf
    if previous is not None:
        change, largest = _compare(image, previous, squared, inside)
    return FrameMeasure(
        brightness=mean,
        contrast=math.sqrt(variance),
        dark=float(dark),
        bright=float(bright),
        sharpness=sharpness,
        detail=sharpness / max(variance, 1.0),
        texture=_measure_texture(image, inside),
        seen=total / image.size,
        change=change,
        largest_change=largest,
    )


def _measure_texture(image: NDArray[np.uint8], inside: NDArray[np.bool_]) -> float:
    """Return the standard deviation of the brightness about its local mean, as a share of that."""
    level = _reduce(image, _TEXTURE_SIDE).astype(np.float32)
    within = _reduce_mask(inside, _TEXTURE_SIDE)
    if not within.any():
        return 0.0
    # Outside there may be a black surround: it counts for nothing.
    weight = cv2.GaussianBlur(within.astype(np.float32), (0, 0), _TEXTURE_PX)
    mean = cv2.GaussianBlur(level * within, (0, 0), _TEXTURE_PX)[within] / weight[within]
    return float(np.std((level[within] - mean) / (mean + _FAINTEST_LIGHT)))


def _reduce(gray: NDArray[np.uint8], longer_side: int) -> NDArray[np.uint8]:
    """Average whole blocks of pixels, by far the fastest way; what is left over at the edges does not count."""
    height, width = gray.shape
    block = math.ceil(max(height, width) / longer_side)
    if block == 1 or min(height, width) < block:
        return gray
    size = (width // block, height // block)
    reduced = cv2.resize(gray[: size[1] * block, : size[0] * block], size, interpolation=cv2.INTER_AREA)
    return np.asarray(reduced, dtype=np.uint8)


def _reduce_mask(mask: NDArray[np.bool_], longer_side: int) -> NDArray[np.bool_]:
    """Keep the pixels that see nothing but the scene, and whose neighbours do too."""
    whole = (_reduce(np.where(mask, np.uint8(255), np.uint8(0)), longer_side) == 255).astype(np.uint8)
    inner = cv2.erode(whole, np.ones((3, 3), dtype=np.uint8), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(inner, dtype=bool)


def _squared_gradient(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    across = cv2.Sobel(image, cv2.CV_32F, 1, 0, scale=1 / 8)
    down = cv2.Sobel(image, cv2.CV_32F, 0, 1, scale=1 / 8)
    return np.asarray(across * across + down * down, dtype=np.float32)


def _compare(
    image: NDArray[np.uint8],
    previous: NDArray[np.uint8],
    squared_gradient: NDArray[np.float32],
    inside: NDArray[np.bool_],
) -> tuple[float, float]:
    """Return the change of the whole and of the busiest tile: difference over gradient is about a distance."""
    difference = cv2.absdiff(image, previous).astype(np.float32) * inside
    gradient = np.sqrt(squared_gradient) * inside
    change = float(difference.sum() / max(float(gradient.sum()), _FAINTEST_GRADIENT))
    tiles = (max(1, image.shape[1] // _TILE), max(1, image.shape[0] // _TILE))
    difference_of_tile = cv2.resize(difference, tiles, interpolation=cv2.INTER_AREA)
    gradient_of_tile = cv2.resize(gradient, tiles, interpolation=cv2.INTER_AREA)
    return change, float((difference_of_tile / (gradient_of_tile + _FAINTEST_GRADIENT)).max())
