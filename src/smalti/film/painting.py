"""Frames painted into a picture, fast: every frame once, bilinear, its edges smooth."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.film.stock import OUTERMOST, Stock
from smalti.records import Homographies
from smalti.rendering.canvas import Window, touched_windows

SHARPNESS = 3.0
"""Power of the depth by which a pixel counts: mostly the frame in whose middle a place lies is seen there."""

LEAST_WEIGHT = 1e-5


def paint(
    stock: Stock,
    canvas_from_frame: Homographies,
    strengths: NDArray[np.float64],
    size: tuple[int, int],
    background: tuple[int, int, int],
) -> NDArray[np.uint8]:
    """Return a picture (h, w, 3) of `size` (w, h): the held frames by their maps (m, 3, 3), as strong as told (m,).

    A frame of strength 0 is not there; one between 0 and 1 lets the background shine through.
    """
    width, height = size
    sums = np.zeros((height, width, 4), dtype=np.float32)
    cover = np.zeros((height, width), dtype=np.float32)
    canvas_from_stock = canvas_from_frame @ np.linalg.inv(stock.stock_from_frame)
    rows, columns = stock.pixels.shape[1:3]
    windows = touched_windows(canvas_from_stock, columns, rows, Window(0, 0, width, height))
    for pixels, matrix, strength, window in zip(stock.pixels, canvas_from_stock, strengths, windows, strict=True):
        if strength > 0.0 and window.width > 0 and window.height > 0:
            part = np.s_[window.top : window.top + window.height, window.left : window.left + window.width]
            _add_frame(_warp(pixels, matrix, window), _WEIGHTS, np.float32(strength), sums[part], cover[part])
    picture = np.empty((height, width, 3), dtype=np.uint8)
    _lay_over(sums, cover, np.array(background, dtype=np.float32), picture)
    return picture


def _warp(pixels: NDArray[np.uint8], canvas_from_stock: NDArray[np.float64], window: Window) -> NDArray[np.uint8]:
    window_from_canvas = np.array([[1.0, 0.0, -window.left], [0.0, 1.0, -window.top], [0.0, 0.0, 1.0]])
    # A thirty-second of a pixel off at most, and four times as fast as what renders mosaics to be kept.
    warped = cv2.warpPerspective(pixels, window_from_canvas @ canvas_from_stock, (window.width, window.height))
    return np.asarray(warped, dtype=np.uint8)


def _weigh_depths() -> NDArray[np.float32]:
    """Return the weight (256,) of every depth."""
    depths = np.arange(256)
    inwards = np.maximum(depths - OUTERMOST, 0) / (255 - OUTERMOST)
    return np.asarray(np.minimum(depths / OUTERMOST, 1.0) * LEAST_WEIGHT + inwards**SHARPNESS, dtype=np.float32)


_WEIGHTS = _weigh_depths()


@compiled
def _add_frame(
    warped: NDArray[np.uint8],
    weights: NDArray[np.float32],
    strength: np.float32,
    sums: NDArray[np.float32],
    cover: NDArray[np.float32],
) -> None:
    """Add a frame (h, w, 4) to Σ w·I and Σ w (h, w, 4), and to what covers the background (h, w)."""
    whole = np.float32(1.0 / OUTERMOST)
    for row in range(warped.shape[0]):
        for column in range(warped.shape[1]):
            depth = warped[row, column, 3]
            if depth > 0:
                weight = strength * weights[depth]
                for channel in range(3):
                    sums[row, column, channel] += weight * np.float32(warped[row, column, channel])
                sums[row, column, 3] += weight
                own = strength * min(whole * np.float32(depth), np.float32(1.0))
                cover[row, column] = max(cover[row, column], own)


@compiled
def _lay_over(
    sums: NDArray[np.float32],
    cover: NDArray[np.float32],
    background: NDArray[np.float32],
    picture: NDArray[np.uint8],
) -> None:
    """Fill the picture (h, w, 3) with the mean colours over the background."""
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            total = sums[row, column, 3]
            for channel in range(3):
                colour = background[channel]
                if total > 0.0:
                    colour += cover[row, column] * (sums[row, column, channel] / total - colour)
                picture[row, column, channel] = np.uint8(colour + np.float32(0.5))
