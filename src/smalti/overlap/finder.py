"""Pairs of similar frames: from a matrix of all pairs while there is room for one, else from the index."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.overlap.index import Index
from smalti.overlap.looks import Looks, similarities
from smalti.overlap.scan import MOST_FRAMES_OF_A_MATRIX, Batches, UpperMatrix

BYTES_OF_MATRICES = 64_000_000
"""Room for the matrices of the latest weights; there is always one of them."""


class Finder(Protocol):
    """Finds similar pairs under any weights of the same frames' words; one for all models that learned from one."""

    def reaching(self, weights: NDArray[np.float64], level: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield every pair i < j whose similarity, 1 - distance, reaches level[I, J], and the similarity, rounded up.

        By pair of blocks, then i, then j.
        """
        ...


def finder_of(looks: Looks, most_frames_of_a_matrix: int = MOST_FRAMES_OF_A_MATRIX) -> Finder:
    """Return what suits so many frames."""
    return Index(looks) if looks.frames > most_frames_of_a_matrix else _Matrices(looks)


class _Matrices:
    """The similarities of all pairs under the latest weights, each made from those under weights of one."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._untrained: NDArray[np.float32] | None = None
        self._latest: dict[bytes, UpperMatrix] = {}

    def reaching(self, weights: NDArray[np.float64], level: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs that reach their level."""
        key = weights.tobytes()
        upper = self._latest.get(key)
        if upper is None:
            upper = UpperMatrix(self._similarities(weights))
            most = max(1, BYTES_OF_MATRICES // (4 * self._looks.frames**2 + 1))
            # Another dictionary rather than a change: somebody else may be looking at this one.
            self._latest = dict([*self._latest.items(), (key, upper)][-most:])
        return upper.reaching(level, starts)

    def _similarities(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        if self._untrained is None:
            self._untrained = similarities(self._looks, np.ones(self._looks.words))
        change = weights - 1.0
        if not change.any():
            return self._untrained
        # Few weights leave one, and always starting there the result does not depend on earlier weights.
        return similarities(self._looks, change, self._untrained)
