"""Frames that cover the same place become one colour: the mean, weighted by the distance to each frame's border."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from smalti.compiled import compiled
from smalti.errors import InputError
from smalti.rendering.canvas import Window

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
        self._weights = np.asarray(signed / inside.max(), dtype=np.float32)
        self._hidden, self._nearest_seen = _match_hidden(mask)

    def weigh(self, frame_from_canvas: NDArray[np.float64], window: Window) -> NDArray[np.float32]:
        """Return the frame's weight (h, w) at the window's pixels: 0 outside the mask, more than 0 inside."""
        weights = np.zeros((window.height, window.width), dtype=np.float32)
        _sample_linear(self._weights, frame_from_canvas, window.left, window.top, weights)
        return weights

    def fill_hidden(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Give hidden pixels the colour of the nearest seen one, lest interpolation draws the mask's edge in."""
        if len(self._hidden) == 0:
            return frame
        filled = frame.copy()
        colours = filled.reshape(-1, 3)
        colours[self._hidden] = colours[self._nearest_seen]
        return filled


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSum:
    """Σ w·I and Σ w over a window, to which frames are added in place."""

    window: Window
    colours: NDArray[np.float32]  # (h, w, 3)
    weights: NDArray[np.float32]  # (h, w)

    @classmethod
    def over(cls, window: Window) -> WeightedSum:
        """Start with nothing."""
        shape = (window.height, window.width)
        return cls(window, np.zeros((*shape, 3), dtype=np.float32), np.zeros(shape, dtype=np.float32))

    def add(self, part: Window, image: NDArray[np.float32], weights: NDArray[np.float32]) -> None:
        """Add a frame's colours (h, w, 3) and weights (h, w) in that part of the window."""
        rows = slice(part.top - self.window.top, part.top - self.window.top + part.height)
        columns = slice(part.left - self.window.left, part.left - self.window.left + part.width)
        _add_weighted(self.colours[rows, columns], self.weights[rows, columns], image, weights)

    def combine(self) -> NDArray[np.uint8]:
        """Return (h, w, 4) RGBA: Σ w·I / Σ w and opaque where a frame is, else nothing and transparent."""
        image = np.empty((*self.weights.shape, 4), dtype=np.uint8)
        _divide(self.colours, self.weights, image)
        return image


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


@compiled
def _sample_linear(
    weights: NDArray[np.float32],
    frame_from_canvas: NDArray[np.float64],
    left: int,
    top: int,
    sampled: NDArray[np.float32],
) -> None:
    """Fill `sampled` from the signed weights, which have a border of one pixel."""
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    m = frame_from_canvas
    for row in range(sampled.shape[0]):
        canvas_y = float(top + row)
        for column in range(sampled.shape[1]):
            canvas_x = float(left + column)
            scale = 1.0 / (m[2, 0] * canvas_x + m[2, 1] * canvas_y + m[2, 2])
            x = (m[0, 0] * canvas_x + m[0, 1] * canvas_y + m[0, 2]) * scale
            y = (m[1, 0] * canvas_x + m[1, 1] * canvas_y + m[1, 2]) * scale
            # The tolerance closes the gap that rounding could leave between frames that just meet.
            if not (-0.500001 <= x <= width - 0.499999 and -0.500001 <= y <= height - 0.499999):
                continue
            nearest_x = min(max(int(np.floor(x + 0.5)), 0), width - 1)
            nearest_y = min(max(int(np.floor(y + 0.5)), 0), height - 1)
            if weights[nearest_y + 1, nearest_x + 1] <= 0.0:
                continue
            first_x, first_y = int(np.floor(x)), int(np.floor(y))
            tx, ty = np.float32(x - first_x), np.float32(y - first_y)
            upper, lower = weights[first_y + 1], weights[first_y + 2]
            above = upper[first_x + 1] + tx * (upper[first_x + 2] - upper[first_x + 1])
            below = lower[first_x + 1] + tx * (lower[first_x + 2] - lower[first_x + 1])
            sampled[row, column] = max(above + ty * (below - above), np.float32(_LEAST_WEIGHT))


@compiled
def _add_weighted(
    colour_sums: NDArray[np.float32],
    weight_sums: NDArray[np.float32],
    image: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> None:
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            weight = weights[row, column]
            weight_sums[row, column] += weight
            for channel in range(3):
                colour_sums[row, column, channel] += weight * image[row, column, channel]


@compiled
def _divide(colour_sums: NDArray[np.float32], weight_sums: NDArray[np.float32], image: NDArray[np.uint8]) -> None:
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            weight = weight_sums[row, column]
            for channel in range(3):
                colour = colour_sums[row, column, channel] / weight if weight > 0.0 else np.float32(0.0)
                # The bicubic kernel overshoots at edges.
                image[row, column, channel] = np.uint8(min(max(colour + np.float32(0.5), 0.0), 255.0))
            image[row, column, 3] = 255 if weight > 0.0 else 0
