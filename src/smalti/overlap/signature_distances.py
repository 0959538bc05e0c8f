"""Compute weighted distances between the signatures of all frames, sparse or dense."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from smalti.compiled import compiled
from smalti.overlap.sparse_signatures import MARGIN, SparseSignatures, distances_from_products
from smalti.overlap.weight_training import Differences
from smalti.records import PairNumbers

DENSEST = 0.3
"""Largest share of non-zero entries at which signatures are kept sparse."""

FRAMES_AT_ONCE = 256


class SignatureSet(Protocol):
    """What the external model needs of signatures (N, D). The distance of a pair is Σ_d w_d (s_d^i - s_d^j)²."""

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
        """Return the differences of the pairs (n, 2), in the words in which the pairs `apart` differ."""
        ...

    def subtract_distances(
        self,
        base: NDArray[np.float32],
        weights: NDArray[np.float64],
        frames: slice,
        origin: int,
        upper: NDArray[np.float32],
    ) -> None:
        """Write `base` minus the distances from some `frames` to all later ones to `upper`, plus a margin.

        The margin covers the rounding. The pair (i, j) is at [i - origin, j - origin] of both matrices, which may be
        the same array. Words of weight 0 cost nothing.
        """
        ...


def signature_set_of(signatures: NDArray[np.float64] | csr_array) -> SignatureSet:
    """Store signatures (N, D) sparse or dense, whichever is faster."""
    size = signatures.shape[0] * signatures.shape[1]
    filled = signatures.nnz if isinstance(signatures, csr_array) else np.count_nonzero(signatures)
    if filled <= DENSEST * size:
        return SparseSignatures(csr_array(signatures))
    return DenseSignatures(signatures.toarray() if isinstance(signatures, csr_array) else signatures)


def similarities(
    signature_set: SignatureSet, weights: NDArray[np.float64], base: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return 1 - distance of all pairs i < j (N, N), rounded up; with `base` in place of 1 if given."""
    upper = np.empty((signature_set.frames, signature_set.frames), dtype=np.float32)
    if base is None:
        upper[:] = 1.0
        base = upper
    signature_set.subtract_distances(base, weights, slice(0, signature_set.frames), 0, upper)
    return upper


class DenseSignatures:
    """Dense signatures (N, D); a `SignatureSet`."""

    def __init__(self, signatures: NDArray[np.float64]) -> None:
        self._signatures = np.ascontiguousarray(signatures)

    @property
    def frames(self) -> int:
        """N."""
        return len(self._signatures)

    @property
    def words(self) -> int:
        """D."""
        return int(self._signatures.shape[1])

    def distances(self, weights: NDArray[np.float64], pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the distances of the pairs (n, 2)."""
        return _distances(self._signatures, weights, np.ascontiguousarray(pairs))

    def all_distances(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distances of all pairs (N, N)."""
        scaled = self._signatures * np.sqrt(weights)
        squared = np.sum(scaled**2, axis=1)
        return distances_from_products(scaled @ scaled.T, squared)

    def differences(self, pairs: PairNumbers, apart: PairNumbers) -> Differences:
        """Return the differences of the pairs (n, 2), in the words in which the pairs `apart` differ."""
        squared = (self._signatures[pairs[:, 0]] - self._signatures[pairs[:, 1]]) ** 2
        words = np.flatnonzero((self._signatures[apart[:, 0]] != self._signatures[apart[:, 1]]).any(axis=0))
        start = len(pairs) * np.arange(len(words) + 1)
        pair = np.tile(np.arange(len(pairs), dtype=np.uint32), len(words))
        return Differences(words, start, pair, squared.T[words].ravel(), squared.sum(axis=1))

    def subtract_distances(
        self,
        base: NDArray[np.float32],
        weights: NDArray[np.float64],
        frames: slice,
        origin: int,
        upper: NDArray[np.float32],
    ) -> None:
        """Write `base` minus the distances from some `frames` to all later ones to `upper`, plus a margin."""
        used = np.flatnonzero(weights)
        later = self._signatures[frames.start :, used]
        # The weights of a change may be negative, so they have no roots.
        scaled = later * weights[used]
        squared = np.sum(scaled * later, axis=1)
        for begin in range(0, frames.stop - frames.start, FRAMES_AT_ONCE):
            end = min(begin + FRAMES_AT_ONCE, frames.stop - frames.start)
            similarity = scaled[begin:end] @ later[begin:].T
            similarity *= 2.0
            similarity -= squared[begin:end, None]
            similarity -= squared[None, begin:]
            offset = frames.start - origin
            part = slice(begin + offset, end + offset), slice(begin + offset, None)
            similarity += base[part]
            upper[part] = similarity + MARGIN * (1.0 + np.abs(similarity))


@compiled
def _distances(
    signatures: NDArray[np.float64], weights: NDArray[np.float64], pairs: PairNumbers
) -> NDArray[np.float64]:
    distances = np.zeros(len(pairs))
    for n in range(len(pairs)):
        for d in range(len(weights)):
            difference = signatures[pairs[n, 0], d] - signatures[pairs[n, 1], d]
            distances[n] += weights[d] * difference * difference
    return distances
