"""Which frames see the same places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from smalti.geometry.homography import project
from smalti.geometry.outline import Outline

MOST_NEIGHBOURS = 8
"""Frames that each frame is compared with, beside the one that follows it."""


def find_neighbours(mosaic_from_frame: NDArray[np.float64], outline: Outline) -> NDArray[np.int64]:
    """Return pairs (m, 2) of places whose frames overlap, i < j: some of each frame's, spread evenly over time.

    Neighbours in time are alike anyway; what a strip must agree with is the strip beside it.
    """
    centres = project(mosaic_from_frame, outline.centre[None])[:, 0]
    corners = project(mosaic_from_frame, outline.corners)
    reach = np.linalg.norm(corners - centres[:, None], axis=2)
    # Centres nearer than half a frame's diagonal: enough in common to compare.
    near = cKDTree(centres)
    chosen: set[tuple[int, int]] = set()
    for i, centre in enumerate(centres):
        others = np.array(sorted(set(near.query_ball_point(centre, 1.2 * reach[i].max())) - {i}), dtype=np.int64)
        if len(others) > MOST_NEIGHBOURS:
            others = others[np.linspace(0, len(others) - 1, MOST_NEIGHBOURS).round().astype(int)]
        chosen.update((min(i, int(j)), max(i, int(j))) for j in others)
        if i + 1 < len(centres):
            chosen.add((i, i + 1))
    return np.array(sorted(chosen), dtype=np.int64).reshape(-1, 2)
