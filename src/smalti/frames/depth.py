"""From 16 bits to 8, alike for all frames of a sequence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A few hot or dead pixels must not decide the range.
_PERCENTILES = (0.05, 99.95)
_LEVELS = 65536


@dataclass(frozen=True, slots=True)
class DepthRange:
    """The 16-bit values that become 0 and 255."""

    low: int
    high: int

    @classmethod
    def of(cls, images: Iterable[NDArray[np.uint16]]) -> DepthRange:
        """Find one range for all the images together, robustly."""
        counts = np.zeros(_LEVELS, dtype=np.int64)
        for image in images:
            counts += np.bincount(image.ravel(), minlength=_LEVELS)
        below = np.cumsum(counts)
        low, high = np.searchsorted(below, np.array(_PERCENTILES) / 100.0 * below[-1])
        return cls(int(low), max(int(high), int(low) + 1))

    def apply(self, image: NDArray[np.uint16]) -> NDArray[np.uint8]:
        """Scale to 8 bits; what lies outside the range is clipped."""
        levels = (np.arange(_LEVELS) - self.low) * (255.0 / (self.high - self.low))
        table = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
        scaled: NDArray[np.uint8] = table[image]
        return scaled
