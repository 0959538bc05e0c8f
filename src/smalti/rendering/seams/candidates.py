"""Which frames may show a place, and how each of them sees it: a few candidates a cell of the canvas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.canvas import Window
from smalti.rendering.sampling.kernels import Bending, brighten, look_up, position, seen_position

SLOTS = 5
"""Candidates a cell: enough that three agree where one or two show something that moves."""

NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The best frames of every cell of a window of cells, in no order."""

    places: NDArray[np.int32]  # (h, w, SLOTS): of the frames, NONE where there are fewer
    merits: NDArray[np.float32]  # (h, w, SLOTS): the higher the rather
    colours: NDArray[np.float32]  # (h, w, SLOTS, 4): red, green, blue and sharpness, their light made even

    @classmethod
    def over(cls, cells: Window) -> Candidates:
        """Start with none."""
        shape = (cells.height, cells.width, SLOTS)
        return cls(
            np.full(shape, NONE, dtype=np.int32), np.zeros(shape, np.float32), np.zeros((*shape, 4), dtype=np.float32)
        )


@compiled
def enter(
    places: NDArray[np.int32],
    merits: NDArray[np.float32],
    colours: NDArray[np.float32],
    place: int,
    quality: float,
    reduced: NDArray[np.uint8],
    weights: NDArray[np.float32],
    frame_from_cell: NDArray[np.float64],
    bending: Bending,
    survey_from_frame: NDArray[np.float64],
    left: int,
    top: int,
    part: tuple[int, int, int, int],
    gains: NDArray[np.float32],
    flatness: NDArray[np.float32],
    table_from_frame: NDArray[np.float64],
) -> None:
    """Enter a frame wherever it beats the worst candidate; `part` (left, top, right, bottom) is the cells it touches.

    `weights` (h + 2, w + 2) are the signed distances to the frame's border, with a border of one pixel.
    """
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    for row in range(part[1] - top, part[3] - top):
        for column in range(part[0] - left, part[2] - left):
            x, y = seen_position(frame_from_cell, bending, left + column, top + row)
            if not (-0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5):
                continue
            weight = weights[min(int(y + 0.5), height - 1) + 1, min(int(x + 0.5), width - 1) + 1]
            if weight <= 0.0:
                continue
            merit = np.float32(weight * quality)
            worst = 0
            for slot in range(SLOTS):
                if places[row, column, slot] == NONE:
                    worst = slot
                    break
                if merits[row, column, slot] < merits[row, column, worst]:
                    worst = slot
            if places[row, column, worst] != NONE and merits[row, column, worst] >= merit:
                continue
            places[row, column, worst] = place
            merits[row, column, worst] = merit
            bright = brighten(flatness, table_from_frame, x, y)
            u, v = position(survey_from_frame, x, y)
            look_up(reduced, u, v, colours[row, column, worst])
            mean_gain = (gains[0] + gains[1] + gains[2]) / np.float32(3.0)
            for channel in range(4):
                colours[row, column, worst, channel] *= bright * (gains[channel] if channel < 3 else mean_gain)
