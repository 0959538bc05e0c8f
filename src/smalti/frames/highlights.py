"""Specular highlights: light thrown back by a wet surface, which belongs to no place of the scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from smalti.frames.region import Region, grow, label_parts

# In gray levels: highlights are nearly white, and above whatever of the scene is bright.
_WHITE = slice(240, 256)
_BRIGHT_PERCENTILE = 97
_ABOVE_BRIGHT = 30
_NONE = 256

# A scene thins out towards white; highlights pile up there, so that few pixels lie between the two.
_GAP = 10
_PILE = 2.5

_LARGEST = 0.03  # of the frame: what is larger is white by itself, or overexposed
_MARGIN = 0.008  # of the longer side: highlights fade over some pixels


@dataclass(frozen=True, slots=True)
class Highlights:
    """From which gray level on a small spot is a highlight: 256 where the sequence shows none."""

    level: int

    @classmethod
    def of(cls, samples: Sequence[NDArray[np.uint8]]) -> Self:
        """Learn the level from what some frames show of the scene, gray levels (n,) a frame."""
        bright = np.array([np.percentile(sample, _BRIGHT_PERCENTILE) if sample.size else 0.0 for sample in samples])
        usual = float(np.median(bright))
        lowest = round(usual) + _ABOVE_BRIGHT
        if lowest + _GAP > _WHITE.start:
            return cls(_NONE)  # the scene itself is as bright
        # A frame full of haze would fill the gap.
        clear = [sample for sample, level in zip(samples, bright, strict=True) if abs(level - usual) <= _ABOVE_BRIGHT]
        counts = np.bincount(np.concatenate(clear), minlength=256)
        gaps = np.convolve(counts[lowest : _WHITE.start], np.full(_GAP, 1 / _GAP), mode="valid")
        gap = int(np.argmin(gaps))
        return cls(lowest + gap if counts[_WHITE].mean() > _PILE * max(gaps[gap], 1.0) else _NONE)

    def find(self, gray: NDArray[np.uint8]) -> Region:
        """Return the highlights of a frame (h, w) and a margin around them."""
        bright = gray >= self.level
        if not bright.any():
            return bright
        labels, sizes = label_parts(bright)
        small = (sizes > 0) & (sizes <= _LARGEST * gray.size)
        return grow(small[labels], max(2, round(_MARGIN * max(gray.shape))))
