"""How a tile of the mosaic comes about: frames are added to it one by one, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.canvas import Window
from smalti.rendering.sampling.pyramid import FramePyramid


class Painting(Protocol):
    """A tile in the making."""

    @property
    def places(self) -> list[int]:
        """The places of the frames it wants, ascending."""

    def add(self, place: int, frame: FramePyramid) -> None:
        """Add one of them."""

    def finish(self) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA."""


Painter = Callable[[Window], Painting]
"""Begins a tile."""


@dataclass(frozen=True, slots=True, eq=False)
class Technique:
    """All that painting a canvas in one way needs."""

    painter: Painter
    prepare: Callable[[Window, Executor], None]  # what has to be known around a window before its tiles
    levels: int  # of the frames' pyramids
    reach: int  # how far beyond a frame's outline it may matter, canvas pixels
    bytes_per_pixel: float  # of a tile in the making


def to_bytes(colours: NDArray[np.float32], covered: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Round colours (h, w, 3) to RGBA (h, w, 4), transparent and black where nothing covers."""
    image = np.empty((*covered.shape, 4), dtype=np.uint8)
    _round(colours, covered, image)
    return image


@compiled
def _round(colours: NDArray[np.float32], covered: NDArray[np.bool_], image: NDArray[np.uint8]) -> None:
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            shows = covered[row, column]
            for channel in range(3):
                # The bicubic kernel overshoots at edges, and so do bands.
                colour = min(max(colours[row, column, channel] + np.float32(0.5), np.float32(0.0)), np.float32(255.0))
                image[row, column, channel] = np.uint8(colour) if shows else np.uint8(0)
            image[row, column, 3] = 255 if shows else 0
