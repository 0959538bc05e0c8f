"""The grid of pixels on which a mosaic is drawn, and the windows it is drawn in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError, UsageError
from smalti.geometry.affine import homogeneous
from smalti.geometry.homography import project
from smalti.geometry.outline import Outline

MAX_PIXELS = 200 * 10**9
"""More than this is a map gone wrong, not a mosaic."""

# Maps carry rounding errors: without this a frame that begins at -1e-12 would add an empty column.
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of whole canvas pixels: `width` columns from `left` on, `height` rows from `top` on."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Canvas:
    """Pixels of side 1/scale over the mosaic, whose top-left corner is (left - 0.5, top - 0.5) at every scale.

    So (left, top) is the centre of the top-left pixel at scale 1, in mosaic coordinates.
    """

    left: float
    top: float
    width: int
    height: int
    scale: float = 1.0

    @classmethod
    def around(
        cls,
        mosaic_from_frame: NDArray[np.float64],
        frame_width: int,
        frame_height: int,
        scale: float = 1.0,
        *,
        numbers: Sequence[int] | None = None,
    ) -> Canvas:
        """Return the smallest canvas that holds all frames, its origin on whole mosaic pixels.

        `mosaic_from_frame` is (n, 3, 3); `numbers` are the frames' numbers, for messages.
        """
        if not (math.isfinite(scale) and scale > 0):
            raise UsageError(f"scale {scale}: give a positive number, 1 for the frames' own resolution")
        if len(mosaic_from_frame) == 0:
            raise UsageError("the mosaic has no frames: give at least one")
        corners = _map_corners(mosaic_from_frame, frame_width, frame_height, numbers or range(len(mosaic_from_frame)))
        low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
        # Whole pixels: a frame that lies on the mosaic's own grid is then copied, not interpolated.
        left, top = np.floor(low + 0.5 + _TOLERANCE)
        width, height = np.maximum(np.ceil((high + 0.5 - (left, top)) * scale - _TOLERANCE), 1.0)
        if width * height > MAX_PIXELS:
            raise OutputError(
                f"the mosaic would have {width:.0f} × {height:.0f} pixels, more than {MAX_PIXELS // 10**9} gigapixels: "
                "choose a smaller scale, or look for frames that were placed wrongly"
            )
        return cls(float(left), float(top), int(width), int(height), scale)

    @property
    def canvas_from_mosaic(self) -> NDArray[np.float64]:
        """(3, 3): mosaic coordinates to pixels of the canvas."""
        s = self.scale
        shift_x, shift_y = (s * (0.5 - start) - 0.5 for start in (self.left, self.top))
        return np.array([[s, 0.0, shift_x], [0.0, s, shift_y], [0.0, 0.0, 1.0]])

    def canvas_from_frame(self, mosaic_from_frame: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (..., 3, 3): pixels of each frame to pixels of the canvas."""
        composed: NDArray[np.float64] = self.canvas_from_mosaic @ mosaic_from_frame
        return composed

    def tiles(self, width: int, height: int | None = None) -> Iterator[Window]:
        """Go through windows of `width` × `height` (a square by default) in raster order; the last ones are smaller."""
        height = width if height is None else height
        for top in range(0, self.height, height):
            for left in range(0, self.width, width):
                yield Window(left, top, min(width, self.width - left), min(height, self.height - top))


def touched_windows(canvas_from_frame: NDArray[np.float64], width: int, height: int, within: Window) -> list[Window]:
    """Return for each frame (n, 3, 3) the part of `within` that the box around it covers, of no size if none."""
    corners = project(canvas_from_frame, Outline.of_pixels(width, height).corners)
    start = np.array([within.left, within.top])
    end = start + np.array([within.width, within.height])
    low = np.clip(np.floor(corners.min(axis=1)), start, end).astype(int)
    high = np.clip(np.ceil(corners.max(axis=1)) + 1, start, end).astype(int)
    boxes = np.concatenate([low, high - low], axis=1).tolist()
    return [Window(*box) for box in boxes]


def _map_corners(
    mosaic_from_frame: NDArray[np.float64], width: int, height: int, numbers: Sequence[int]
) -> NDArray[np.float64]:
    """Return (n, 4, 2), having refused maps by which a frame is not a quadrangle."""
    corners = Outline.of_pixels(width, height).corners
    remedy = "take the frame out, or link it anew"
    for number, matrix in zip(numbers, mosaic_from_frame, strict=True):
        if not np.isfinite(matrix).all():
            raise OutputError(f"frame {number}: its map has entries that are not finite numbers; {remedy}")
        # The line that goes to infinity misses the frame if all corners lie on one side of it.
        denominators = homogeneous(corners) @ matrix[2]
        if not (denominators.min() > 0 or denominators.max() < 0):
            raise OutputError(f"frame {number}: its map sends a part of it to infinity; {remedy}")
    mapped = project(mosaic_from_frame, corners)
    diagonals = mapped[:, 2:] - mapped[:, :2]
    areas = np.abs(diagonals[:, 0, 0] * diagonals[:, 1, 1] - diagonals[:, 0, 1] * diagonals[:, 1, 0]) / 2
    for number, area in zip(numbers, areas, strict=True):
        if not area > _TOLERANCE:
            raise OutputError(f"frame {number}: its map flattens it to a line; {remedy}")
    return mapped
