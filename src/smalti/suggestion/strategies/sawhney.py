"""Sawhney, Hsu and Kumar (1998), as the paper's section 6.2 implements it: near on the mosaic, far in the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from smalti.geometry.affine import apply
from smalti.records import Suggestion
from smalti.suggestion.ranking import rank
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View

SMALLEST_ARC = 1e-9
"""Arcs are at least this long: a sparse graph takes an arc of length 0 for no arc, and the ratio needs one."""


@dataclass(frozen=True, slots=True)
class Sawhney:
    """Asks the largest max(0, 1 - l) · max(0, L/l - 1): l the arc on the mosaic, L the shortest path by links."""

    name: str = "sawhney"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        arc = arc_lengths(view)
        ends = view.adjustment.ends
        graph = coo_array(
            (arc[ends[:, 0], ends[:, 1]], (ends[:, 0], ends[:, 1])), shape=(view.frames, view.frames)
        ).tocsr()
        path = dijkstra(graph, directed=False)
        reward = np.maximum(0.0, 1.0 - arc) * np.maximum(0.0, path / arc - 1.0)
        return as_suggestions(rank(reward, view.candidates, top))


def arc_lengths(view: View) -> NDArray[np.float64]:
    """Return l (N, N) of all pairs, registered or not (Eq. sawhney_overlap_score)."""
    maps, outline = view.mosaic_from_frame, view.adjustment.outline
    centres = apply(maps, outline.centre[None])[:, 0]
    corners = apply(maps, outline.corners)
    radius = np.linalg.norm(corners - centres[:, None], axis=2).mean(axis=1)
    distance = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    gap = np.maximum(0.0, distance - np.abs(radius[:, None] - radius[None]))
    arc: NDArray[np.float64] = np.maximum(gap / (2.0 * np.minimum(radius[:, None], radius[None])), SMALLEST_ARC)
    return arc
