"""The candidate frames of every cell of the canvas, and the selection of frames for the whole mosaic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.homographies import invert_homographies, project_points
from smalti.geometry.lens import Lens
from smalti.rendering.canvas import Window
from smalti.rendering.frame_survey import CLEAR, DOUBTFUL, HIDDEN, NO_WORTH, WORTH, cell_of
from smalti.rendering.sampling_kernels import Bending, brighten, distorted_position, look_up, position

SLOTS = 5
"""Candidates of a cell: enough that three agree where one or two show something that moves."""

NONE = -1

OBSTRUCTED = 10.0
"""What a doubtful cell takes from the merit of a frame: more than the difference between its middle and its rim."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The best frames of every cell of a window of cells, in no order."""

    indices: NDArray[np.int32]  # (h, w, SLOTS): of the frames, NONE in free slots
    merits: NDArray[np.float32]  # (h, w, SLOTS): the higher the better
    colours: NDArray[np.float32]  # (h, w, SLOTS, 4): red, green, blue and sharpness, corrected for light

    @classmethod
    def over(cls, cells: Window) -> Candidates:
        """Start without candidates."""
        shape = (cells.height, cells.width, SLOTS)
        return cls(
            np.full(shape, NONE, dtype=np.int32), np.zeros(shape, np.float32), np.zeros((*shape, 4), dtype=np.float32)
        )


@compiled
def enter(
    indices: NDArray[np.int32],
    merits: NDArray[np.float32],
    colours: NDArray[np.float32],
    index: int,
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
    """Enter a frame wherever it beats the worst candidate. `part` (left, top, right, bottom) are the cells it touches.

    `weights` (h + 2, w + 2) are the signed distances to the frame's border, with a border of one pixel.
    """
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    for row in range(part[1] - top, part[3] - top):
        for column in range(part[0] - left, part[2] - left):
            x, y = distorted_position(frame_from_cell, bending, left + column, top + row)
            if not (-0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5):
                continue
            weight = weights[min(int(y + 0.5), height - 1) + 1, min(int(x + 0.5), width - 1) + 1]
            if weight <= 0.0:
                continue
            merit = np.float32(weight * quality)
            if reduced.shape[2] > WORTH:
                u, v = position(survey_from_frame, x, y)
                nearest_row = min(max(int(v + 0.5), 0), reduced.shape[0] - 1)
                nearest_column = min(max(int(u + 0.5), 0), reduced.shape[1] - 1)
                worth = reduced[nearest_row, nearest_column, WORTH]
                if worth == HIDDEN:
                    continue
                if worth == DOUBTFUL:
                    merit -= np.float32(OBSTRUCTED)
            worst = 0
            for slot in range(SLOTS):
                if indices[row, column, slot] == NONE:
                    worst = slot
                    break
                if merits[row, column, slot] < merits[row, column, worst]:
                    worst = slot
            if indices[row, column, worst] != NONE and merits[row, column, worst] >= merit:
                continue
            indices[row, column, worst] = index
            merits[row, column, worst] = merit
            bright = brighten(flatness, table_from_frame, x, y)
            u, v = position(survey_from_frame, x, y)
            look_up(reduced, u, v, colours[row, column, worst])
            mean_gain = (gains[0] + gains[1] + gains[2]) / np.float32(3.0)
            for channel in range(4):
                colours[row, column, worst, channel] *= bright * (gains[channel] if channel < 3 else mean_gain)


VIEWS = 3
"""Frames at every point, so that two can outvote something that moves through the third."""

WELL_INSIDE = 0.3
"""From this weight on, a frame shows a point well."""

LEAST_NEW_SHARE = 0.1
"""A frame is worth a seam if more than this share of the points it shows well lack views."""

CELLS_ACROSS = 24


def select_frames(
    mosaic_from_frame: NDArray[np.float64],
    lens: Lens,
    weights: NDArray[np.float32],
    quality: NDArray[np.float64],
    views: int = VIEWS,
    worth_of: Callable[[int], NDArray[np.uint8]] = lambda index: NO_WORTH,
) -> NDArray[np.int64]:
    """Return the indices of frames, ascending, that cover what all frames cover, every point `views` times if possible.

    The best frames are taken first; of equally good ones, those far apart in time. `weights` (h + 2, w + 2) are those
    of `Feather`. `worth_of` returns the worth of the survey's cells of a frame: hidden ones it does not cover.
    """
    corners = project_points(mosaic_from_frame, lens.outline.corners)
    rims = project_points(mosaic_from_frame, lens.rim)
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    step = float(np.median(sides.max(axis=1))) / CELLS_ACROSS
    low = rims.min(axis=(0, 1))
    columns, rows = np.ceil((rims.max(axis=(0, 1)) - low) / step).astype(int) + 1
    well_covered = np.zeros((rows, columns), dtype=np.int32)
    covered = np.zeros((rows, columns), dtype=np.bool_)
    seen_clearly = np.zeros((rows, columns), dtype=np.bool_)
    taken = []
    for index in np.lexsort((_spread_out(len(quality)), -np.round(quality, 1))):
        cells, weight, clear = _cells(
            mosaic_from_frame[index], lens, rims[index], low, step, weights, worth_of(int(index))
        )
        row, column = cells.T
        well = clear & (weight >= WELL_INSIDE)
        lacking = well & (well_covered[row, column] < views)
        shows_more = not covered[row, column].all() or not seen_clearly[row[clear], column[clear]].all()
        if lacking.sum() > LEAST_NEW_SHARE * well.sum() or shows_more:
            taken.append(int(index))
            np.add.at(well_covered, (row[well], column[well]), 1)
            covered[row, column] = True
            seen_clearly[row[clear], column[clear]] = True
    return np.array(sorted(taken), dtype=np.int64)


def _spread_out(count: int) -> NDArray[np.int64]:
    """Return the rank of each of `count` items in an order that always goes to the middle of the largest gap."""
    bits = max(1, (count - 1).bit_length())
    numbers = np.arange(count)
    reversed_bits = sum(((numbers >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
    return np.asarray(reversed_bits, dtype=np.int64)


def _cells(
    mosaic_from_frame: NDArray[np.float64],
    lens: Lens,
    rim: NDArray[np.float64],
    low: NDArray[np.float64],
    step: float,
    weights: NDArray[np.float32],
    worth: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.bool_]]:
    """Return the cells (m, 2), row before column, that a frame covers, its weight in each, and whether it is clear."""
    first = np.floor((rim.min(axis=0) - low) / step).astype(int)
    last = np.ceil((rim.max(axis=0) - low) / step).astype(int)
    columns, rows = np.meshgrid(np.arange(first[0], last[0] + 1), np.arange(first[1], last[1] + 1))
    cells = np.stack([rows.ravel(), columns.ravel()], axis=1)
    points = low + step * cells[:, ::-1]
    undistorted = project_points(invert_homographies(mosaic_from_frame), points)
    in_frame = np.rint(lens.distort(undistorted)).astype(np.int64)
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    inside = (in_frame >= 0).all(axis=1) & (in_frame[:, 0] < width) & (in_frame[:, 1] < height)
    cells, in_frame = cells[inside], in_frame[inside]
    weight = weights[in_frame[:, 1] + 1, in_frame[:, 0] + 1]
    shown, clear = weight > 0, np.ones(len(weight), dtype=np.bool_)
    if worth.size:
        cell = cell_of(width, height)
        here = worth[in_frame[:, 1] // cell, in_frame[:, 0] // cell]
        shown, clear = shown & (here != HIDDEN), here == CLEAR
    return cells[shown], weight[shown], clear[shown]
