"""Instruments that reach into the view: known by colours that the scene does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.frames.region import Region, edge_of, grow, label_parts, shrink

_LONGER_SIDE = 120  # colours are judged at this size

# A colour is the shares of red and of green, in so many steps, whatever the brightness.
_STEPS = 32
_DARK_BELOW = 90  # sum of the three channels: darker pixels have no colour to speak of

_NOISE = 0.002  # of a frame's pixels
_COMMON_FRAMES = 0.2  # a colour that fewer of the frames show is rare
_SMALLEST, _LARGEST = 0.02, 0.95  # of the field; beyond, it is the light that has changed
_THINNEST, _MARGIN = 2, 2  # reduced pixels


@dataclass(frozen=True, slots=True, eq=False)
class Palette:
    """Which colours are the scene's, (_STEPS, _STEPS)."""

    common: NDArray[np.bool_]

    @classmethod
    def of(cls, samples: Sequence[NDArray[np.uint8]]) -> Self:
        """Learn the scene's colours from its pixels, (n, 3) a frame."""
        frames = np.zeros(_STEPS * _STEPS)
        for pixels in samples:
            colours = _name_colours(pixels)
            frames += np.bincount(colours, minlength=len(frames)) > _NOISE * len(pixels)
        common = (frames >= max(1.0, _COMMON_FRAMES * len(samples))).reshape(_STEPS, _STEPS)
        return cls(grow(common, 1))  # next to a colour lie its shades

    @classmethod
    def of_everything(cls) -> Self:
        """Take all colours for the scene's, so that there are no tools."""
        return cls(np.ones((_STEPS, _STEPS), dtype=bool))

    def find_tools(self, image: NDArray[np.uint8], field: Region) -> Region:
        """Return large pieces of rare colours that reach into the field (h, w) from its rim; in doubt, it is scene."""
        height, width = field.shape
        if self.common.all():
            return np.zeros(field.shape, dtype=bool)
        factor = max(1.0, max(height, width) / _LONGER_SIDE)
        size = (max(1, round(width / factor)), max(1, round(height / factor)))
        small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        within = np.asarray(cv2.resize(field.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST), dtype=bool)
        rare = within & ~self.common.ravel()[_name_colours(small)] & (small.sum(axis=2) >= _DARK_BELOW)
        rare = grow(shrink(rare, _THINNEST), _THINNEST) & within
        if rare.sum() > _LARGEST * within.sum():
            return np.zeros(field.shape, dtype=bool)
        labels, sizes = label_parts(rare)
        at_rim = np.zeros(len(sizes), dtype=bool)
        at_rim[labels[grow(~within | edge_of(within.shape), 1)]] = True
        tools = grow((at_rim & (sizes >= _SMALLEST * within.sum()))[labels], _MARGIN)
        return np.asarray(cv2.resize(tools.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST), bool)


def _name_colours(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return each pixel's place in the palette, (...,) from (..., 3)."""
    levels = pixels.astype(np.int64)
    total = np.maximum(levels.sum(axis=-1), 1)
    red, green = (levels[..., channel] * (_STEPS - 1) // total for channel in (0, 1))
    names: NDArray[np.int64] = red * _STEPS + green
    return names
