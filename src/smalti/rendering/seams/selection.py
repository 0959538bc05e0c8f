"""Which frames a mosaic of one frame a pixel is made of: in a video, few of them are enough."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homography import invert_homographies, project
from smalti.geometry.lens import Lens

VIEWS = 3
"""Frames that shall see every place, so that two can outvote what moves through the third."""

WELL_INSIDE = 0.3
"""Weight from which on a frame sees a place well."""

LEAST_NEWS = 0.1
"""Share of what a frame sees well that must lack views, for the frame to be worth a seam."""

CELLS_ACROSS = 24


def select_frames(
    mosaic_from_frame: NDArray[np.float64],
    lens: Lens,
    weights: NDArray[np.float32],
    quality: NDArray[np.float64],
    views: int = VIEWS,
) -> NDArray[np.int64]:
    """Return the places of frames, ascending, that together see what all see, every place `views` times if they can.

    The best are taken first, and of equally good ones those far apart in time. `weights` (h + 2, w + 2) are those of
    `Feather`.
    """
    corners = project(mosaic_from_frame, lens.outline.corners)
    rims = project(mosaic_from_frame, lens.rim)
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    step = float(np.median(sides.max(axis=1))) / CELLS_ACROSS
    low = rims.min(axis=(0, 1))
    columns, rows = np.ceil((rims.max(axis=(0, 1)) - low) / step).astype(int) + 1
    seen_well = np.zeros((rows, columns), dtype=np.int32)
    seen = np.zeros((rows, columns), dtype=np.bool_)
    taken = []
    for place in np.lexsort((_spread_out(len(quality)), -np.round(quality, 1))):
        cells, weight = _cells(mosaic_from_frame[place], lens, rims[place], low, step, weights)
        row, column = cells.T
        well = weight >= WELL_INSIDE
        lacking = well & (seen_well[row, column] < views)
        if lacking.sum() > LEAST_NEWS * well.sum() or not seen[row, column].all():
            taken.append(int(place))
            np.add.at(seen_well, (row[well], column[well]), 1)
            seen[row, column] = True
    return np.array(sorted(taken), dtype=np.int64)


def _spread_out(count: int) -> NDArray[np.int64]:
    """Return the rank of each of `count` in an order that goes to the middle of the largest gap again and again."""
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
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the cells (m, 2), row before column, that a frame sees, and by which weight."""
    first = np.floor((rim.min(axis=0) - low) / step).astype(int)
    last = np.ceil((rim.max(axis=0) - low) / step).astype(int)
    columns, rows = np.meshgrid(np.arange(first[0], last[0] + 1), np.arange(first[1], last[1] + 1))
    cells = np.stack([rows.ravel(), columns.ravel()], axis=1)
    points = low + step * cells[:, ::-1]
    straight = project(invert_homographies(mosaic_from_frame), points)
    in_frame = np.rint(lens.bend(straight)).astype(np.int64)
    height, width = weights.shape[0] - 2, weights.shape[1] - 2
    inside = (in_frame >= 0).all(axis=1) & (in_frame[:, 0] < width) & (in_frame[:, 1] < height)
    cells, in_frame = cells[inside], in_frame[inside]
    weight = weights[in_frame[:, 1] + 1, in_frame[:, 0] + 1]
    return cells[weight > 0], weight[weight > 0]
