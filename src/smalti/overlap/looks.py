"""The signatures of all frames, in the form that suits them, and the weighted distances between them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from smalti.overlap.dense_looks import DenseLooks
from smalti.overlap.sparse_looks import SparseLooks
from smalti.overlap.training import Differences
from smalti.records import PairNumbers

DENSEST = 0.3
"""Share of entries that are not zero up to which signatures are kept sparse."""


class Looks(Protocol):
    """What the external model asks of signatures (N, D). The distance of a pair is Σ_d w_d (s_d^i - s_d^j)²."""

    @property
    def frames(self) -> int:
        """N."""
        ...

    @property
    def words(self) -> int:
        """D."""
        ...

    def distances(self, weights: NDArray[np.float64], pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the distances of the pairs (n, 2)."""
        ...

    def all_distances(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distances of all pairs (N, N)."""
        ...

    def differences(self, pairs: PairNumbers, apart: PairNumbers) -> Differences:
        """Return how the pairs (n, 2) differ in the words in which those `apart` do."""
        ...

    def subtract_distances(
        self,
        base: NDArray[np.float32],
        weights: NDArray[np.float64],
        frames: slice,
        origin: int,
        upper: NDArray[np.float32],
    ) -> None:
        """Write `base` less the distances from some `frames` to all later ones to `upper`, and a margin more.

        The margin makes up for the precision. The pair (i, j) is at [i - origin, j - origin] of either matrix, and they
        may be one. Words of weight zero cost nothing.
        """
        ...


def looks_of(signatures: NDArray[np.float64] | csr_array) -> Looks:
    """Keep signatures (N, D) as they are best gone through."""
    size = signatures.shape[0] * signatures.shape[1]
    filled = signatures.nnz if isinstance(signatures, csr_array) else np.count_nonzero(signatures)
    if filled <= DENSEST * size:
        return SparseLooks(csr_array(signatures))
    return DenseLooks(signatures.toarray() if isinstance(signatures, csr_array) else signatures)


def similarities(
    looks: Looks, weights: NDArray[np.float64], base: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return 1 - distance of all pairs i < j (N, N), rounded up; with `base` in the place of 1 if given."""
    upper = np.empty((looks.frames, looks.frames), dtype=np.float32)
    if base is None:
        upper[:] = 1.0
        base = upper
    looks.subtract_distances(base, weights, slice(0, looks.frames), 0, upper)
    return upper
