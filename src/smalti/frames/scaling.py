"""The size at which Smalti works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Scaling:
    """From the source's size to the working size.

    A source point (x, y) lies at ((x + 0.5) * scale - 0.5, ...): outer edges map to outer edges.
    """

    width: int
    height: int
    scale: float

    @classmethod
    def within(cls, width: int, height: int, max_size: int | None) -> Scaling:
        """Return the scaling that brings the longer side to at most `max_size`; it never enlarges."""
        longer = max(width, height)
        if max_size is None or longer <= max_size:
            return cls(width, height, 1.0)
        scale = max_size / longer
        return cls(max(1, round(width * scale)), max(1, round(height * scale)), scale)

    def shrink(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the image at the working size; each pixel is the mean of the area it covers."""
        if self.scale == 1.0:
            return np.ascontiguousarray(image)
        resized = cv2.resize(image, (self.width, self.height), interpolation=cv2.INTER_AREA)
        return cast(NDArray[np.uint8], resized)
