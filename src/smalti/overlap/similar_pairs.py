"""Find pairs of similar frames: in a matrix of all pairs if memory allows (`_Matrices`), else in an index (`Index`).

The index computes the similarities of some frames to all later ones at a time, by the words they share. It keeps the
pairs found, and the level down to which they are complete. A similarity falls when weights grow, so that pairs found
under weights of one serve all weights that training can produce.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.overlap.signature_distances import SignatureSet, similarities
from smalti.overlap.threshold_scan import (
    MOST_FRAMES_OF_A_MATRIX,
    PAIRS_AT_ONCE,
    Batches,
    UpperMatrix,
    blocks_of_frames,
    take,
)
from smalti.records import PairNumbers

BYTES_OF_MATRICES = 64_000_000
"""Memory for the matrices of the latest weights; at least one is kept."""

MOST_KEPT = 16_000_000
"""Pairs that an index keeps, of 12 bytes each."""

FURTHER = (0.4, 0.2, 0.1, 0.05, 0.01)
"""How far below the wanted level an index searches, so that the result serves later calls: as far as memory allows. A
smaller margin is not worth keeping."""

FRAMES_AT_ONCE = 256

LARGEST_DISTANCE = 4.0
"""Of two signatures of length 1 under weights of 1."""

MARGIN = 1e-9
"""More than the rounding of levels in double precision."""


class Finder(Protocol):
    """Finds similar pairs under any weights of the words; models trained from the same model share it."""

    def reaching(self, weights: NDArray[np.float64], level: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield every pair i < j whose similarity, 1 - distance, reaches level[I, J], and the similarity, rounded up.

        The order is by pair of blocks, then i, then j.
        """
        ...


def finder_of(signature_set: SignatureSet, most_frames_of_a_matrix: int = MOST_FRAMES_OF_A_MATRIX) -> Finder:
    """Return the finder that suits the number of frames."""
    return Index(signature_set) if signature_set.frames > most_frames_of_a_matrix else _Matrices(signature_set)


