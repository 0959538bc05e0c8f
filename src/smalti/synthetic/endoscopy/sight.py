"""What pairs of frames see in common, through their round fields of view."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from smalti.records import Points
from smalti.synthetic.endoscopy.field_of_view import FieldsOfView
from smalti.synthetic.truth import Sights


def find_sights(
    fields: FieldsOfView,
    scene_from_frame: Callable[[int, Points], Points],
    frame_from_scene: Callable[[int, Points], Points],
    least: float,
) -> tuple[NDArray[np.float32], Sights]:
    """Return which part (N, N) of the field of j each i < j sees, and the points of pairs that share `least` of it."""
    frames = len(fields.centres)
    grids = np.stack([fields.grid(n) for n in range(frames)])
    own = np.stack([fields.contains(n, grid) for n, grid in enumerate(grids)])
    in_scene = np.stack([scene_from_frame(n, grid) for n, grid in enumerate(grids)])
    middles = in_scene.mean(axis=1)
    reaches = np.linalg.norm(in_scene - middles[:, None], axis=2).max(axis=1)
    shares = np.zeros((frames, frames), np.float32)
    pairs, points_i, seen = [np.empty((0, 2), np.int64)], [np.empty((0, *grids.shape[1:]))], [own[:0]]
    for i in range(frames - 1):
        away = np.linalg.norm(middles[i + 1 :] - middles[i], axis=1)
        # The points end a little before the rim.
        later = i + 1 + np.flatnonzero(away < 1.2 * (reaches[i] + reaches[i + 1 :]))
        points = frame_from_scene(i, in_scene[later].reshape(-1, 2)).reshape(-1, *grids.shape[1:])
        both = fields.contains(i, points) & own[later]
        shares[i, later] = both.sum(axis=1) / own[later].sum(axis=1)
        kept = np.flatnonzero(shares[i, later] >= least)
        pairs.append(np.column_stack([np.full(len(kept), i), later[kept]]))
        points_i.append(points[kept])
        seen.append(both[kept])
    numbers = np.concatenate(pairs)
    return shares, Sights(numbers, np.concatenate(points_i), grids[numbers[:, 1]], np.concatenate(seen))
