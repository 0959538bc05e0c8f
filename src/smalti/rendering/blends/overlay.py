"""Tiles that take something from every frame that sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.lens import Lens
from smalti.rendering.canvas import Window
from smalti.rendering.light.correction import Light
from smalti.rendering.sampling.feather import Feather
from smalti.rendering.sampling.kernels import bending_of
from smalti.rendering.sampling.pyramid import FramePyramid


@dataclass(frozen=True, slots=True)
class Method:
    """How colours are gathered and made one."""

    # Colours and weights over a window (h, w) that so many frames touch.
    begin: Callable[[tuple[int, int], int], tuple[NDArray[Any], NDArray[Any]]]
    # Compiled. Takes the pixels, source_from_frame and frame_from_canvas of a frame, the lens' bending, the frame's
    # gains, flatness and table_from_frame, the feather's weights, left and top of the part it touches, and adds to
    # colours and weights of that part.
    take: Callable[..., None]
    finish: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.uint8]]  # to RGBA (h, w, 4)


class OverlayPainting:
    """A tile in the making by a method."""

    def __init__(
        self,
        method: Method,
        tile: Window,
        parts: dict[int, Window],
        frame_from_canvas: NDArray[np.float64],
        lens: Lens,
        feather: Feather,
        light: Callable[[int], Light],
    ) -> None:
        """Take the part of the tile that each frame touches, by its place."""
        self._method, self._tile, self._parts, self._frame_from_canvas = method, tile, parts, frame_from_canvas
        self._bending, self._feather, self._light = bending_of(lens), feather, light
        self._colours, self._weights = method.begin((tile.height, tile.width), len(parts))

    @property
    def places(self) -> list[int]:
        """The places of the frames it wants, ascending."""
        return sorted(self._parts)

    def add(self, place: int, frame: FramePyramid) -> None:
        """Add one of them."""
        light, part = self._light(place), self._parts[place]
        inside = part.slices_in(self._tile)
        self._method.take(
            frame.levels[0],
            frame.level_from_frame(0),
            self._frame_from_canvas[place],
            self._bending,
            light.gains,
            light.flatness,
            light.table_from_pixels(np.eye(3)),
            self._feather.weights,
            part.left,
            part.top,
            self._colours[inside],
            self._weights[inside],
        )

    def finish(self) -> NDArray[np.uint8]:
        """Return (h, w, 4), RGBA."""
        return self._method.finish(self._colours, self._weights)