class _Matrices:
    """The similarities of all pairs under the latest weights, each computed from those under weights of one."""

    def __init__(self, signature_set: SignatureSet) -> None:
        self._signature_set = signature_set
        self._untrained: NDArray[np.float32] | None = None
        self._latest: dict[bytes, UpperMatrix] = {}

    def reaching(self, weights: NDArray[np.float64], level: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs that reach their level."""
        key = weights.tobytes()
        upper = self._latest.get(key)
        if upper is None:
            upper = UpperMatrix(self._similarities(weights))
            most = max(1, BYTES_OF_MATRICES // (4 * self._signature_set.frames**2 + 1))
            # Replace the dictionary instead of changing it: another thread may be reading it.
            self._latest = dict([*self._latest.items(), (key, upper)][-most:])
        return upper.reaching(level, starts)

    def _similarities(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        if self._untrained is None:
            self._untrained = similarities(self._signature_set, np.ones(self._signature_set.words))
        change = weights - 1.0
        if not change.any():
            return self._untrained
        # Few weights differ from one. Starting from one, the result does not depend on earlier weights.
        return similarities(self._signature_set, change, self._untrained)


class Index:
    """Finds similar pairs of many frames under any weights of their words; a `Finder`."""

    def __init__(self, signature_set: SignatureSet, most_kept: int = MOST_KEPT) -> None:
        self._signature_set = signature_set
        self._most_kept = most_kept
        self._kept: _Kept | None = None
        self._too_many_untrained = False

    def reaching(self, weights: NDArray[np.float64], level: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs that reach their level, and their similarity, by pair of blocks, then i, then j."""
        if not np.triu(level <= 1.0).any():
            return iter(())
        kept = self._kept
        if kept is not None and np.array_equal(kept.starts, starts):
            base_level = _level_before(level, kept.weights, weights)
            if (np.triu(base_level) >= np.triu(kept.level)).all():
                return self._exactly(weights, level, starts, _chosen(kept, base_level))
        base = weights if self._too_many_untrained else np.ones(len(weights))
        return self._exactly(weights, level, starts, self._search(base, _level_before(level, base, weights), starts))

    def _search(
        self, weights: NDArray[np.float64], level: NDArray[np.float64], starts: NDArray[np.int64]
    ) -> Iterator[PairNumbers]:
        """Yield the pairs that reach their level, and keep those that reach a lower one."""
        found = _Found(level, starts, self._most_kept)
        wanted = np.triu(found.level <= 1.0)
        for first, end in _strips(starts):
            rows, columns = np.nonzero(wanted[first:end])
            if not len(rows):
                continue
            begin, stop = int(starts[first]), int(starts[end])
            upper = np.ones((stop - begin, self._signature_set.frames - begin), dtype=np.float32)
            self._signature_set.subtract_distances(upper, weights, slice(begin, stop), begin, upper)
            for pairs, similarity in take(upper, found.level, starts, rows + first, columns, origin=begin):
                yield found.keep(pairs, similarity)
        if found.complete:
            self._kept = _Kept(weights, found.level, starts.copy(), *found.together())
        elif (weights == 1.0).all():
            self._too_many_untrained = True

    def _exactly(
        self,
        weights: NDArray[np.float64],
        level: NDArray[np.float64],
        starts: NDArray[np.int64],
        candidates: Iterator[PairNumbers],
    ) -> Batches:
        """Yield the candidates that reach their level in double precision, however they were found."""
        block = blocks_of_frames(starts)
        for pairs in candidates:
            similarity = 1.0 - self._signature_set.distances(weights, pairs)
            reached = similarity >= level[block[pairs[:, 0]], block[pairs[:, 1]]] - MARGIN
            if reached.any():
                yield pairs[reached], similarity[reached]


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """All pairs that reach a level under some weights, by pair of blocks, then i, then j."""

    weights: NDArray[np.float64]
    level: NDArray[np.float32]  # (M, M)
    starts: NDArray[np.int64]
    pairs: NDArray[np.uint32]  # (n, 2)
    similarity: NDArray[np.float32]  # (n,), rounded up


class _Found:
    """Collects pairs further down than the wanted level, as far as memory allows."""

    def __init__(self, wanted: NDArray[np.float64], starts: NDArray[np.int64], most: int) -> None:
        self._wanted, self._most, self._block = wanted, most, blocks_of_frames(starts)
        # Other blocks will be wanted when the mosaic has moved, so search all as far down as any. If that is too much,
        # use each block's own level. Every level is higher than the one before it.
        lowest = np.minimum(wanted, np.min(wanted, where=np.triu(np.isfinite(wanted)), initial=1.0))
        self._levels = [*(lowest - further for further in FURTHER), wanted - FURTHER[-1]]
        self._pairs: list[NDArray[np.uint32]] = [np.empty((0, 2), dtype=np.uint32)]
        self._similarity: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)]

    @property
    def level(self) -> NDArray[np.float32]:
        """(M, M): all pairs down to this level are kept."""
        return (self._levels[0] if self.complete else self._wanted).astype(np.float32)

    @property
    def complete(self) -> bool:
        """Whether memory sufficed for all pairs that reach the level."""
        return bool(self._levels)

    def keep(self, pairs: PairNumbers, similarity: NDArray[np.float64]) -> PairNumbers:
        """Keep these pairs, which reach the level; return those that reach the wanted level."""
        self._pairs.append(pairs.astype(np.uint32))
        self._similarity.append(similarity.astype(np.float32))
        while self.complete and sum(map(len, self._pairs)) > self._most:
            del self._levels[0]
            level = self.level
            reached = [self._reaching(level, *some) for some in zip(self._pairs, self._similarity, strict=True)]
            self._pairs = [some[kept] for some, kept in zip(self._pairs, reached, strict=True)]
            self._similarity = [some[kept] for some, kept in zip(self._similarity, reached, strict=True)]
        if not self.complete:
            del self._pairs[1:], self._similarity[1:]
        return pairs[self._reaching(self._wanted, pairs, similarity)]

    def together(self) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return all kept pairs (n, 2) and their similarities."""
        return np.concatenate(self._pairs), np.concatenate(self._similarity)

    def _reaching(
        self,
        level: NDArray[np.float64] | NDArray[np.float32],
        pairs: PairNumbers | NDArray[np.uint32],
        similarity: NDArray[np.float64] | NDArray[np.float32],
    ) -> NDArray[np.bool_]:
        reached: NDArray[np.bool_] = similarity >= level[self._block[pairs[:, 0]], self._block[pairs[:, 1]]]
        return reached


def _level_before(
    level: NDArray[np.float64], before: NDArray[np.float64], after: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the least similarity under the weights `before` of a pair that reaches the level under `after`."""
    distance = 1.0 - level
    fallen = LARGEST_DISTANCE * max(float((before - after).max(initial=0.0)), 0.0)
    # No word's part of the distance shrinks by more than its weight does.
    ratio = float((after / before).min(initial=1.0))
    at_most = distance + fallen if ratio <= 0.0 else np.minimum(distance / ratio, distance + fallen)
    return 1.0 - at_most - MARGIN


def _chosen(kept: _Kept, level: NDArray[np.float64]) -> Iterator[PairNumbers]:
    block = blocks_of_frames(kept.starts)
    for begin in range(0, len(kept.pairs), PAIRS_AT_ONCE):
        pairs = kept.pairs[begin : begin + PAIRS_AT_ONCE]
        reached = kept.similarity[begin : begin + PAIRS_AT_ONCE] >= level[block[pairs[:, 0]], block[pairs[:, 1]]]
        yield pairs[reached].astype(np.int64)


def _strips(starts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield runs of blocks (first, end) of some frames each."""
    first = 0
    while first < len(starts) - 1:
        end = max(first + 1, int(np.searchsorted(starts, starts[first] + FRAMES_AT_ONCE, side="right")) - 1)
        yield first, end
        first = end
