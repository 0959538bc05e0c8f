"""Find what hides the scene in a frame: specular highlights (`Highlights`) and instruments (`Palette`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.frames.pixels import Region, edge_of, grow, label_parts, shrink

# Gray levels: highlights are nearly white, and brighter than the bright parts of the scene.
_WHITE = slice(240, 256)
_BRIGHT_PERCENTILE = 97
_ABOVE_BRIGHT = 30
_LIT = 50  # a lit scene is brighter: only light that falls on it is reflected
_NONE = 256

# Towards white, the scene has ever fewer pixels, and highlights have many: few pixels lie between the two.
_GAP = 10
_PILE = 2.5

_LARGEST_HIGHLIGHT = 0.03  # share of the frame: larger white areas are scene or overexposed
_HIGHLIGHT_MARGIN = 0.008  # share of the longer side: highlights fade over some pixels

_LONGER_SIDE = 120  # colours are compared at this size

# A colour is the share of red and the share of green, each in this many steps, whatever the brightness.
COLOUR_STEPS = 32
_DARK_BELOW = 90  # sum of the three channels: darker pixels have no reliable colour

_NOISE = 0.002  # share of a frame's pixels
_COMMON_FRAMES = 0.2  # a colour in a smaller share of the frames is rare
_SMALLEST, _LARGEST_TOOL = 0.02, 0.95  # shares of the field; beyond, the light has changed
_THINNEST, _TOOL_MARGIN = 2, 2  # reduced pixels


@dataclass(frozen=True, slots=True)
class Highlights:
    """The gray level from which on a small spot is a highlight; 256 if the sequence has none."""

    level: int

    @classmethod
    def of(cls, samples: Sequence[NDArray[np.uint8]]) -> Self:
        """Learn the level from the scene's gray levels (n,) in some frames."""
        bright = np.array([np.percentile(sample, _BRIGHT_PERCENTILE) if sample.size else 0.0 for sample in samples])
        usual = float(np.median(bright))
        lowest = round(usual) + _ABOVE_BRIGHT
        if usual < _LIT:
            return cls(_NONE)  # points that glow in the dark are the scene
        if lowest + _GAP > _WHITE.start:
            return cls(_NONE)  # the scene itself is as bright
        # A hazy frame would fill the gap.
        clear = [sample for sample, level in zip(samples, bright, strict=True) if abs(level - usual) <= _ABOVE_BRIGHT]
        counts = np.bincount(np.concatenate(clear), minlength=256)
        gaps = np.convolve(counts[lowest : _WHITE.start], np.full(_GAP, 1 / _GAP), mode="valid")
        gap = int(np.argmin(gaps))
        return cls(lowest + gap if counts[_WHITE].mean() > _PILE * max(gaps[gap], 1.0) else _NONE)

    @property
    def exist(self) -> bool:
        """Whether any frame may have highlights."""
        return self.level < _NONE

    def find(self, gray: NDArray[np.uint8]) -> Region:
        """Return the highlights of a frame (h, w) and a margin around them."""
        bright = gray >= self.level
        if not bright.any():
            return bright
        labels, sizes = label_parts(bright)
        small = (sizes > 0) & (sizes <= _LARGEST_HIGHLIGHT * gray.size)
        return grow(small[labels], max(2, round(_HIGHLIGHT_MARGIN * max(gray.shape))))


@dataclass(frozen=True, slots=True, eq=False)
class Palette:
    """Which colours are the scene's, (COLOUR_STEPS, COLOUR_STEPS)."""

    common: NDArray[np.bool_]

    @classmethod
    def of(cls, samples: Sequence[NDArray[np.uint8]]) -> Self:
        """Learn the scene's colours from its pixels, (n, 3) a frame."""
        frames = np.zeros(COLOUR_STEPS * COLOUR_STEPS)
        for pixels in samples:
            colours = _name_colours(pixels)
            frames += np.bincount(colours, minlength=len(frames)) > _NOISE * len(pixels)
        common = (frames >= max(1.0, _COMMON_FRAMES * len(samples))).reshape(COLOUR_STEPS, COLOUR_STEPS)
        return cls(grow(common, 1))  # neighbouring colours are shades of a colour

    @classmethod
    def of_everything(cls) -> Self:
        """Count all colours as the scene's, so that no tools are found."""
        return cls(np.ones((COLOUR_STEPS, COLOUR_STEPS), dtype=bool))

    def find_tools(self, image: NDArray[np.uint8], field: Region) -> Region:
        """Return large areas of rare colours that extend into the field (h, w) from its rim; in doubt, it is scene."""
        height, width = field.shape
        if self.common.all():
            return np.zeros(field.shape, dtype=bool)
        factor = max(1.0, max(height, width) / _LONGER_SIDE)
        size = (max(1, round(width / factor)), max(1, round(height / factor)))
        small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        within = np.asarray(cv2.resize(field.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST), dtype=bool)
        rare = within & ~self.common.ravel()[_name_colours(small)] & (small.sum(axis=2) >= _DARK_BELOW)
        rare = grow(shrink(rare, _THINNEST), _THINNEST) & within
        if rare.sum() > _LARGEST_TOOL * within.sum():
            return np.zeros(field.shape, dtype=bool)
        labels, sizes = label_parts(rare)
        at_rim = np.zeros(len(sizes), dtype=bool)
        at_rim[labels[grow(~within | edge_of(within.shape), 1)]] = True
        tools = grow((at_rim & (sizes >= _SMALLEST * within.sum()))[labels], _TOOL_MARGIN)
        return np.asarray(cv2.resize(tools.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST), bool)


def _name_colours(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return each pixel's index in the palette, (...,) from (..., 3)."""
    levels = pixels.astype(np.int64)
    total = np.maximum(levels.sum(axis=-1), 1)
    red, green = (levels[..., channel] * (COLOUR_STEPS - 1) // total for channel in (0, 1))
    names: NDArray[np.int64] = red * COLOUR_STEPS + green
    return names
