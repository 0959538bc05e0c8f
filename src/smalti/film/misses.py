"""By how much a mosaic misses the loops: what the answers have to repair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homography import project
from smalti.geometry.lens import Lens
from smalti.records import Homographies, Landmarks


class Misses:
    """The landmarks of loops below each other, to be held against one mosaic after the other."""

    def __init__(self, loops: Sequence[Landmarks], lens: Lens) -> None:
        self._lens = lens
        self._ends = np.array([(record.pair.i, record.pair.j) for record in loops], dtype=np.int64).reshape(-1, 2)
        self._loop = np.repeat(np.arange(len(loops)), [len(record) for record in loops])
        self._points_i = np.concatenate([np.empty((0, 2)), *(record.points_i for record in loops)])
        self._points_j = np.concatenate([np.empty((0, 2)), *(record.points_j for record in loops)])

    def rms_px(self, maps: Homographies, is_placed: NDArray[np.bool_]) -> float | None:
        """Return the RMS over the loops between frames that are placed, in pixels of frame i; None if there is none.

        Every loop counts alike, as in the project's `chain_error_px`.
        """
        held = is_placed[self._ends].all(axis=1)
        if not held.any():
            return None
        i, j = self._ends.T
        i_from_j = (np.linalg.inv(maps)[i] @ maps[j])[self._loop]
        mapped = project(i_from_j, self._lens.straighten(self._points_j)[:, None])[:, 0]
        distances = self._lens.bend(mapped) - self._points_i
        squares = np.bincount(self._loop, np.sum(distances**2, axis=1)) / np.bincount(self._loop)
        return float(np.sqrt(np.mean(squares[held])))
