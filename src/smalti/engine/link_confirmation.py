"""Which links other links confirm, and which frames only unconfirmed links join.

A link is confirmed if its frames stay joined without it: then other links contradict it if it is wrong. A link that no
cycle passes through is a *bridge* of the graph of links. It is unconfirmed: nothing contradicts it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smalti.compiled import compiled
from smalti.records import PairNumbers

LONGEST_CONTESTED = 2
"""In longer rows of unconfirmed links, one more link says little about each of them."""


def are_confirmed(frames: int, ends: PairNumbers) -> NDArray[np.bool_]:
    """Tell which links (L,) are on a cycle; `ends` (L, 2) are their frames, no pair twice."""
    both = np.concatenate([ends, ends[:, ::-1]])
    order = np.argsort(both[:, 0], kind="stable")
    starts = np.searchsorted(both[order, 0], np.arange(frames + 1))
    number = np.tile(np.arange(len(ends)), 2)[order]
    return ~_bridges(starts, np.ascontiguousarray(both[order, 1]), number, len(ends))


def unconfirmed_frames(frames: int, ends: PairNumbers) -> NDArray[np.bool_]:
    """Tell which frames (N,) only unconfirmed links join to the main group of their part.

    The main group is the largest set of frames that confirmed links join. Where no link of a part is confirmed, all
    its frames but one are unconfirmed.
    """
    _, part = connected_components(_graph(frames, ends), directed=False)
    _, group = connected_components(_graph(frames, ends[are_confirmed(frames, ends)]), directed=False)
    sizes = np.bincount(group)
    largest = np.zeros(int(part.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(largest, part, sizes[group])
    most = np.full(len(largest), frames)
    chosen = sizes[group] == largest[part]
    np.minimum.at(most, part[chosen], group[chosen])
    return np.asarray(group != most[part])


def contested_links(frames: int, ends: PairNumbers, rejected: PairNumbers) -> NDArray[np.bool_]:
    """Tell which accepted links (L,) a rejected one contradicts while nothing tells which of them is wrong.

    These are unconfirmed links, at most LONGEST_CONTESTED in a row, between the frames of a rejected link (n, 2).
    """
    unconfirmed = np.flatnonzero(~are_confirmed(frames, ends))
    _, group = connected_components(_graph(frames, np.delete(ends, unconfirmed, axis=0)), directed=False)
    beside: dict[int, list[tuple[int, int]]] = {}
    for link, (first, second) in zip(unconfirmed.tolist(), group[ends[unconfirmed]].tolist(), strict=True):
        beside.setdefault(first, []).append((second, link))
        beside.setdefault(second, []).append((first, link))
    contested = np.zeros(len(ends), dtype=np.bool_)
    for start, end in group[rejected].tolist():
        if start == end:
            continue
        paths: list[tuple[int, list[int]]] = [(start, [])]
        for _ in range(LONGEST_CONTESTED):
            paths = [
                (there, [*path, link])
                for here, path in paths
                for there, link in beside.get(here, ())
                if link not in path
            ]
            for there, path in paths:
                if there == end:
                    contested[path] = True
    return contested


def _graph(frames: int, ends: PairNumbers) -> coo_array:
    return coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(frames, frames))


@compiled
def _bridges(
    starts: NDArray[np.int64], neighbours: NDArray[np.int64], number: NDArray[np.int64], links: int
) -> NDArray[np.bool_]:
    """Return which links are bridges, by depth-first search: nothing beyond a bridge reaches back before it."""
    frames = len(starts) - 1
    bridge = np.zeros(links, dtype=np.bool_)
    found = np.full(frames, -1)  # when the search reached a frame
    earliest = np.zeros(frames, dtype=np.int64)
    came_by = np.full(frames, -1)
    following = starts[:-1].copy()
    path = np.empty(frames, dtype=np.int64)
    time = 0
    for root in range(frames):
        if found[root] >= 0:
            continue
        depth, path[0] = 0, root
        found[root] = earliest[root] = time
        time += 1
        while depth >= 0:
            frame = path[depth]
            if following[frame] < starts[frame + 1]:
                edge = following[frame]
                following[frame] += 1
                other = neighbours[edge]
                if number[edge] == came_by[frame]:
                    continue
                if found[other] >= 0:
                    earliest[frame] = min(earliest[frame], found[other])
                else:
                    found[other] = earliest[other] = time
                    time += 1
                    came_by[other] = number[edge]
                    depth += 1
                    path[depth] = other
            else:
                depth -= 1
                if depth >= 0:
                    before = path[depth]
                    earliest[before] = min(earliest[before], earliest[frame])
                    if earliest[frame] > found[before]:
                        bridge[came_by[frame]] = True
    return bridge
