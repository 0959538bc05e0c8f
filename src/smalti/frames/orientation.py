"""How a stored picture is turned before it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Pixel = TypeVar("Pixel", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Orientation:
    """One of the eight: swap x and y, then mirror."""

    swaps_axes: bool = False
    mirrors_x: bool = False
    mirrors_y: bool = False

    @classmethod
    def from_exif(cls, code: int) -> Orientation:
        """Return what the EXIF or TIFF tag 274 means; unknown codes mean upright."""
        return _BY_EXIF_CODE.get(code, cls())

    @classmethod
    def from_matrix(cls, shown_from_stored: NDArray[np.int32]) -> Orientation | None:
        """Return what a video's display matrix (3, 3) means, or None if it is not one of the eight.

        The matrix multiplies row vectors (x, y, 1) from the right.
        """
        (a, b), (c, d) = np.sign(shown_from_stored[:2, :2])
        if b == c == 0 and a and d:
            return cls(False, a < 0, d < 0)
        if a == d == 0 and b and c:
            return cls(True, c < 0, b < 0)
        return None

    def apply(self, image: NDArray[Pixel]) -> NDArray[Pixel]:
        """Return the image (h, w, ...) as it is to be shown."""
        if self.swaps_axes:
            image = image.swapaxes(0, 1)
        if self.mirrors_x:
            image = image[:, ::-1]
        if self.mirrors_y:
            image = image[::-1]
        return image

    def apply_to_size(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height as shown."""
        return (height, width) if self.swaps_axes else (width, height)


_BY_EXIF_CODE = {
    1: Orientation(),
    2: Orientation(mirrors_x=True),
    3: Orientation(mirrors_x=True, mirrors_y=True),
    4: Orientation(mirrors_y=True),
    5: Orientation(swaps_axes=True),
    6: Orientation(swaps_axes=True, mirrors_x=True),
    7: Orientation(swaps_axes=True, mirrors_x=True, mirrors_y=True),
    8: Orientation(swaps_axes=True, mirrors_y=True),
}
