"""The painting of one tile: frames are added one by one, in the order of their numbers.

`Painting` and `Technique` are the interface of all blends; `OverlayPainting` serves the blends that use all frames.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.lens import Lens
from smalti.rendering.canvas import Window
from smalti.rendering.frame_cache import FramePyramid
from smalti.rendering.frame_survey import cell_of
from smalti.rendering.light_comparison import Light
from smalti.rendering.sampling_kernels import Feather, bending_of
from smalti.rendering.tone_curve import WHITE, shown


class Painting(Protocol):
    """A tile that is being painted."""

    @property
    def indices(self) -> list[int]:
        """The indices of the frames of this tile, ascending."""

    def add(self, index: int, frame: FramePyramid) -> None:
        """Add one of these frames."""

    def finish(self) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA."""


Painter = Callable[[Window], Painting]
"""Begins a tile."""


@dataclass(frozen=True, slots=True, eq=False)
class Technique:
    """Everything that is needed to paint a canvas with a blend."""

    painter: Painter
    prepare: Callable[[Window, Executor], None]  # called with a window before its tiles are painted
    levels: int  # of the frames' pyramids
    reach: int  # how far beyond its outline a frame affects pixels, canvas pixels
    bytes_per_pixel: float  # of a tile that is being painted


def to_bytes(colours: NDArray[np.float32], covered: NDArray[np.bool_], white: float = WHITE) -> NDArray[np.uint8]:
    """Round colours (h, w, 3) to RGBA (h, w, 4), transparent black where `covered` is false.

    The tone curve maps `white` to 254.
    """
    image = np.empty((*covered.shape, 4), dtype=np.uint8)
    _round(colours, covered, white, image)
    return image


@compiled
def _round(colours: NDArray[np.float32], covered: NDArray[np.bool_], white: float, image: NDArray[np.uint8]) -> None:
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            shows = covered[row, column]
            for channel in range(3):
                # The bicubic kernel overshoots at edges, and so do frequency bands.
                colour = shown(colours[row, column, channel], white) + np.float32(0.5)
                colour = min(max(colour, np.float32(0.0)), np.float32(255.0))
                image[row, column, channel] = np.uint8(colour) if shows else np.uint8(0)
            image[row, column, 3] = 255 if shows else 0


@dataclass(frozen=True, slots=True)
class Method:
    """How the colours of a pixel are collected and reduced to one."""

    # Colours and weights over a window (h, w) that so many frames touch.
    begin: Callable[[tuple[int, int], int], tuple[NDArray[Any], NDArray[Any]]]
    # Compiled. Takes the pixels, source_from_frame and frame_from_canvas of a frame, the bending of the lens, the
    # frame's gains, flatness and table_from_frame, the white of the tone curve, the feather's weights, the worth of the
    # frame's cells and their side, left and top of the part it touches, and adds to colours and weights of that part.
    take: Callable[..., None]
    finish: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.uint8]]  # to RGBA (h, w, 4)


class OverlayPainting:
    """A tile that a `Method` paints."""

    def __init__(
        self,
        method: Method,
        tile: Window,
        parts: dict[int, Window],
        frame_from_canvas: NDArray[np.float64],
        lens: Lens,
        feather: Feather,
        light: Callable[[int], Light],
        white: float,
        worth: Callable[[int], NDArray[np.uint8]],
    ) -> None:
        """Take the part of the tile that each frame touches, by frame index."""
        self._method, self._tile, self._parts, self._frame_from_canvas = method, tile, parts, frame_from_canvas
        self._bending, self._feather, self._light, self._white = bending_of(lens), feather, light, white
        self._worth = worth
        height, width = feather.weights.shape
        self._cell = cell_of(width - 2, height - 2)
        self._colours, self._weights = method.begin((tile.height, tile.width), len(parts))

    @property
    def indices(self) -> list[int]:
        """The indices of the frames of this tile, ascending."""
        return sorted(self._parts)

    def add(self, index: int, frame: FramePyramid) -> None:
        """Add one of these frames."""
        light, part = self._light(index), self._parts[index]
        inside = part.slices_in(self._tile)
        self._method.take(
            frame.levels[0],
            frame.level_from_frame(0),
            self._frame_from_canvas[index],
            self._bending,
            light.gains,
            light.flatness,
            light.table_from_pixels(np.eye(3)),
            self._white,
            self._feather.weights,
            self._worth(index),
            self._cell,
            part.left,
            part.top,
            self._colours[inside],
            self._weights[inside],
        )

    def finish(self) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA."""
        return self._method.finish(self._colours, self._weights)
