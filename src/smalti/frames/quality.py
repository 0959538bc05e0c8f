"""Which frames are of no use: black, white, without contrast, repeated or blurred."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

# Frames are judged at this size: fast, and free of most noise and most traces of compression.
_LONGER_SIDE = 320
_TILE = 16

_BLACK_BELOW = 20
_WHITE_ABOVE = 245
_LEAST_SPREAD = 6.0

# In pixels of the reduced image. Copies of one picture stay below these through strong compression; a scene
# that moves by a quarter of a pixel does not.
_REPEAT_CHANGE = 0.05
_REPEAT_LARGEST_CHANGE = 0.25
_FAINTEST_GRADIENT = 1.0

# Real sequences go down to a quarter of their neighbours' sharpness as the scene changes; an image smeared
# over a twentieth of its width falls below a twelfth.
_NEIGHBOURS_EACH_SIDE = 10
_FEWEST_NEIGHBOURS = 4
_BLUR_SHARPNESS = 0.08
_BLUR_DETAIL = 0.2


@dataclass(frozen=True, slots=True)
class FrameMeasure:
    """What is measured of one frame, in gray levels from 0 to 255.

    `dark` and `bright` are the 1st and the 99th percentile, `contrast` is the standard deviation.
    `sharpness` is the mean squared gradient; `detail` is its ratio to the variance, which falls with blur but
    not with a duller scene. `change` is how far the scene seems to have moved since the previous frame, in
    pixels of the reduced image, infinite if there is none; `largest_change` is that of the busiest tile.
    """

    brightness: float
    contrast: float
    dark: float
    bright: float
    sharpness: float
    detail: float
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
    inside = None if mask is None else _reduce_mask(mask)
    return _measure(_reduce(gray), inside, None if previous is None else _reduce(previous))


def measure_frames(
    images: Iterable[NDArray[np.uint8]], mask: NDArray[np.bool_] | None = None
) -> Iterator[FrameMeasure]:
    """Measure gray frames in their order, each against the last one that was not a repeat."""
    inside = None if mask is None else _reduce_mask(mask)
    previous: NDArray[np.uint8] | None = None
    for gray in images:
        image = _reduce(gray)
        measured = _measure(image, inside, previous)
        if not measured.is_repeat:
            previous = image
        yield measured


def unusable(measures: Sequence[FrameMeasure]) -> dict[int, str]:
    """Return the frames to set aside, by their place in the sequence, each with the reason."""
    reasons: dict[int, str] = {}
    original = 0
    for index, measured in enumerate(measures):
        if not measured.is_repeat:
            original = index
        if measured.bright < _BLACK_BELOW:
            reasons[index] = "black"
        elif measured.dark > _WHITE_ABOVE:
            reasons[index] = "white (overexposed)"
        elif measured.bright - measured.dark < _LEAST_SPREAD:
            reasons[index] = "no contrast"
        elif measured.is_repeat:
            reasons[index] = f"frozen (repeats frame {original})"
    return dict(sorted({**reasons, **_find_blurred(measures, reasons)}.items()))


def _find_blurred(measures: Sequence[FrameMeasure], others: dict[int, str]) -> dict[int, str]:
    """Judge each frame by its neighbours in time, which show about the same scene."""
    usable = [index for index in range(len(measures)) if index not in others]
    reasons: dict[int, str] = {}
    for place, index in enumerate(usable):
        around = usable[max(0, place - _NEIGHBOURS_EACH_SIDE) : place + _NEIGHBOURS_EACH_SIDE + 1]
        neighbours = [measures[other] for other in around if other != index]
        if len(neighbours) < _FEWEST_NEIGHBOURS:
            continue
        sharpness = measures[index].sharpness / np.median([other.sharpness for other in neighbours])
        detail = measures[index].detail / np.median([other.detail for other in neighbours])
        if sharpness < _BLUR_SHARPNESS and detail < _BLUR_DETAIL:
            percent = max(1, round(100 * float(sharpness)))
            reasons[index] = f"blurred beyond use (sharpness {percent} % of its neighbours')"
    return reasons


def _measure(
    image: NDArray[np.uint8], inside: NDArray[np.bool_] | None, previous: NDArray[np.uint8] | None
) -> FrameMeasure:
    inside = np.ones(image.shape, dtype=bool) if inside is None else inside
    counts = np.bincount(image[inside], minlength=256)
    total = int(counts.sum())
    if total == 0:
        return FrameMeasure(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, math.inf)
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
        change=change,
        largest_change=largest,
    )


def _reduce(gray: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Average whole blocks of pixels, by far the fastest way; what is left over at the edges does not count."""
    height, width = gray.shape
    block = math.ceil(max(height, width) / _LONGER_SIDE)
    if block == 1 or min(height, width) < block:
        return gray
    size = (width // block, height // block)
    reduced = cv2.resize(gray[: size[1] * block, : size[0] * block], size, interpolation=cv2.INTER_AREA)
    return np.asarray(reduced, dtype=np.uint8)


def _reduce_mask(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep the pixels that see nothing but the scene, and whose neighbours do too."""
    whole = (_reduce(np.where(mask, np.uint8(255), np.uint8(0))) == 255).astype(np.uint8)
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
