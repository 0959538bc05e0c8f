"""The pixel grid of a mosaic, and windows on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError, UsageError
from smalti.geometry.homographies import project_points
from smalti.geometry.linear_maps import homogeneous
from smalti.geometry.outline import Outline

MAX_PIXELS = 200 * 10**9
"""A larger canvas means that a map is wrong."""

SMALLEST_SCALE, LARGEST_SCALE = 1e-6, 1e6
"""Beyond these, numbers of pixels overflow and maps cannot be inverted."""

# Maps have rounding errors. Without this tolerance a frame that begins at -1e-12 would add an empty column.
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of whole canvas pixels: `width` columns from `left` on, `height` rows from `top` on."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The column after the last one."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The row after the last one."""
        return self.top + self.height

    @property
    def is_empty(self) -> bool:
        """Whether the window has no pixels."""
        return self.width <= 0 or self.height <= 0

    @property
    def canvas_from_window(self) -> NDArray[np.float64]:
        """(3, 3): from pixels counted from the window's corner to canvas pixels."""
        return np.array([[1.0, 0.0, self.left], [0.0, 1.0, self.top], [0.0, 0.0, 1.0]])

    @classmethod
    def between(cls, left: int, top: int, right: int, bottom: int) -> Window:
        """Return the window from the first column and row up to, but without, the last."""
        return cls(left, top, right - left, bottom - top)

    def intersect(self, other: Window) -> Window:
        """Return the common pixels of two windows; empty if there are none."""
        return Window.between(
            max(self.left, other.left),
            max(self.top, other.top),
            min(self.right, other.right),
            min(self.bottom, other.bottom),
        )

    def grow(self, margin: int, step: int = 1) -> Window:
        """Return the window with a margin, extended until it begins and ends at multiples of `step`."""
        left, top = (self.left - margin) // step * step, (self.top - margin) // step * step
        right, bottom = -(-(self.right + margin) // step) * step, -(-(self.bottom + margin) // step) * step
        return Window.between(left, top, right, bottom)

    def tiles(self, width: int, height: int) -> Iterator[Window]:
        """Yield windows of `width` × `height` in raster order. The last ones may be smaller."""
        for top in range(self.top, self.bottom, height):
            for left in range(self.left, self.right, width):
                yield Window(left, top, width, height).intersect(self)

    def slices_in(self, outer: Window) -> tuple[slice, slice]:
        """Return the rows and columns of this window in an array over `outer`."""
        top, left = self.top - outer.top, self.left - outer.left
        return slice(top, top + self.height), slice(left, left + self.width)


Region = tuple[float, float, float, float]
"""x, y, width and height in pixels of the whole mosaic at scale 1."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """A grid of pixels of side 1/scale. Its top-left corner is (left - 0.5, top - 0.5) at every scale.

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
        rim: NDArray[np.float64] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> Canvas:
        """Return the smallest canvas that holds all frames. Its origin lies on whole mosaic pixels.

        `mosaic_from_frame` is (n, 3, 3). `rim` (m, 2) are points along the border of a frame, as `Lens.rim`; they are
        needed where the border is not a rectangle. `numbers` are the frame numbers for error messages.
        """
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise UsageError(
                f"scale {scale:g}: give a number from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}, 1 for the frames' own "
                "resolution"
            )
        if len(mosaic_from_frame) == 0:
            raise UsageError("the mosaic has no frames: give at least one")
        if rim is None:
            rim = Outline.of_pixels(frame_width, frame_height).corners
        rims = _map_rims(mosaic_from_frame, rim, numbers or range(len(mosaic_from_frame)))
        low, high = rims.min(axis=(0, 1)), rims.max(axis=(0, 1))
        # With whole pixels, a frame that lies on the mosaic's grid is copied and not interpolated.
        left, top = np.floor(low + 0.5 + _TOLERANCE)
        width, height = np.maximum(np.ceil((high + 0.5 - (left, top)) * scale - _TOLERANCE), 1.0)
        if width * height > MAX_PIXELS:
            raise OutputError(
                f"the mosaic would have {width:.0f} × {height:.0f} pixels, more than {MAX_PIXELS // 10**9} gigapixels: "
                "choose a smaller scale, or look for frames that were placed wrongly"
            )
        return cls(float(left), float(top), int(width), int(height), scale)

    def part(self, region: Region) -> Window:
        """Return the pixels of a region. The region is in pixels of scale 1, counted from the top-left corner."""
        x, y, width, height = region
        whole_width, whole_height = self.width / self.scale, self.height / self.scale
        inside = 0 <= x < whole_width and 0 <= y < whole_height and width > 0 and height > 0
        if not (inside and all(map(math.isfinite, region))):
            raise UsageError(
                f"region {x:g},{y:g},{width:g},{height:g}: the mosaic has {whole_width:.0f} × {whole_height:.0f} "
                "pixels at scale 1, give a part of it as x,y,width,height"
            )
        left, top = min(round(x * self.scale), self.width - 1), min(round(y * self.scale), self.height - 1)
        size = max(round(width * self.scale), 1), max(round(height * self.scale), 1)
        return Window(left, top, *size).intersect(self.window)

    @property
    def window(self) -> Window:
        """All pixels of the canvas."""
        return Window(0, 0, self.width, self.height)

    @property
    def canvas_from_mosaic(self) -> NDArray[np.float64]:
        """(3, 3): from mosaic coordinates to canvas pixels."""
        s = self.scale
        shift_x, shift_y = (s * (0.5 - start) - 0.5 for start in (self.left, self.top))
        return np.array([[s, 0.0, shift_x], [0.0, s, shift_y], [0.0, 0.0, 1.0]])

    def canvas_from_frame(self, mosaic_from_frame: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (..., 3, 3): from pixels of each frame to canvas pixels."""
        composed: NDArray[np.float64] = self.canvas_from_mosaic @ mosaic_from_frame
        return composed


def frame_boxes(canvas_from_frame: NDArray[np.float64], rim: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return (n, 4): left, top, right and bottom of the bounding box of each frame (n, 3, 3)."""
    rims = project_points(canvas_from_frame, rim)
    low, high = np.floor(rims.min(axis=1)), np.ceil(rims.max(axis=1)) + 1
    boxes = np.clip(np.concatenate([low, high], axis=1), -MAX_PIXELS, MAX_PIXELS)
    return np.asarray(boxes, dtype=np.int64)


def boxes_within(boxes: NDArray[np.int64], window: Window) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of the boxes (n, 4) that touch a window, and their parts (m, 4) inside the window."""
    start, end = (window.left, window.top), (window.right, window.bottom)
    touching = np.flatnonzero((boxes[:, :2] < end).all(axis=1) & (boxes[:, 2:] > start).all(axis=1))
    clipped = np.concatenate([np.maximum(boxes[touching, :2], start), np.minimum(boxes[touching, 2:], end)], axis=1)
    return touching, clipped


def touched_windows(canvas_from_frame: NDArray[np.float64], width: int, height: int, within: Window) -> list[Window]:
    """Return for each frame (n, 3, 3) the part of `within` that its bounding box covers; empty if none."""
    windows = [Window(within.left, within.top, 0, 0)] * len(canvas_from_frame)
    boxes = frame_boxes(canvas_from_frame, Outline.of_pixels(width, height).corners)
    for index, box in zip(*(found.tolist() for found in boxes_within(boxes, within)), strict=True):
        windows[index] = Window.between(*box)
    return windows


def _map_rims(
    mosaic_from_frame: NDArray[np.float64], rim: NDArray[np.float64], numbers: Sequence[int]
) -> NDArray[np.float64]:
    """Return the mapped rims (n, m, 2). Refuse maps that do not map a frame to a quadrangle."""
    remedy = "remove the frame, or link it again"
    for number, matrix in zip(numbers, mosaic_from_frame, strict=True):
        if not np.isfinite(matrix).all():
            raise OutputError(f"frame {number}: its map has entries that are not finite numbers; {remedy}")
        # If the whole rim lies on one side of the line that goes to infinity, this line misses the frame.
        denominators = homogeneous(rim) @ matrix[2]
        if not (denominators.min() > 0 or denominators.max() < 0):
            raise OutputError(f"frame {number}: its map sends a part of it to infinity; {remedy}")
    mapped = project_points(mosaic_from_frame, rim)
    corners = mapped[:, :: len(rim) // 4]
    diagonals = corners[:, 2:] - corners[:, :2]
    areas = np.abs(diagonals[:, 0, 0] * diagonals[:, 1, 1] - diagonals[:, 0, 1] * diagonals[:, 1, 0]) / 2
    for number, area in zip(numbers, areas, strict=True):
        if not area > _TOLERANCE:
            raise OutputError(f"frame {number}: its map flattens it to a line; {remedy}")
    return mapped
