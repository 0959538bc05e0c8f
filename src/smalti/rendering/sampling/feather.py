"""How far inside a frame a pixel lies: the weight by which frames are preferred and blended."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from smalti.compiled import compiled
from smalti.errors import InputError
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.canvas import Window
from smalti.rendering.sampling.kernels import Bending, bending_of, seen_position

# A covered pixel on the very border still counts, if no other frame is there.
_LEAST_WEIGHT = 1e-6


class Feather:
    """The weight of every pixel of a frame; the mask, and so the weights, are common to all frames."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        if not mask.any():
            raise InputError("the mask hides every pixel of the frames: give one that leaves something to see")
        padded = np.pad(mask, 1)
        # Pixels have an extent: the border runs half a pixel before the first hidden centre.
        inside = _distance(padded) - 0.5
        signed = np.where(padded, inside, 0.5 - _distance(~padded))
        self.weights = np.asarray(signed / inside.max(), dtype=np.float32)
        """(h + 2, w + 2): from 1 in the middle to 0 on the border and below outside, with a border of one pixel."""
        self.is_solid = bool(mask.all())
        """Whether frames have no hidden pixels."""
        self._hidden, self._nearest_seen = _match_hidden(mask)

    def weigh(
        self, frame_from_canvas: NDArray[np.float64], window: Window, lens: Lens | None = None
    ) -> NDArray[np.float32]:
        """Return the frame's weight (h, w) at the window's pixels: 0 outside the mask, more than 0 inside."""
        weights = np.zeros((window.height, window.width), dtype=np.float32)
        height, width = self.weights.shape[0] - 2, self.weights.shape[1] - 2
        bending = bending_of(lens or Lens(Outline.of_pixels(width, height)))
        _fill(self.weights, frame_from_canvas, bending, window.left, window.top, weights)
        return weights

    def fill_hidden(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Give hidden pixels the colour of the nearest seen one, lest interpolation draws the mask's edge in."""
        if len(self._hidden) == 0:
            return frame
        filled = frame.copy()
        colours = filled.reshape(-1, 3)
        colours[self._hidden] = colours[self._nearest_seen]
        return filled


@compiled
def weight_at(weights: NDArray[np.float32], x: float, y: float) -> np.float32:
    """Return the weight at a point of the frame, 0 outside the mask."""
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    # The tolerance closes the gap that rounding could leave between frames that just meet.
    if not (-0.500001 <= x <= width - 0.499999 and -0.500001 <= y <= height - 0.499999):
        return np.float32(0.0)
    nearest_x = min(max(int(np.floor(x + 0.5)), 0), width - 1)
    nearest_y = min(max(int(np.floor(y + 0.5)), 0), height - 1)
    if weights[nearest_y + 1, nearest_x + 1] <= 0.0:
        return np.float32(0.0)
    first_x, first_y = int(np.floor(x)), int(np.floor(y))
    tx, ty = np.float32(x - first_x), np.float32(y - first_y)
    upper, lower = weights[first_y + 1], weights[first_y + 2]
    above = upper[first_x + 1] + tx * (upper[first_x + 2] - upper[first_x + 1])
    below = lower[first_x + 1] + tx * (lower[first_x + 2] - lower[first_x + 1])
    return max(above + ty * (below - above), np.float32(_LEAST_WEIGHT))


@compiled
def covers(weights: NDArray[np.float32], x: float, y: float) -> bool:
    """Tell whether a point of the frame lies inside the mask; the same as a positive weight, but cheaper."""
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    if not (-0.500001 <= x <= width - 0.499999 and -0.500001 <= y <= height - 0.499999):
        return False
    nearest_x = min(max(int(np.floor(x + 0.5)), 0), width - 1)
    nearest_y = min(max(int(np.floor(y + 0.5)), 0), height - 1)
    return bool(weights[nearest_y + 1, nearest_x + 1] > 0.0)


@compiled
def _fill(
    weights: NDArray[np.float32],
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    left: int,
    top: int,
    sampled: NDArray[np.float32],
) -> None:
    for row in range(sampled.shape[0]):
        for column in range(sampled.shape[1]):
            x, y = seen_position(frame_from_canvas, bending, left + column, top + row)
            sampled[row, column] = weight_at(weights, x, y)


def _distance(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return for every pixel of the mask the distance to the nearest pixel outside."""
    distances = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(distances, dtype=np.float32)


def _match_hidden(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the hidden pixels, and for each the nearest one seen, as flat indices."""
    hidden = np.flatnonzero(~mask)
    if len(hidden) == 0:
        return hidden, hidden
    rows, columns = ndimage.distance_transform_edt(~mask, return_distances=False, return_indices=True)
    nearest = np.ravel_multi_index((rows, columns), mask.shape)
    return hidden, nearest.ravel()[hidden]
