"""Signatures whose frames show most words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.overlap.shared_words import MARGIN
from smalti.overlap.training import Differences
from smalti.records import PairNumbers

FRAMES_AT_ONCE = 256


class DenseLooks:
    """Signatures (N, D); see `smalti.overlap.looks.Looks` for what they are asked."""

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
        distances = scaled @ scaled.T
        distances *= -2.0
        distances += squared[:, None]
        distances += squared[None]
        return np.maximum(distances, 0.0, out=distances)

    def differences(self, pairs: PairNumbers, apart: PairNumbers) -> Differences:
        """Return how the pairs (n, 2) differ in the words in which those `apart` do."""
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
        """Write `base` less the distances from some `frames` to all later ones to `upper`, and a margin more."""
        used = np.flatnonzero(weights)
        later = self._signatures[frames.start :, used]
        # The weights of a change may be negative: no roots of them.
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
