"""How far two mosaics of the same frames are from each other, where frames overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.maps import apply_map
from smalti.geometry.outline import Outline
from smalti.records import Homographies, PairNumbers, Points

GRID = 6
"""Points of a frame along either side; two frames overlap if one of them lies in both."""

MOST_PAIRS = 20_000
"""Of frames that may overlap, all or so many evenly spread are looked at."""


class Difference:
    """The paper's relative error with a mosaic in the place of the truth.

    It is the RMS distance, in pixels of frame i, between where two mosaics put the points of frame j that i shows, over
    all pairs of frames that overlap on the mosaic that stands for the truth. Pairs of its different parts do not count.
    Where the other mosaic has not joined two frames yet, nobody knows where they lie to each other: their points count
    as being off by a frame's diagonal, and so does what is off by more.
    """

    def __init__(self, mosaic_from_frame: Homographies, outline: Outline, part: NDArray[np.int64]) -> None:
        """Take the mosaic to compare with (N, 3, 3), and the part of it that every frame (N,) is on."""
        pairs = _near(mosaic_from_frame, outline, part)
        chosen = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_PAIRS)).round().astype(int)
        self._i, self._j = pairs[chosen].T
        self._points = _grid(outline)
        self._seen = self._map(mosaic_from_frame)  # (n, points, 2)
        self._shown = outline.contains(self._seen)
        self._farthest = 2.0 * outline.outer_half_side
        assert self._shown.any(), "linked frames overlap"

    def px(self, mosaic_from_frame: Homographies, part: NDArray[np.int64]) -> float:
        """Return how far a mosaic of the same frames, in parts of its own, is from the one to compare with."""
        off = np.linalg.norm(self._map(mosaic_from_frame) - self._seen, axis=2)
        off[part[self._i] != part[self._j]] = np.inf
        return float(np.sqrt(np.mean(np.minimum(off, self._farthest)[self._shown] ** 2)))

    def _map(self, mosaic_from_frame: Homographies) -> Points:
        return apply_map(np.linalg.inv(mosaic_from_frame)[self._i] @ mosaic_from_frame[self._j], self._points)


def _near(mosaic_from_frame: Homographies, outline: Outline, part: NDArray[np.int64]) -> PairNumbers:
    """Return the pairs i < j (n, 2) of a part whose circumscribed circles meet."""
    centres = apply_map(mosaic_from_frame, outline.centre[None])[:, 0]
    radius = np.linalg.norm(apply_map(mosaic_from_frame, outline.corners) - centres[:, None], axis=2).max(axis=1)
    found = []
    for i in range(len(part) - 1):
        distance = np.linalg.norm(centres[i + 1 :] - centres[i], axis=1)
        j = i + 1 + np.flatnonzero((distance < radius[i] + radius[i + 1 :]) & (part[i + 1 :] == part[i]))
        found.append(np.column_stack([np.full(len(j), i), j]))
    return np.concatenate(found)


def _grid(outline: Outline) -> Points:
    """Return the middles of GRID × GRID cells of a frame."""
    share = (np.arange(GRID) + 0.5) / GRID
    x, y = np.meshgrid(outline.left + share * outline.width, outline.top + share * outline.height)
    return np.column_stack([x.ravel(), y.ravel()])
