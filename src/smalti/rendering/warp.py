"""A frame as it looks on the canvas.

The sampling is ours because that of OpenCV is not exact: its bicubic kernel (a = -0.75) moves a ramp by up to
0.05 pixels, and before version 5 it rounded positions to 1/32 pixel. The kernel here (Catmull and Rom, a = -0.5)
reproduces every quadratic. A position depends on the canvas pixel alone, so tiles meet without a trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.homography import project
from smalti.geometry.outline import Outline
from smalti.rendering.canvas import Window

# Up to here the bicubic kernel alone is smooth enough; beyond, detail finer than the canvas would alias.
MAX_REDUCTION = 1.5

_BORDER = 2  # pixels around the frame that the 4×4 kernel may reach


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A frame ready to be sampled."""

    pixels: NDArray[np.float32]  # (h + 4, w + 4, 3), its border repeated
    source_from_canvas: NDArray[np.float64]  # (3, 3), to pixels of the frame without the border


def prepare(frame: NDArray[np.uint8], canvas_from_frame: NDArray[np.float64]) -> Source:
    """Reduce a frame (h, w, 3) to the canvas' resolution, if that is coarser, and extend its border.

    Every pixel of the reduced frame is the mean over the area it stands for. The reduction is one for the whole
    frame, so that it does not depend on the tile.
    """
    height, width = frame.shape[:2]
    columns, rows = _reduced_size(width, height, canvas_from_frame)
    pixels = np.asarray(frame, dtype=np.float32)
    if (columns, rows) != (width, height):
        pixels = np.asarray(cv2.resize(pixels, (columns, rows), interpolation=cv2.INTER_AREA))
    x, y = columns / width, rows / height
    source_from_frame = np.array([[x, 0.0, (x - 1) / 2], [0.0, y, (y - 1) / 2], [0.0, 0.0, 1.0]])
    bordered = cv2.copyMakeBorder(pixels, _BORDER, _BORDER, _BORDER, _BORDER, cv2.BORDER_REPLICATE)
    return Source(np.asarray(bordered, dtype=np.float32), source_from_frame @ np.linalg.inv(canvas_from_frame))


def warp(source: Source, window: Window) -> NDArray[np.float32]:
    """Return the frame's colours (h, w, 3) at the window's pixels, 0 where the frame is not."""
    image = np.zeros((window.height, window.width, 3), dtype=np.float32)
    _sample_cubic(source.pixels, source.source_from_canvas, window.left, window.top, image)
    return image


def _reduced_size(width: int, height: int, canvas_from_frame: NDArray[np.float64]) -> tuple[int, int]:
    """Return the number of columns and rows with which the frame has the canvas' resolution."""
    corners = project(canvas_from_frame[None], Outline.of_pixels(width, height).corners)[0]
    top, right, bottom, left = np.hypot(*(np.roll(corners, -1, axis=0) - corners).T)
    columns, rows = (top + bottom) / 2, (left + right) / 2
    return (
        width if columns * MAX_REDUCTION >= width else max(1, round(columns)),
        height if rows * MAX_REDUCTION >= height else max(1, round(rows)),
    )


@compiled
def _sample_cubic(
    pixels: NDArray[np.float32],
    source_from_canvas: NDArray[np.float64],
    left: int,
    top: int,
    image: NDArray[np.float32],
) -> None:
    """Fill `image` (h, w, 3), whose first pixel is (left, top) of the canvas, bicubically."""
    height, width = pixels.shape[0] - 2 * _BORDER, pixels.shape[1] - 2 * _BORDER
    m = source_from_canvas
    for row in range(image.shape[0]):
        canvas_y = float(top + row)
        for column in range(image.shape[1]):
            canvas_x = float(left + column)
            scale = 1.0 / (m[2, 0] * canvas_x + m[2, 1] * canvas_y + m[2, 2])
            x = (m[0, 0] * canvas_x + m[0, 1] * canvas_y + m[0, 2]) * scale
            y = (m[1, 0] * canvas_x + m[1, 1] * canvas_y + m[1, 2]) * scale
            # A little beyond the outline is let in: the weights say what belongs to the frame.
            if not (-0.51 <= x <= width - 0.49 and -0.51 <= y <= height - 0.49):
                continue
            first_x, first_y = int(np.floor(x)), int(np.floor(y))
            wx = _cubic_weights(np.float32(x - first_x))
            wy = _cubic_weights(np.float32(y - first_y))
            # The kernel begins one pixel before; the border shifts all by two.
            at_x, at_y = first_x - 1 + _BORDER, first_y - 1 + _BORDER
            for channel in range(3):
                colour = np.float32(0.0)
                for tap in range(4):
                    p = pixels[at_y + tap]
                    colour += wy[tap] * (
                        wx[0] * p[at_x, channel]
                        + wx[1] * p[at_x + 1, channel]
                        + wx[2] * p[at_x + 2, channel]
                        + wx[3] * p[at_x + 3, channel]
                    )
                image[row, column, channel] = colour


@compiled
def _cubic_weights(t: np.float32) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Return the weights of the pixels at -1, 0, 1 and 2 for a position t between 0 and 1."""
    half, one = np.float32(0.5), np.float32(1.0)
    before = -half * t * (one - t) * (one - t)
    after = -half * t * t * (one - t)
    second = t * (half + t * (np.float32(2.0) - np.float32(1.5) * t))
    return before, one - before - second - after, second, after
