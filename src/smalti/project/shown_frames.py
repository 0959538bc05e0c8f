"""Choose the frames that a mosaic shows: the keyframes, and others only where no keyframe shows a place."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.records import Homographies, Points

CELLS = 48
"""Of a frame's longer side: the grid on which it is seen which places are shown."""

MOST_CELLS = 50_000_000
LEAST_NEW = 3
"""Cells that a frame has to add."""


def fill_gaps(
    maps: Mapping[int, Homographies], chosen: Collection[int], lens: Lens, mask: NDArray[np.bool_] | None
) -> set[int]:
    """Return the other frames of `maps` (3, 3) that show a place that the chosen ones do not, the fewest first."""
    others = [number for number in sorted(maps) if number not in chosen]
    if not others:
        return set()
    border = lens.undistort(_border(mask, lens))
    outlines = {number: apply_map(one, border) for number, one in maps.items()}
    corners = np.concatenate(list(outlines.values()))
    low, high = corners.min(axis=0), corners.max(axis=0)
    cell = max(lens.unit * 2.0 / CELLS, float(np.sqrt(np.prod(high - low) / MOST_CELLS)))
    shown = np.zeros(np.ceil((high - low) / cell).astype(int)[::-1] + 2, dtype=np.uint8)
    for number in chosen:
        _look(shown, (outlines[number] - low) / cell, fill=True)
    waiting = [(-_look(shown, (outlines[number] - low) / cell), number) for number in others]
    heapq.heapify(waiting)
    added = set()
    while waiting:
        _, number = heapq.heappop(waiting)
        new = _look(shown, (outlines[number] - low) / cell)
        if new < LEAST_NEW:
            continue
        if waiting and new < -waiting[0][0]:  # others have filled a part of it
            heapq.heappush(waiting, (-new, number))
            continue
        _look(shown, (outlines[number] - low) / cell, fill=True)
        added.add(number)
    return added


def _border(mask: NDArray[np.bool_] | None, lens: Lens) -> Points:
    """Return the border (n, 2) of what a frame shows, px."""
    if mask is None:
        return lens.distort(lens.rim)
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not contours:
        return lens.outline.corners
    return np.asarray(max(contours, key=cv2.contourArea).reshape(-1, 2), dtype=np.float64)


def _look(shown: NDArray[np.uint8], outline: Points, *, fill: bool = False) -> int:
    """Return how many cells within an outline (n, 2), in cells, were not shown; fill them if asked to."""
    left, top = np.maximum(np.floor(outline.min(axis=0)).astype(int), 0)
    right, bottom = np.ceil(outline.max(axis=0)).astype(int) + 1
    window = shown[top:bottom, left:right]
    inside = np.zeros(window.shape, dtype=np.uint8)
    cv2.fillPoly(inside, [np.round(outline - (left, top)).astype(np.int32)], 1)
    new = (inside == 1) & (window == 0)
    if fill:
        window[inside == 1] = 1
    return int(np.count_nonzero(new))
