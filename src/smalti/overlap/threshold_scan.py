"""Scan a matrix over all pairs for entries that reach a level; every pair of blocks of frames has its own level."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import PairNumbers

PAIRS_AT_ONCE = 1_000_000
"""Pairs of a batch: 24 MB, however many are wanted."""

MOST_FRAMES_OF_A_MATRIX = 6_000
"""Most frames for a matrix of all pairs in single precision: 144 MB, and there may be four. Beyond, an index is hardly
slower."""

Batches = Iterator[tuple[PairNumbers, NDArray[np.float64]]]
"""Pairs (n, 2), i < j, and a number for each (n,)."""


class UpperMatrix:
    """A matrix in single precision, and the largest entry of every pair of blocks, which rules out most of them."""

    def __init__(self, values: NDArray[np.float32]) -> None:
        """Keep `values` (N, N); only entries with i < j are read."""
        self._values = values
        self._blocks: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None

    @property
    def frames(self) -> int:
        """N."""
        return len(self._values)

    def reaching(self, level: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield every pair i < j whose entry reaches level[I, J], and the entry; by pair of blocks, then i, then j."""
        # Entries are rounded up, and rounding keeps the order: an entry that reaches a level reaches the rounded level.
        rounded = level.astype(np.float32)
        first, second = np.nonzero(np.triu(self._largest(starts) >= rounded))
        return take(self._values, rounded, starts, first, second)

    def _largest(self, starts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the largest entry (M, M) of every pair of blocks I ≤ J."""
        if self._blocks is None or not np.array_equal(self._blocks[0], starts):
            assert starts[0] == 0
            assert starts[-1] == self.frames
            self._blocks = starts.copy(), _largest_of_blocks(self._values, starts)
        return self._blocks[1]


def blocks_of_frames(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the block (N,) of every frame."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def rounded_up(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return values in single precision, none below the given value."""
    rounded = values.astype(np.float32)
    np.nextafter(rounded, np.float32(np.inf), out=rounded, where=rounded < values)
    return rounded


def take(
    values: NDArray[np.float32],
    level: NDArray[np.float32],
    starts: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    origin: int = 0,
) -> Batches:
    """Yield, in batches, the pairs within the pairs of blocks (first[n], second[n]) whose entry reaches the level.

    The entry of (i, j) is values[i - origin, j - origin].
    """
    size = max(PAIRS_AT_ONCE, int(np.diff(starts).max(initial=0)))
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
    at, row = 0, -1
    while at < len(first):
        pairs, taken = np.empty((size, 2), dtype=np.int64), np.empty(size)
        found, at, row = _take(values, origin, level, starts, first, second, at, row, pairs, taken)
        if found:
            yield pairs[:found], taken[:found]


@compiled
def _take(
    values: NDArray[np.float32],
    origin: int,
    level: NDArray[np.float32],
    starts: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    at: int,
    row: int,
    pairs: NDArray[np.int64],
    taken: NDArray[np.float64],
) -> tuple[int, int, int]:
    """Fill a batch, starting at pair of blocks `at` and frame `row`; return its size and where the next one begins."""
    found = 0
    for n in range(at, len(first)):
        lowest = level[first[n], second[n]]
        end = starts[second[n] + 1]
        for i in range(max(row, starts[first[n]]), starts[first[n] + 1]):
            begin = max(starts[second[n]], i + 1)
            if found + end - begin > len(taken):
                return found, n, i
            # Count first, which is quick: most rows have no such entry.
            entries = values[i - origin, begin - origin : end - origin]
            reached = 0
            for m in range(len(entries)):
                reached += entries[m] >= lowest
            if reached:
                for m in range(len(entries)):
                    if entries[m] >= lowest:
                        pairs[found, 0], pairs[found, 1], taken[found] = i, begin + m, entries[m]
                        found += 1
        row = -1
    return found, len(first), -1


@compiled
def _largest_of_blocks(values: NDArray[np.float32], starts: NDArray[np.int64]) -> NDArray[np.float32]:
    blocks = len(starts) - 1
    largest = np.full((blocks, blocks), -np.inf, dtype=np.float32)
    for block in range(blocks):
        for i in range(starts[block], starts[block + 1]):
            for other in range(block, blocks):
                found = largest[block, other]
                for value in values[i, max(starts[other], i + 1) : starts[other + 1]]:
                    found = max(found, value)
                largest[block, other] = found
    return largest
