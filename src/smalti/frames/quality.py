"""Measure every frame, and set unusable ones aside: black, white, flat, hidden, repeated or blurred.

`unusable` decides; `measure_views` measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.frames.spots import find_spots

__all__ = ["BLANK", "ENOUGH_SPOTS", "FrameMeasure", "measure", "measure_frames", "measure_views", "unusable"]

_BLACK_BELOW = 20
_WHITE_ABOVE = 245
_LEAST_SPREAD = 6.0

BLANK = ("black", "white (overexposed)", "no contrast")
"""Reasons of frames in which nothing stands out from the noise: they cannot be registered in any way."""

ENOUGH_SPOTS = 20
"""Spots that stand out from a flat ground: with so many a frame can be registered, however dark or plain it is."""

# Spots on rougher ground are detail of a texture, such as a haze leaves.
_LARGEST_ROUGHNESS = 2.5

# Gray levels between the quartiles of a frame with a flat ground, at most: only in such frames spots are looked for.
_FLAT = 24

# In real sequences, sharpness falls to a quarter of the neighbours' as the scene changes. An image smeared over a
# twentieth of its width falls below a twelfth.
_NEIGHBOURS_EACH_SIDE = 10
_FEWEST_NEIGHBOURS = 4
_BLUR_SHARPNESS = 0.08
_BLUR_DETAIL = 0.2

# In a burst of spoilt frames, neighbours are spoilt too, so compare with the whole sequence. Frames of real sequences
# have at least 0.6 of the texture of its upper quartile; blur, fluid and haze leave at most a third.
_UPPER_QUARTILE = 0.75
_LEAST_TEXTURE = 0.4
_LEAST_VISIBLE = 0.3

# Frames are measured at this size: this is fast, and removes most noise and compression artefacts.
_LONGER_SIDE = 320
_TILE = 16

# Texture is measured at this size and below this standard deviation: hardly any noise and no shading is left.
_TEXTURE_SIDE = 120
_TEXTURE_PX = 2.0
_FAINTEST_LIGHT = 10.0

# Pixels of the reduced image. Copies of one picture stay below these even with strong compression; a scene that moves
# by a quarter of a pixel does not.
_REPEAT_CHANGE = 0.05
_REPEAT_LARGEST_CHANGE = 0.25
_FAINTEST_GRADIENT = 1.0


def unusable(measures: Sequence[FrameMeasure]) -> dict[int, str]:
    """Return the frames to set aside, by their number in the sequence, each with the reason."""
    reasons: dict[int, str] = {}
    original = 0
    usual_visible = _upper_quartile([measured.visible for measured in measures])
    for index, measured in enumerate(measures):
        if not measured.is_repeat:
            original = index
        if measured.visible < _LEAST_VISIBLE * usual_visible:
            reasons[index] = f"hidden ({_percent(measured.visible, usual_visible)} of the usual field can be seen)"
        elif measured.is_blank:
            reasons[index] = _say_blank(measured)
        elif measured.is_repeat:
            reasons[index] = f"frozen (repeats frame {original})"
    # A reason from the neighbours is more specific than one from the sequence, so it takes precedence.
    return dict(sorted({**_find_smooth(measures), **_find_blurred(measures, reasons), **reasons}.items()))


def _say_blank(measured: FrameMeasure) -> str:
    if measured.spots:
        return f"nearly empty ({measured.spots} {'spot stands' if measured.spots == 1 else 'spots stand'} out)"
    black, white, plain = BLANK
    if measured.bright < _BLACK_BELOW:
        return black
    return white if measured.dark > _WHITE_ABOVE else plain


def _find_smooth(measures: Sequence[FrameMeasure]) -> dict[int, str]:
    """Compare each frame with the sequence: fluid, haze or a long blur leave hardly any texture."""
    usual = _upper_quartile([measured.texture for measured in measures])
    return {
        index: f"almost no detail ({_percent(measured.texture, usual)} of the usual texture)"
        for index, measured in enumerate(measures)
        if measured.texture < _LEAST_TEXTURE * usual and measured.spots < ENOUGH_SPOTS
    }


def _find_blurred(measures: Sequence[FrameMeasure], others: dict[int, str]) -> dict[int, str]:
    """Compare each frame with its neighbours in time, which show about the same scene."""
    usable = [index for index in range(len(measures)) if index not in others]
    reasons: dict[int, str] = {}
    for place, index in enumerate(usable):
        around = usable[max(0, place - _NEIGHBOURS_EACH_SIDE) : place + _NEIGHBOURS_EACH_SIDE + 1]
        neighbours = [measures[other] for other in around if other != index]
        if len(neighbours) < _FEWEST_NEIGHBOURS:
            continue
        sharpness = measures[index].sharpness / np.median([other.sharpness for other in neighbours])
        detail = measures[index].detail / np.median([other.detail for other in neighbours])
        if sharpness < _BLUR_SHARPNESS and detail < _BLUR_DETAIL and measures[index].spots < ENOUGH_SPOTS:
            reasons[index] = f"too blurred (sharpness {_percent(float(sharpness))} of its neighbours')"
    return reasons


def _upper_quartile(values: Sequence[float]) -> float:
    return float(np.quantile(values, _UPPER_QUARTILE)) if values else 0.0


def _percent(value: float, usual: float = 1.0) -> str:
    return f"{max(1, round(100 * value / usual))} %"


@dataclass(frozen=True, slots=True)
class FrameMeasure:
    """The measures of one frame, in gray levels from 0 to 255.

    `dark` and `bright` are the 1st and the 99th percentile. `contrast` is the standard deviation. `sharpness` is the
    mean squared gradient. `detail` is its ratio to the variance, which falls with blur but not in a duller scene.
    `texture` is the standard deviation of the brightness about its local mean, as a share of it. `visible` is the share
    of the frame inside the mask. `change` is how far the scene seems to have moved since the previous frame, in pixels
    of the reduced image, infinite if there is none. `largest_change` is that of the tile with the most change. `spots`
    is how many points stand out from a flat ground; 0 if there is none.
    """

    brightness: float
    contrast: float
    dark: float
    bright: float
    sharpness: float
    detail: float
    texture: float
    visible: float
    change: float
    largest_change: float
    spots: int = 0

    @property
    def is_blank(self) -> bool:
        """Whether the frame shows nothing, whatever the others show: neither contrast nor spots."""
        plain = self.bright < _BLACK_BELOW or self.dark > _WHITE_ABOVE or self.bright - self.dark < _LEAST_SPREAD
        return plain and self.spots < ENOUGH_SPOTS

    @property
    def is_repeat(self) -> bool:
        """Whether the frame repeats the previous one, up to compression."""
        return self.change < _REPEAT_CHANGE and self.largest_change < _REPEAT_LARGEST_CHANGE


def measure(
    gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None, previous: NDArray[np.uint8] | None = None
) -> FrameMeasure:
    """Measure a frame (h, w) where the mask is True.

    `previous` is the last frame that was not itself a repeat. Compared with the frame just before, a slowly moving
    scene would count as frozen.
    """
    return _measure(_reduce(gray, _LONGER_SIDE), mask, None if previous is None else _reduce(previous, _LONGER_SIDE))


def measure_frames(
    images: Iterable[NDArray[np.uint8]], mask: NDArray[np.bool_] | None = None
) -> Iterator[FrameMeasure]:
    """Measure gray frames in their order, all with one mask; see `measure_views`."""
    return measure_views((gray, mask) for gray in images)


def measure_views(
    views: Iterable[tuple[NDArray[np.uint8], NDArray[np.bool_] | None]],
) -> Iterator[FrameMeasure]:
    """Measure gray frames in their order, each with its own mask, against the last one that was not a repeat."""
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
    dark, lower, upper, bright = np.searchsorted(
        np.cumsum(counts), (0.01 * total, 0.25 * total, 0.75 * total, 0.99 * total)
    )
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
        visible=total / image.size,
        change=change,
        largest_change=largest,
        spots=_count_spots(image, inside) if upper - lower < _FLAT else 0,
    )


def _count_spots(image: NDArray[np.uint8], inside: NDArray[np.bool_]) -> int:
    found = find_spots(image, inside)
    return len(found) if found.roughness < _LARGEST_ROUGHNESS else 0


def _measure_texture(image: NDArray[np.uint8], inside: NDArray[np.bool_]) -> float:
    """Return the standard deviation of the brightness about its local mean, as a share of that mean."""
    level = _reduce(image, _TEXTURE_SIDE).astype(np.float32)
    within = _reduce_mask(inside, _TEXTURE_SIDE)
    if not within.any():
        return 0.0
    # Outside there may be a black surround: give it no weight.
    weight = cv2.GaussianBlur(within.astype(np.float32), (0, 0), _TEXTURE_PX)
    mean = cv2.GaussianBlur(level * within, (0, 0), _TEXTURE_PX)[within] / weight[within]
    return float(np.std((level[within] - mean) / (mean + _FAINTEST_LIGHT)))


def _reduce(gray: NDArray[np.uint8], longer_side: int) -> NDArray[np.uint8]:
    """Average whole blocks of pixels, which is by far the fastest way; remainders at the edges are dropped."""
    height, width = gray.shape
    block = math.ceil(max(height, width) / longer_side)
    if block == 1 or min(height, width) < block:
        return gray
    size = (width // block, height // block)
    reduced = cv2.resize(gray[: size[1] * block, : size[0] * block], size, interpolation=cv2.INTER_AREA)
    return np.asarray(reduced, dtype=np.uint8)


def _reduce_mask(mask: NDArray[np.bool_], longer_side: int) -> NDArray[np.bool_]:
    """Keep the pixels that cover nothing but the scene, and whose neighbours do too."""
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
    """Return the change of the whole and of the tile with the most change: difference over gradient is a distance."""
    difference = cv2.absdiff(image, previous).astype(np.float32) * inside
    gradient = np.sqrt(squared_gradient) * inside
    change = float(difference.sum() / max(float(gradient.sum()), _FAINTEST_GRADIENT))
    tiles = (max(1, image.shape[1] // _TILE), max(1, image.shape[0] // _TILE))
    difference_of_tile = cv2.resize(difference, tiles, interpolation=cv2.INTER_AREA)
    gradient_of_tile = cv2.resize(gradient, tiles, interpolation=cv2.INTER_AREA)
    return change, float((difference_of_tile / (gradient_of_tile + _FAINTEST_GRADIENT)).max())
