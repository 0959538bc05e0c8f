"""How far two mosaics of the same frames are from each other, where frames overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.affine import apply, compose, invert
from smalti.geometry.outline import Outline
from smalti.records import PairNumbers, Points, Transforms

GRID = 6
"""Points of a frame along either side; two frames overlap if one of them lies in both."""

MOST_PAIRS = 50_000
"""Of frames that may overlap, all or so many evenly spread are looked at."""


class Difference:
    """The paper's relative error with a mosaic in the place of the truth.

    It is the RMS distance, in pixels of frame i, between where two mosaics put the points of frame j that i shows, over
    all pairs of frames that overlap on the mosaic that stands for the truth. Pairs of its different parts, which only a
    guess joins, do not count. Parts that the other mosaic has not joined yet lie there where the guess puts them.
    """

    def __init__(self, mosaic_from_frame: Transforms, outline: Outline, part: NDArray[np.int64]) -> None:
        """Take the mosaic to compare with (N, 2, 3), and the part of it that every frame (N,) is on."""
        pairs = _near(mosaic_from_frame, outline, part)
        chosen = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_PAIRS)).round().astype(int)
        self._i, self._j = pairs[chosen].T
        self._i_from_j = _relative(mosaic_from_frame, self._i, self._j)
        points = _grid(outline)
        shown = outline.contains(apply(self._i_from_j, points)).astype(np.float64)
        flat = np.column_stack([points, np.ones(len(points))])
        # (n, 3, 3), Σ x̃ x̃ᵀ over the shared points of a pair; the last entry counts them.
        self._moments = np.einsum("np,pa,pb->nab", shown, flat, flat, optimize=["einsum_path", (1, 2), (0, 1)])
        assert self._moments[:, 2, 2].any(), "linked frames overlap"

    def px(self, mosaic_from_frame: Transforms) -> float:
        """Return how far a mosaic of the same frames is from the one to compare with."""
        error = _relative(mosaic_from_frame, self._i, self._j) - self._i_from_j
        # Σ |E x̃|² over the points of a pair is tr(E M Eᵀ).
        squares = np.sum((error @ self._moments) * error)
        return float(np.sqrt(max(squares, 0.0) / np.sum(self._moments[:, 2, 2])))


def _relative(mosaic_from_frame: Transforms, i: NDArray[np.int64], j: NDArray[np.int64]) -> Transforms:
    return compose(invert(mosaic_from_frame)[i], mosaic_from_frame[j])


def _near(mosaic_from_frame: Transforms, outline: Outline, part: NDArray[np.int64]) -> PairNumbers:
    """Return the pairs i < j (n, 2) of a part whose circumscribed circles meet."""
    centres = apply(mosaic_from_frame, outline.centre[None])[:, 0]
    radius = outline.outer_half_side * np.linalg.norm(mosaic_from_frame[:, :, :2], ord=2, axis=(1, 2))
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
