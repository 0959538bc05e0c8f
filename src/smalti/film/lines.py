"""Smooth lines over a picture."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Points

_FRACTION_BITS = 4
_FARTHEST = 1e5
"""Lines are drawn to 1/16 pixel, and lead no further out than this."""


def lay_lines(
    picture: NDArray[np.uint8],
    lines: Sequence[tuple[Points, float]],
    colour: tuple[int, int, int],
    *,
    thickness: int,
    is_closed: bool,
) -> None:
    """Draw lines (n, 2) of one colour into a picture (h, w, 3), each as strongly as told, from 0 to 1."""
    strengths = np.zeros(picture.shape[:2], dtype=np.uint8)
    for points, strength in lines:
        fixed = np.round(np.clip(points, -_FARTHEST, _FARTHEST) * 2**_FRACTION_BITS).astype(np.int32)
        cv2.polylines(strengths, [fixed], is_closed, round(255 * strength), thickness, cv2.LINE_AA, _FRACTION_BITS)
    _mix_in(picture, strengths, np.array(colour, dtype=np.float32))


@compiled
def _mix_in(picture: NDArray[np.uint8], strengths: NDArray[np.uint8], colour: NDArray[np.float32]) -> None:
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            if strengths[row, column] > 0:
                share = np.float32(strengths[row, column]) / np.float32(255.0)
                for channel in range(3):
                    old = np.float32(picture[row, column, channel])
                    picture[row, column, channel] = np.uint8(old + share * (colour[channel] - old) + np.float32(0.5))
