"""The adjustment once more: a part of a mosaic with few links, and with more and more of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smalti.adjustment.adjustment import MIN_FRAMES, Adjustment
from smalti.adjustment.link import Link
from smalti.adjustment.refinement import refine
from smalti.belief import ENOUGH_GAIN
from smalti.geometry.affine import square
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Pair, Transforms


def replay(
    stages: Sequence[Sequence[Link]], numbers: Sequence[int], affine: Transforms, outline: Outline, reference: int
) -> Iterator[tuple[Homographies, NDArray[np.bool_]]]:
    """Yield for every stage, a list of links that begins with those of the stage before, where the frames are.

    That is maps (n, 3, 3) to the reference frame, and which frames (n,) the links connect with it. Links and
    `reference` count the frames of the part; `numbers` (ascending) are theirs in the source and `affine` (n, 2, 3)
    their maps at last. Frames that no link ever reaches were laid beside another: they go with the nearest.
    """
    beside, beside_from_frame = _lay_beside(stages[-1], numbers, affine, reference)
    maps = affine.copy()
    before = np.zeros(len(numbers), dtype=np.bool_)
    for links in stages:
        connected = _connected(links, len(numbers), reference)
        # Frames that come in have no place yet to begin from.
        start = maps[connected] if np.array_equal(connected, before) else None
        maps[connected] = _adjust(links, connected, outline, reference, start)
        before = connected
        yield square(maps)[beside] @ beside_from_frame, connected[beside]


def _adjust(
    links: Sequence[Link], connected: NDArray[np.bool_], outline: Outline, reference: int, start: Transforms | None
) -> Transforms:
    """Return the maps (m, 2, 3) of the connected frames."""
    if connected.sum() < MIN_FRAMES:
        return np.eye(2, 3)[None]
    place = np.cumsum(connected) - 1
    inner = [
        replace(link, pair=Pair(int(place[link.pair.i]), int(place[link.pair.j])))
        for link in links
        if connected[link.pair.i]
    ]
    adjustment = Adjustment(int(connected.sum()), outline, inner, reference=int(place[reference]))
    return refine(adjustment, start, smallest_gain=ENOUGH_GAIN).mosaic_from_frame


def _connected(links: Sequence[Link], frames: int, reference: int) -> NDArray[np.bool_]:
    ends = np.array([(link.pair.i, link.pair.j) for link in links], dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(frames, frames))
    _, part = connected_components(graph, directed=False)
    return np.asarray(part == part[reference])


def _lay_beside(
    links: Sequence[Link], numbers: Sequence[int], affine: Transforms, reference: int
) -> tuple[NDArray[np.int64], Homographies]:
    """Return for every frame the one it goes with, itself if links reach it, and the map (3, 3) to that one."""
    reached = np.flatnonzero(_connected(links, len(numbers), reference))
    at = np.asarray(numbers)
    nearest = reached[np.argmin(np.abs(at[:, None] - at[reached]), axis=1)]
    maps = square(affine)
    return nearest, np.linalg.inv(maps[nearest]) @ maps
