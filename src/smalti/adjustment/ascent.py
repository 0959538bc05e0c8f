"""A frame's way up the elimination tree: a square root of its covariance.

With the information factorised as L Lᵀ, the covariance of two frames' increments is Y_iᵀ Y_j, where Y_i = L⁻¹ E_i has
blocks only at the columns that frame i passes on its way to the root. Two frames share the columns from where their
ways meet, so that the covariance of any pair costs one walk along what they share, whatever the number of frames. And
what is wanted of a pair is the difference of two increments that may both be uncertain by everything between them and
the root: here it is taken before squaring, so that only the digits of a standard deviation are lost, not those of a
variance.

Y_c follows from those above it: L_cc⁻¹ at c itself, less Σ_r Y_r L_rc L_cc⁻¹ over the rows r of column c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.cholesky import BlockCholesky, Blocks
from smalti.adjustment.pattern import Indices
from smalti.compiled import compiled, compiled_sums

ENTRIES = 6
"""Of a 2×3 map, row by row: what the ways are given for, whatever the family."""

PRODUCTS = 21
"""Of two entries: those of the first row among themselves (6), of the second (6), of the first with the second (9)."""


Ways = tuple[Indices, Indices, Indices, int, Indices, NDArray[np.float64], Indices, NDArray[np.float64]]
"""Ascents as kernels take them, in the order of their fields."""


@dataclass(frozen=True, slots=True, eq=False)
class Ascents:
    """The ways of some frames: for each, its column's square root, ancestors from the root down.

    The way of the frame at place c begins at `start[c]` of `values` and holds, for each of ENTRIES entries of the
    frame's map, (depth[c] + 1) · freedom numbers; `start` is -1 for frames whose way was not asked for. `tails` has the
    sums of products of entries over the levels from k on, k = 0 … depth + 1: what is not shared needs no walk.
    """

    place: Indices  # (N,) frame -> column
    parent: Indices  # (N,) column -> column, -1 at the root
    depth: Indices  # (N,) of every column, 0 at the root
    freedom: int
    start: Indices  # (N,)
    values: NDArray[np.float64]
    tail_start: Indices  # (N,)
    tails: NDArray[np.float64]  # (n, PRODUCTS)

    @property
    def arrays(self) -> Ways:
        """What kernels want."""
        way = (self.place, self.parent, self.depth, self.freedom, self.start, self.values)
        return (*way, self.tail_start, self.tails)


class Climber:
    """Finds ways in one factor; what many ways share is found once."""

    def __init__(self, factor: BlockCholesky, tangent: NDArray[np.float64]) -> None:
        """Take `tangent` (freedom, 2, 3), the maps that the parameters of a block move by."""
        self.factor = factor
        self._tangent = np.ascontiguousarray(tangent.reshape(len(tangent), ENTRIES))
        self.depth = _depths(factor.pattern.parent)

    @property
    def size_of_all(self) -> int:
        """The bytes that the ways of all frames would need."""
        return int(np.sum(self.depth + 1)) * (len(self._tangent) * ENTRIES + PRODUCTS) * 8

    def ascend(self, frames: Indices) -> Ascents:
        """Return the ways of these frames."""
        pattern = self.factor.pattern
        freedom = len(self._tangent)
        wanted = np.zeros(pattern.nodes, dtype=np.bool_)
        wanted[pattern.place[frames]] = True
        _mark_ancestors(pattern.parent, wanted)
        columns = np.flatnonzero(wanted)[::-1].copy()
        start = np.full(pattern.nodes, -1, dtype=np.int64)
        sizes = (self.depth[columns] + 1) * freedom * ENTRIES
        start[columns] = np.cumsum(sizes) - sizes
        values = _climb(*self.factor.arrays, self.depth, columns, start, int(sizes.sum()))
        if freedom < ENTRIES:
            _turn_into_entries(values, start, columns, self.depth, self._tangent)
        tail_start = np.full(pattern.nodes, -1, dtype=np.int64)
        counts = self.depth[columns] + 2
        tail_start[columns] = np.cumsum(counts) - counts
        tails = _sum_tails(columns, self.depth, freedom, start, values, tail_start, int(counts.sum()))
        return Ascents(pattern.place, pattern.parent, self.depth, freedom, start, values, tail_start, tails)


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
def _climb(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    depth: Indices,
    columns: Indices,
    start: Indices,
    size: int,
) -> NDArray[np.float64]:
    """Fill the ways of `columns`, each after those above it."""
    values = np.zeros(size)
    for column in columns:
        _fill(column, column_start, slot_row, lower, pivot_inverse, depth, start, values)
    return values


@compiled_sums
def _fill(
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
        # Always six rows, of which a smaller family leaves some zero: the inner loop is one sum of six terms.
        their = values[start[above] : start[above] + ENTRIES * reach]
        t0, t1, t2 = their[:reach], their[reach : 2 * reach], their[2 * reach : 3 * reach]
        t3, t4, t5 = their[3 * reach : 4 * reach], their[4 * reach : 5 * reach], their[5 * reach :]
        for b in range(freedom):
            for m in range(freedom):
                weight[m] = 0.0
                for c in range(b, freedom):
                    weight[m] += lower[slot, m, c] * pivot_inverse[column, c, b]
            w0, w1, w2 = weight[0], weight[1], weight[2]
            w3, w4, w5 = weight[3], weight[4], weight[5]
            mine = values[own + b * length : own + b * length + reach]
            for x in range(reach):
                mine[x] -= w0 * t0[x] + w1 * t1[x] + w2 * t2[x] + w3 * t3[x] + w4 * t4[x] + w5 * t5[x]


@compiled
def _turn_into_entries(
    values: NDArray[np.float64], start: Indices, columns: Indices, depth: Indices, tangent: NDArray[np.float64]
) -> None:
    """Turn ways by parameter into ways by entry of the map, in place."""
    freedom = tangent.shape[0]
    for column in columns:
        length = (depth[column] + 1) * freedom
        way = values[start[column] : start[column] + ENTRIES * length].reshape(ENTRIES, length)
        by_parameter = way[:freedom].copy()
        way[:] = 0.0
        for c in range(freedom):
            for e in range(ENTRIES):
                if tangent[c, e] != 0.0:
                    way[e] += tangent[c, e] * by_parameter[c]


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
    for column in columns:
        levels = depth[column] + 1
        length = levels * freedom
        way = values[start[column] : start[column] + ENTRIES * length].reshape(ENTRIES, length)
        own = tails[tail_start[column] : tail_start[column] + levels + 1]
        for level in range(levels - 1, -1, -1):
            own[level] = own[level + 1]
            for x in range(level * freedom, (level + 1) * freedom):
                _add_products(way[0, x], way[1, x], way[2, x], way[3, x], way[4, x], way[5, x], own[level])
    return tails


@compiled
def _add_products(e0: float, e1: float, e2: float, e3: float, e4: float, e5: float, total: NDArray[np.float64]) -> None:
    total[0] += e0 * e0
    total[1] += e0 * e1
    total[2] += e0 * e2
    total[3] += e1 * e1
    total[4] += e1 * e2
    total[5] += e2 * e2
    total[6] += e3 * e3
    total[7] += e3 * e4
    total[8] += e3 * e5
    total[9] += e4 * e4
    total[10] += e4 * e5
    total[11] += e5 * e5
    total[12] += e0 * e3
    total[13] += e0 * e4
    total[14] += e0 * e5
    total[15] += e1 * e3
    total[16] += e1 * e4
    total[17] += e1 * e5
    total[18] += e2 * e3
    total[19] += e2 * e4
    total[20] += e2 * e5
