"""Which frames see the same part of the scene."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.affine import apply
from smalti.geometry.outline import Outline
from smalti.records import PairNumbers, Points, Transforms

MOST_CORNERS = 8


def find_overlaps(mosaic_from_frame: Transforms, outline: Outline, least: float) -> PairNumbers:
    """Return the pairs (n, 2), i < j, whose intersection covers at least that fraction of the smaller of the two."""
    corners = apply(mosaic_from_frame, outline.corners)
    areas = outline.area * np.abs(np.linalg.det(mosaic_from_frame[:, :, :2]))
    # Only frames whose surrounding boxes meet can overlap.
    low, high = corners.min(axis=1), corners.max(axis=1)
    meets = (low[:, None] <= high[None]).all(axis=2)
    pairs = np.argwhere(np.triu(meets & meets.T, k=1))
    covered = _intersect(_oriented(corners), pairs) / np.minimum(areas[pairs[:, 0]], areas[pairs[:, 1]])
    return np.asarray(pairs[covered >= least], np.int64)


def _oriented(corners: Points) -> Points:
    """Let all footprints run clockwise on the screen, mirrored frames too."""
    side, next_side = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 1]
    mirrored = side[:, 0] * next_side[:, 1] < side[:, 1] * next_side[:, 0]
    oriented: Points = np.where(mirrored[:, None, None], corners[:, ::-1], corners)
    return np.ascontiguousarray(oriented)


@compiled
def _intersect(corners: Points, pairs: PairNumbers) -> NDArray[np.float64]:
    """Return the areas (n,) in which the quadrangles of each pair intersect."""
    areas = np.zeros(len(pairs))
    polygon, cut = np.empty((MOST_CORNERS, 2)), np.empty((MOST_CORNERS, 2))
    for n in range(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        for k in range(4):
            polygon[k, 0], polygon[k, 1] = corners[j, k, 0], corners[j, k, 1]
        count = 4
        for side in range(4):
            count = _cut(polygon, count, corners[i, side], corners[i, (side + 1) % 4], cut)
            polygon, cut = cut, polygon
        for k in range(count):
            after = (k + 1) % count
            areas[n] += (polygon[k, 0] * polygon[after, 1] - polygon[after, 0] * polygon[k, 1]) / 2
    return areas


@compiled
def _cut(polygon: Points, count: int, start: Points, end: Points, cut: Points) -> int:
    """Keep the part of a convex polygon on the right-hand side of a line; return its number of corners."""
    kept = 0
    for k in range(count):
        x0, y0 = polygon[k, 0], polygon[k, 1]
        x1, y1 = polygon[(k + 1) % count, 0], polygon[(k + 1) % count, 1]
        right_0 = (end[0] - start[0]) * (y0 - start[1]) - (end[1] - start[1]) * (x0 - start[0])
        right_1 = (end[0] - start[0]) * (y1 - start[1]) - (end[1] - start[1]) * (x1 - start[0])
        if right_0 >= 0:
            cut[kept, 0], cut[kept, 1] = x0, y0
            kept += 1
        if (right_0 > 0 > right_1) or (right_0 < 0 < right_1):
            t = right_0 / (right_0 - right_1)
            cut[kept, 0], cut[kept, 1] = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
            kept += 1
    return kept
