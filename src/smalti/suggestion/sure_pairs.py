"""Choose pairs that surely overlap, to be matched near their expected place once the mosaic is known.

Questions remove the drift. What remains is the noise of every link and the relief that each pair sees differently, and
these only average out. A pair whose place is known takes a fraction of the time of a question, because few keypoints
have to be compared. So such pairs are chosen at once and without weighing each: those whose relative position is least
certain first, about the same number for every frame.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Pair, PairNumbers, pair_key
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.state_view import CLOSEST_ASKED, View

SURE = 0.9
"""The least probability of a yes."""

LEAST_SHARED = 0.2
"""The least share of frame j that frame i shows, by the mosaic: in a narrower strip there are few matches."""

LEAST_STRIP, FEW_LINKS = 0.04, 4
"""The least share of frame j where the place is known to a few pixels. Narrow strips are tried where a frame has so few
links at most."""

WELL_KNOWN, WELL_KNOWN_PX = 0.005, 4.0
"""Share of a frame's diagonal, and pixels in small frames: the deviation of a place that is known well."""

NEIGHBOURS = 16
"""Overlapping frames that are considered of a frame, spread over time."""

MOST_PER_FRAME = 6
"""Pairs of a frame."""

GRID = 6
"""Points a side of a frame, to measure what two frames share."""

BLOCK = 10_000
"""Pairs whose shared area is measured at once."""


def sure_pairs(view: View, posterior: Posterior, most: int) -> list[Pair]:
    """Return at most so many pairs that surely overlap and were not answered."""
    maps, outline = view.mosaic_from_frame, view.outline
    pairs = _neighbours(maps, view.estimate.part, outline, CLOSEST_ASKED)
    pairs = pairs[view.may_be_asked(pairs)]
    shared = _shared(maps, outline, pairs)
    pairs, shared = pairs[shared >= LEAST_SHARED], shared[shared >= LEAST_SHARED]
    if most <= 0 or not len(pairs):
        return []
    sure = posterior.of_pairs(pairs) >= SURE
    pairs, shared = pairs[sure], shared[sure]
    return _spread(pairs, shared * view.covariance.of_pairs(pairs).cov[:, 0, ::2].sum(axis=1), view.frames, most)


def unmatched_pairs(view: View, failed: PairNumbers, most: int) -> list[Pair]:
    """Return at most so many pairs without a link that share something at a place that is known to a few pixels.

    They are those that `failed` (n, 2) before the place was known, and narrow strips, which were not worth a question,
    of frames with few links.
    """
    maps, outline = view.mosaic_from_frame, view.outline
    pairs = _neighbours(maps, view.estimate.part, outline, 1)
    keys = pair_key(*pairs.T)
    links = np.bincount(view.linked.ravel(), minlength=view.frames)
    is_new = np.isin(keys, pair_key(*failed.T)) | (~view.is_settled(pairs) & (links[pairs] <= FEW_LINKS).any(axis=1))
    pairs = pairs[is_new & ~view.is_linked(pairs)]
    shared = _shared(maps, outline, pairs)
    pairs, shared = pairs[shared >= LEAST_STRIP], shared[shared >= LEAST_STRIP]
    if most <= 0 or not len(pairs):
        return []
    variance = view.covariance.of_pairs(pairs).cov[:, 0, ::2].sum(axis=1)
    known = variance <= max(WELL_KNOWN * 2.0 * outline.outer_half_side, WELL_KNOWN_PX) ** 2
    return _spread(pairs[known], (shared * variance)[known], view.frames, most)


def _spread(pairs: PairNumbers, uncertainty: NDArray[np.float64], frames: int, most: int) -> list[Pair]:
    """Return at most so many pairs, the least certain first, and few of every frame."""
    chosen, count = [], np.zeros(frames, dtype=np.int64)
    for n in np.argsort(-uncertainty, kind="stable"):
        i, j = pairs[n]
        if count[i] < MOST_PER_FRAME and count[j] < MOST_PER_FRAME:
            count[[i, j]] += 1
            chosen.append(Pair(int(i), int(j)))
        if len(chosen) == most:
            break
    return chosen


def _neighbours(maps: Homographies, part: NDArray[np.int64], outline: Outline, closest: int) -> PairNumbers:
    """Return pairs i < j (n, 2) of one mosaic with centres nearby, up to `NEIGHBOURS` of every i, spread over time."""
    centres = apply_map(maps, outline.centre[None])[:, 0]
    across = apply_map(maps, outline.corners)
    reach = np.linalg.norm(across - centres[:, None], axis=2).mean(axis=1)
    tree, found = cKDTree(centres), []
    for i in range(len(centres)):
        near = np.array(tree.query_ball_point(centres[i], 2.0 * reach[i]), dtype=np.int64)
        near = np.sort(near[(near >= i + closest) & (part[near] == part[i])])
        chosen = near[np.unique(np.linspace(0, len(near) - 1, min(len(near), NEIGHBOURS)).round().astype(np.int64))]
        found.append(np.column_stack([np.full(len(chosen), i), chosen]))
    return np.concatenate(found)


def _shared(maps: Homographies, outline: Outline, pairs: PairNumbers) -> NDArray[np.float64]:
    """Return the share (n,) of frame j that frame i shows."""
    steps = (np.arange(GRID) + 0.5) / GRID
    x, y = np.meshgrid(outline.left + steps * outline.width, outline.top + steps * outline.height)
    points, inverse = np.column_stack([x.ravel(), y.ravel()]), np.linalg.inv(maps)
    found = []
    for start in range(0, len(pairs), BLOCK):
        i, j = pairs[start : start + BLOCK].T
        found.append(outline.contains(apply_map(inverse[i] @ maps[j], points)).mean(axis=1))
    return np.concatenate([np.empty(0), *found])
