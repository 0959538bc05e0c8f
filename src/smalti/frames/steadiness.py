"""What stays the same in a sample of frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError

# A surround is darker than this, in gray levels: noise and stray light keep it above 0.
_DARK_BELOW = 28.0


@dataclass(frozen=True, slots=True, eq=False)
class Steadiness:
    """Statistics of each pixel over the frames that show anything, all (h, w) but the count.

    `dark_share` is how often the place is dark; `deviation` how much its gray level varies, as a standard
    deviation; `steepness` the length of the mean gradient, in gray levels a pixel; `steadiness` its ratio to
    the mean length of the gradients: 1 where an edge stands still, 0 where edges come and go.
    """

    frames: int
    dark_share: NDArray[np.float32]
    deviation: NDArray[np.float32]
    steepness: NDArray[np.float32]
    steadiness: NDArray[np.float32]

    @classmethod
    def of(cls, images: Iterable[NDArray[np.uint8]]) -> Self:
        """Go once through gray frames of one size."""
        frames = 0
        shape: tuple[int, ...] = ()
        sums: list[NDArray[np.float32]] = []
        for image in images:
            shape = shape or image.shape
            terms = _describe(image)
            if np.percentile(image[::4, ::4], 99) < _DARK_BELOW:
                continue  # a black frame says nothing of where the scene is
            frames += 1
            sums = [total + term for total, term in zip(sums, terms, strict=True)] if sums else terms
        if not shape:
            raise UsageError("the field of view cannot be found without frames: give some")
        if not frames:
            zeros = np.zeros(shape, dtype=np.float32)
            return cls(0, zeros, zeros, zeros, zeros)
        dark, level, squared_level, across, down, length = (total / np.float32(frames) for total in sums)
        steepness = np.hypot(across, down)
        return cls(
            frames=frames,
            dark_share=dark,
            deviation=np.sqrt(np.maximum(squared_level - level * level, 0)),
            steepness=steepness,
            steadiness=steepness / np.maximum(length, np.float32(1e-3)),
        )


def _describe(image: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
    gray = image.astype(np.float32)
    across = np.asarray(cv2.Sobel(gray, cv2.CV_32F, 1, 0, scale=1 / 8), dtype=np.float32)
    down = np.asarray(cv2.Sobel(gray, cv2.CV_32F, 0, 1, scale=1 / 8), dtype=np.float32)
    dark = (cv2.blur(gray, (5, 5)) < _DARK_BELOW).astype(np.float32)
    return [dark, gray, gray * gray, across, down, np.hypot(across, down)]
