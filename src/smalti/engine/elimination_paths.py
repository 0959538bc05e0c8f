"""The elimination path of a frame, from its column to the root of the tree: a square root of its covariance.

With the information factorised as L Lᵀ, the covariance of two frames' increments is Y_iᵀ Y_j. Y_i = L⁻¹ E_i has blocks
only at the columns on the elimination path of frame i. Two frames share the columns from the point where their paths
meet up to the root. So the covariance of a pair costs one pass over the shared columns, whatever the number of frames.

A relative position is the difference of two increments, and each of them may be uncertain by everything up to the root.
Here the difference is taken before squaring. So the digits of a standard deviation are lost, not those of a variance.

Y_c follows from the columns above it: L_cc⁻¹ at c itself, minus Σ_r Y_r L_rc L_cc⁻¹ over the rows r of column c.

Increments are local, H ← H exp(Δ). Paths are given for the eight entries of Δ (`homographies.py`), whatever the family.
Each connected part has a root of its own, so frames of different parts share no column.

`EliminationPaths` holds paths and `PathFinder` computes them. Kernels come last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_sums
from smalti.geometry.homographies import ENTRIES
from smalti.sparse.block_products import Blocks, add_transposed_product
from smalti.sparse.cholesky import BlockCholesky
from smalti.sparse.pattern import Indices

PRODUCTS = ENTRIES * (ENTRIES + 1) // 2
"""The number of products of two entries of an increment: the upper triangle of an 8×8 matrix, row by row."""

PRODUCT_OF = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 8, 9, 10, 11, 12, 13, 14],
        [2, 9, 15, 16, 17, 18, 19, 20],
        [3, 10, 16, 21, 22, 23, 24, 25],
        [4, 11, 17, 22, 26, 27, 28, 29],
        [5, 12, 18, 23, 27, 30, 31, 32],
        [6, 13, 19, 24, 28, 31, 33, 34],
        [7, 14, 20, 25, 29, 32, 34, 35],
    ]
)
"""The index of the product of two entries among these."""

PathArrays = tuple[Indices, Indices, Indices, int, Indices, NDArray[np.float64], Indices, NDArray[np.float64]]
"""`EliminationPaths` as kernels take them, in the order of its fields."""


@dataclass(frozen=True, slots=True, eq=False)
class EliminationPaths:
    """The elimination paths of some frames: blocks of Y, ancestors from the root down.

    The path of the frame at column c begins at `start[c]` of `values`. It has (depth[c] + 1) · freedom numbers for each
    of the ENTRIES entries of the frame's Δ. `start` is -1 for frames whose path was not computed. `tails` has the sums
    of products of entries over the levels k to depth, for k = 0 … depth + 1. So the part of a path that is not shared
    needs no pass.
    """

    place: Indices  # (N,) frame -> column
    parent: Indices  # (N,) column -> column, -1 at a root
    depth: Indices  # (N,) of every column, 0 at a root
    freedom: int
    start: Indices  # (N,)
    values: NDArray[np.float64]
    tail_start: Indices  # (N,)
    tails: NDArray[np.float64]  # (n, PRODUCTS)

    @property
    def arrays(self) -> PathArrays:
        """The fields as a tuple, for kernels."""
        path = (self.place, self.parent, self.depth, self.freedom, self.start, self.values)
        return (*path, self.tail_start, self.tails)


class PathFinder:
    """Computes elimination paths of one factor; columns that many paths share are computed once."""

    def __init__(self, factor: BlockCholesky, by_entry: NDArray[np.float64]) -> None:
        """Take a factor, and `by_entry` (freedom, 8): the entries of Δ that each parameter of a block changes."""
        self.factor = factor
        self._by_entry = np.ascontiguousarray(by_entry)
        self.depth = _depths(factor.pattern.parent)

    @property
    def size_of_all(self) -> int:
        """The bytes that the paths of all frames would need."""
        return int(np.sum(self.depth + 1)) * (len(self._by_entry) * ENTRIES + PRODUCTS) * 8

    def find(self, frames: Indices) -> EliminationPaths:
        """Return the paths of these frames."""
        pattern = self.factor.pattern
        freedom = len(self._by_entry)
        wanted = np.zeros(pattern.nodes, dtype=np.bool_)
        wanted[pattern.place[frames]] = True
        _mark_ancestors(pattern.parent, wanted)
        columns = np.flatnonzero(wanted)[::-1].copy()
        start = np.full(pattern.nodes, -1, dtype=np.int64)
        sizes = (self.depth[columns] + 1) * freedom * ENTRIES
        start[columns] = np.cumsum(sizes) - sizes
        values = _compute_paths(*self.factor.arrays, self.depth, columns, start, int(sizes.sum()))
        _convert_to_entries(values, start, columns, self.depth, self._by_entry)
        tail_start = np.full(pattern.nodes, -1, dtype=np.int64)
        counts = self.depth[columns] + 2
        tail_start[columns] = np.cumsum(counts) - counts
        tails = _sum_tails(columns, self.depth, freedom, start, values, tail_start, int(counts.sum()))
        return EliminationPaths(pattern.place, pattern.parent, self.depth, freedom, start, values, tail_start, tails)


@compiled
def _depths(parent: Indices) -> Indices:
    depth = np.zeros(len(parent), dtype=np.int64)
    for column in range(len(parent) - 1, -1, -1):
        if parent[column] >= 0:
            depth[column] = depth[parent[column]] + 1
    return depth


@compiled
def _mark_ancestors(parent: Indices, wanted: NDArray[np.bool_]) -> None:
    for column in range(len(parent)):
        if wanted[column] and parent[column] >= 0:
            wanted[parent[column]] = True


@compiled
def _compute_paths(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    depth: Indices,
    columns: Indices,
    start: Indices,
    size: int,
) -> NDArray[np.float64]:
    """Return the paths of `columns`, each computed after those above it."""
    values = np.zeros(size)
    for column in columns:
        _fill_path(column, column_start, slot_row, lower, pivot_inverse, depth, start, values)
    return values


@compiled_sums
def _fill_path(
    column: int,
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    depth: Indices,
    start: Indices,
    values: NDArray[np.float64],
) -> None:
    freedom = pivot_inverse.shape[1]
    length = (depth[column] + 1) * freedom
    own = start[column]
    for a in range(freedom):
        for b in range(a + 1):
            values[own + b * length + depth[column] * freedom + a] = pivot_inverse[column, a, b]
    weight = np.zeros(ENTRIES)
    for slot in range(column_start[column], column_start[column + 1]):
        above = slot_row[slot]
        reach = (depth[above] + 1) * freedom
        # Always eight rows, some of them zero for a smaller family: the inner loop is one sum of eight terms.
        their = values[start[above] : start[above] + ENTRIES * reach]
        t0, t1, t2 = their[:reach], their[reach : 2 * reach], their[2 * reach : 3 * reach]
        t3, t4, t5 = their[3 * reach : 4 * reach], their[4 * reach : 5 * reach], their[5 * reach : 6 * reach]
        t6, t7 = their[6 * reach : 7 * reach], their[7 * reach :]
        for b in range(freedom):
            for m in range(freedom):
                weight[m] = 0.0
                for c in range(b, freedom):
                    weight[m] += lower[slot, m, c] * pivot_inverse[column, c, b]
            w0, w1, w2, w3 = weight[0], weight[1], weight[2], weight[3]
            w4, w5, w6, w7 = weight[4], weight[5], weight[6], weight[7]
            mine = values[own + b * length : own + b * length + reach]
            for x in range(reach):
                first = w0 * t0[x] + w1 * t1[x] + w2 * t2[x] + w3 * t3[x]
                mine[x] -= first + w4 * t4[x] + w5 * t5[x] + w6 * t6[x] + w7 * t7[x]


@compiled
def _convert_to_entries(
    values: NDArray[np.float64], start: Indices, columns: Indices, depth: Indices, by_entry: NDArray[np.float64]
) -> None:
    """Convert paths by parameter into paths by entry of Δ, in place."""
    freedom = by_entry.shape[0]
    for column in columns:
        length = (depth[column] + 1) * freedom
        path = values[start[column] : start[column] + ENTRIES * length].reshape(ENTRIES, length)
        by_parameter = path[:freedom].copy()
        path[:] = 0.0
        for c in range(freedom):
            for e in range(ENTRIES):
                share = by_entry[c, e]
                if share != 0.0:
                    for x in range(length):
                        path[e, x] += share * by_parameter[c, x]


@compiled
def _sum_tails(
    columns: Indices,
    depth: Indices,
    freedom: int,
    start: Indices,
    values: NDArray[np.float64],
    tail_start: Indices,
    size: int,
) -> NDArray[np.float64]:
    tails = np.zeros((size, PRODUCTS))
    turned, total = np.empty((1, freedom, ENTRIES)), np.empty((1, ENTRIES, ENTRIES))
    for column in columns:
        levels = depth[column] + 1
        length = levels * freedom
        path = values[start[column] : start[column] + ENTRIES * length].reshape(ENTRIES, length)
        own = tails[tail_start[column] : tail_start[column] + levels + 1]
        total[:] = 0.0
        for level in range(levels - 1, -1, -1):
            for x in range(freedom):
                for a in range(ENTRIES):
                    turned[0, x, a] = path[a, level * freedom + x]
            # All products, not the upper triangle alone: whole rows are faster.
            add_transposed_product(total, 0, turned, 0, turned, 0, (0, ENTRIES), (0, freedom))
            at = 0
            for a in range(ENTRIES):
                for b in range(a, ENTRIES):
                    own[level, at] = total[0, a, b]
                    at += 1
    return tails
