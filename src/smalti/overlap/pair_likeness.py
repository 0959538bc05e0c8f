"""An external model of few pairs: how alike two frames are, where they are alike at all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from smalti.errors import ModelError
from smalti.overlap.threshold_scan import MOST_FRAMES_OF_A_MATRIX, Batches, UpperMatrix, rounded_up, take
from smalti.records import PairNumbers

HALF = 0.02
"""The likeness at which P^ext is a half: of a hundred keypoints two are found again exactly."""

FRAMES_AT_ONCE = 256

MOST_POOLED_PAIRS = 16_000_000
"""Of more pairs that are alike after pooling, only those most alike of each frame are kept."""


class PairLikeness:
    """P^ext = s / (s + HALF), s the likeness of the pair; 0 for the pairs that have none.

    Nothing is trained on the answers. The posterior learns what each likeness says (`appearance_evidence.py`).
    """

    def __init__(self, likeness: csr_array, *, most_frames_of_a_matrix: int = MOST_FRAMES_OF_A_MATRIX) -> None:
        """Take the likeness of all pairs (N, N): symmetric, from 0 to 1."""
        self.likeness = _checked(likeness)
        self._most_frames_of_a_matrix = most_frames_of_a_matrix

    @property
    def frames(self) -> int:
        """N."""
        return int(self.likeness.shape[0])

    def probabilities(self) -> NDArray[np.float64]:
        """Return P^ext of all pairs (N, N)."""
        return _probability(self.likeness.toarray())

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return P^ext of the pairs (n, 2)."""
        if not len(self.likeness.data):
            return np.zeros(len(pairs))
        wanted = pairs[:, 0].astype(np.int64) * self.frames + pairs[:, 1]
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return _probability(np.where(self._keys[at] == wanted, self.likeness.data[at], np.float32(0.0)))

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs whose P^ext reaches least[I, J], by pair of blocks, then i, then j."""
        if self.frames <= self._most_frames_of_a_matrix:
            return self._upper.reaching(least, starts)
        return self._by_strips(least.astype(np.float32), starts)

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> PairLikeness:
        """Return itself."""
        return self

    def pooled(self, neighbours: csr_array) -> PairLikeness:
        """Return the model in which the likeness of a pair is the mean over the neighbours of both.

        `neighbours` (N, N) is the weight of each frame beside another one, itself included.
        """
        around = csr_array(diags_array(1.0 / neighbours.sum(axis=1)) @ neighbours).astype(np.float32)
        most = max(2 * MOST_POOLED_PAIRS // max(self.frames, 1), 1)
        strips = [
            _strongest(csr_array(around[first : first + FRAMES_AT_ONCE] @ self.likeness @ around.T), most)
            for first in range(0, self.frames, FRAMES_AT_ONCE)
        ]
        rows = np.concatenate([row + n * FRAMES_AT_ONCE for n, (row, _, _) in enumerate(strips)])
        columns, values = (np.concatenate([strip[k] for strip in strips]) for k in (1, 2))
        # Each pair has the value of its earlier frame's row: the two sums differ by rounding.
        upper = columns >= rows
        rows, columns, values = rows[upper], columns[upper], np.minimum(values[upper], np.float32(1.0))
        half = csr_array((values, (rows, columns)), shape=self.likeness.shape)
        both = csr_array(half + half.T - diags_array(half.diagonal(), dtype=np.float32))
        return PairLikeness(both, most_frames_of_a_matrix=self._most_frames_of_a_matrix)

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        rows = np.repeat(np.arange(self.frames, dtype=np.int64), np.diff(self.likeness.indptr))
        return rows * self.frames + self.likeness.indices

    @cached_property
    def _upper(self) -> UpperMatrix:
        upper = np.zeros((self.frames, self.frames), dtype=np.float32)
        for first in range(0, self.frames, FRAMES_AT_ONCE):
            upper[first : first + FRAMES_AT_ONCE] = self._strip(first, first + FRAMES_AT_ONCE)
        return UpperMatrix(upper)

    def _strip(self, first: int, end: int) -> NDArray[np.float32]:
        return rounded_up(_probability(self.likeness[first:end].toarray()))

    def _by_strips(self, least: NDArray[np.float32], starts: NDArray[np.int64]) -> Batches:
        wanted = np.triu(least <= 1.0)
        for block in range(len(starts) - 1):
            columns = np.flatnonzero(wanted[block])
            if len(columns):
                origin, end = int(starts[block]), int(starts[block + 1])
                values = self._strip(origin, end)[:, origin:]
                yield from take(values, least, starts, np.full(len(columns), block), columns, origin=origin)


def _probability(likeness: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = likeness.astype(np.float64)
    probability: NDArray[np.float64] = exact / (exact + HALF)
    return probability


def _strongest(rows: csr_array, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return row, column and value of the largest entries of each row, by row, then column."""
    rows.sort_indices()
    kept = np.concatenate([np.empty(0, dtype=np.int64), *_largest_of_rows(rows, most)])
    row = np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))
    return row[kept], rows.indices[kept].astype(np.int64), rows.data[kept]


def _largest_of_rows(rows: csr_array, most: int) -> Iterator[NDArray[np.int64]]:
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        if end - begin <= most:
            yield np.arange(begin, end)
        else:
            yield begin + np.sort(np.argsort(-rows.data[begin:end], kind="stable")[:most])


def _checked(likeness: csr_array) -> csr_array:
    """Return a copy in single precision; check that it is symmetric and from 0 to 1."""
    checked: csr_array = csr_array(likeness).astype(np.float32)
    checked.sum_duplicates()
    if checked.ndim != 2 or checked.shape[0] != checked.shape[1]:
        raise ModelError(f"the likeness of pairs has shape {checked.shape}, expected (N, N)")
    if not (np.isfinite(checked.data) & (checked.data >= 0.0) & (checked.data <= 1.0 + 1e-6)).all():
        raise ModelError("the likeness of pairs must lie between 0 and 1")
    if checked.nnz and abs(checked - checked.T).max() > 1e-6:
        raise ModelError("the likeness of pairs must be symmetric: entry (i, j) and (j, i) are one pair")
    return checked
