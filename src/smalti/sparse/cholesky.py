"""Sparse Cholesky factor of a symmetric matrix of small blocks, one block row per node.

A changed matrix is factorised again, not updated by rotations. With few loops that takes time linear in the number of
frames. The factor is a function of the matrix alone, bit for bit, whatever the history of changes, and rounding errors
do not accumulate.

`BlockCholesky` is the public class. Kernels follow: factorisation, solves for one and for many right-hand sides, and
the product with a sparse matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange
from smalti.sparse.block_products import Blocks, add_product, transpose
from smalti.sparse.pattern import Indices, Pattern

RIGHT_SIDES_AT_ONCE = 64
"""How many right-hand sides one thread solves at once: enough to fill vectors, few enough to stay in cache."""


LEAST_PIVOT_SHARE = 1e-14
"""The smallest pivot, as a share of its diagonal entry: above rounding."""

ACCURATE_PIVOT_SHARE = 1e-11
"""With a smaller share the factor is inaccurate; `orthogonal_factor.py` is accurate then."""


class NotPositiveDefiniteError(Exception):
    """The matrix has no Cholesky factor; `node` is where it failed."""

    def __init__(self, node: int) -> None:
        super().__init__(f"not positive definite at node {node}")
        self.node = node


class BlockCholesky:
    """A matrix of k×k blocks and its factor."""

    def __init__(
        self, pattern: Pattern, diagonal: Blocks, off_diagonal: Blocks, *, least_pivot_share: float = LEAST_PIVOT_SHARE
    ) -> None:
        """Factorise the matrix with `diagonal` (n, k, k) and blocks (first, second) of the pattern's edges.

        Every pivot must be more than `least_pivot_share` of its diagonal entry.
        """
        self.pattern = pattern
        n, k = diagonal.shape[:2]
        self._lower = np.zeros((len(pattern.slot_row), k, k))
        self._pivot_inverse = np.empty((n, k, k))
        self.active = _place_blocks(
            pattern.edge_slot, pattern.edge_flipped, pattern.slot_row, off_diagonal, self._lower, n
        )
        failed = _factorise(
            pattern.column_start,
            pattern.slot_row,
            pattern.row_start,
            pattern.row_column,
            pattern.row_slot,
            pattern.node_at,
            diagonal,
            self.active,
            self._lower,
            self._pivot_inverse,
            least_pivot_share,
        )
        if failed >= 0:
            raise NotPositiveDefiniteError(int(pattern.node_at[failed]))

    @classmethod
    def of_factor(cls, pattern: Pattern, lower: Blocks, pivot_inverse: Blocks) -> BlockCholesky:
        """Take a factor that was computed elsewhere: blocks by slot, inverted pivots by column."""
        factor = cls.__new__(cls)
        factor.pattern, factor._lower, factor._pivot_inverse = pattern, lower, pivot_inverse
        factor.active = np.tile(np.array([0, lower.shape[1]]), (pattern.nodes, 1))
        return factor

    @property
    def arrays(self) -> tuple[Indices, Indices, Blocks, Blocks]:
        """The factor as kernels take it: column starts, rows of slots, blocks, inverted pivots."""
        return self.pattern.column_start, self.pattern.slot_row, self._lower, self._pivot_inverse

    def solve(self, right: Blocks) -> Blocks:
        """Solve for right-hand sides (n, k, m), nodes in their own order."""
        if right.shape[2] == 1:
            return _solve_one(*self.arrays, self.active, self.pattern.node_at, right[..., 0])[..., None]
        work = np.ascontiguousarray(right[self.pattern.node_at])
        self.solve_ordered(work)
        return work[self.pattern.place]

    def solve_ordered(self, work: Blocks) -> None:
        """Solve for right-hand sides (n, k, m) in place, nodes in elimination order."""
        n, k, m = work.shape
        # Few right-hand sides are not worth waking other threads.
        solve = solve_in_place if m <= RIGHT_SIDES_AT_ONCE else _solve_in_parallel
        solve(*self.arrays, work.reshape(n * k, m))


@compiled
def _place_blocks(
    edge_slot: Indices,
    edge_flipped: NDArray[np.bool_],
    slot_row: Indices,
    off_diagonal: Blocks,
    lower: Blocks,
    nodes: int,
) -> Indices:
    """Put the blocks of edges into their slots; return the range of rows of each node (nodes, 2) that are not zero.

    A row that is zero in all blocks of a node stays zero in the factor. So a node of one number, among nodes of eight,
    costs as much as one number.
    """
    k = lower.shape[1]
    active = np.zeros((nodes, 2), dtype=np.int64)
    active[:, 0] = k
    for edge in range(len(edge_slot)):
        slot = edge_slot[edge]
        # The block of an edge (a, b) is at row a, column b; in a slot, the row is the later node.
        if edge_flipped[edge]:
            for a in range(k):
                for b in range(k):
                    lower[slot, a, b] = off_diagonal[edge, a, b]
        else:
            transpose(lower, slot, off_diagonal, edge, 1.0)
        row = slot_row[slot]
        for a in range(active[row, 0] if active[row, 1] else k):
            if _has_any(lower, slot, a):
                active[row, 0] = a
                break
        for a in range(k - 1, active[row, 1] - 1, -1):
            if _has_any(lower, slot, a):
                active[row, 0], active[row, 1] = min(active[row, 0], a), a + 1
                break
    return active


@compiled
def _has_any(blocks: Blocks, n: int, row: int) -> bool:
    """Tell whether a row of block n has a number other than 0."""
    zeros = 0
    for b in range(blocks.shape[2]):
        zeros += blocks[n, row, b] == 0.0
    return bool(zeros < blocks.shape[2])


@compiled
def _factorise(
    column_start: Indices,
    slot_row: Indices,
    row_start: Indices,
    row_column: Indices,
    row_slot: Indices,
    node_at: Indices,
    diagonal: Blocks,
    active: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    least_pivot_share: float,
) -> int:
    """Replace the blocks below the diagonal by the factor's, left-looking; return the failed column, or -1."""
    nodes, k = diagonal.shape[0], diagonal.shape[1]
    every = (0, k)
    slot_of_row = np.zeros(nodes, dtype=np.int64)
    pivot, turned, product = np.empty((1, k, k)), np.empty((1, k, k)), np.empty((1, k, k))
    for column in range(nodes):
        first, last = column_start[column], column_start[column + 1]
        for a in range(k):
            for b in range(k):
                pivot[0, a, b] = diagonal[node_at[column], a, b]
        for slot in range(first, last):
            slot_of_row[slot_row[slot]] = slot
        rows = (active[column, 0], active[column, 1])
        for t in range(row_start[column], row_start[column + 1]):
            earlier, mine = row_column[t], row_slot[t]
            transpose(turned, 0, lower, mine, -1.0)
            add_product(pivot, 0, lower, mine, turned, 0, rows, every)
            for slot in range(mine + 1, column_start[earlier + 1]):
                row = slot_row[slot]
                add_product(lower, slot_of_row[row], lower, slot, turned, 0, (active[row, 0], active[row, 1]), every)
        if not _invert_pivot(pivot, diagonal, node_at[column], pivot_inverse, column, least_pivot_share):
            return column
        transpose(turned, 0, pivot_inverse, column, 1.0)
        for slot in range(first, last):
            rows = (active[slot_row[slot], 0], active[slot_row[slot], 1])
            for a in range(rows[0], rows[1]):
                for b in range(k):
                    product[0, a, b] = 0.0
            add_product(product, 0, lower, slot, turned, 0, rows, every)
            for a in range(rows[0], rows[1]):
                for b in range(k):
                    lower[slot, a, b] = product[0, a, b]
    return -1


@compiled
def _invert_pivot(
    pivot: Blocks, diagonal: Blocks, node: int, pivot_inverse: Blocks, column: int, least_pivot_share: float
) -> bool:
    """Replace `pivot` by its Cholesky factor and write the factor's inverse; tell whether it exists."""
    k = pivot.shape[1]
    for a in range(k):
        for b in range(a):
            total = pivot[0, a, b]
            for c in range(b):
                total -= pivot[0, a, c] * pivot[0, b, c]
            pivot[0, a, b] = total * pivot_inverse[column, b, b]
        total = pivot[0, a, a]
        for c in range(a):
            total -= pivot[0, a, c] * pivot[0, a, c]
        if not total > least_pivot_share * diagonal[node, a, a]:
            return False
        pivot_inverse[column, a, a] = 1.0 / np.sqrt(total)
    for b in range(k):
        for a in range(b):
            pivot_inverse[column, a, b] = 0.0
        for a in range(b + 1, k):
            total = 0.0
            for c in range(b, a):
                total -= pivot[0, a, c] * pivot_inverse[column, c, b]
            pivot_inverse[column, a, b] = total * pivot_inverse[column, a, a]
    return True


@compiled
def _solve_one(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    active: Indices,
    node_at: Indices,
    right: Blocks,
) -> Blocks:
    """Return the solution (n, k) for one right-hand side, nodes in their own order."""
    nodes, k = right.shape
    work = np.empty((nodes, k))
    solved = np.empty((nodes, k))
    for column in range(nodes):
        for a in range(k):
            work[column, a] = right[node_at[column], a]
    for column in range(nodes):
        for a in range(k - 1, -1, -1):
            total = 0.0
            for b in range(a + 1):
                total += pivot_inverse[column, a, b] * work[column, b]
            work[column, a] = total
        for slot in range(column_start[column], column_start[column + 1]):
            row = slot_row[slot]
            for a in range(active[row, 0], active[row, 1]):
                total = 0.0
                for b in range(k):
                    total += lower[slot, a, b] * work[column, b]
                work[row, a] -= total
    for column in range(nodes - 1, -1, -1):
        for slot in range(column_start[column], column_start[column + 1]):
            row = slot_row[slot]
            for a in range(active[row, 0], active[row, 1]):
                scale = work[row, a]
                for b in range(k):
                    work[column, b] -= lower[slot, a, b] * scale
        node = node_at[column]
        for a in range(k):
            total = 0.0
            for b in range(a, k):
                total += pivot_inverse[column, b, a] * work[column, b]
            work[column, a] = total
            solved[node, a] = total
    return solved


@compiled
def solve_in_place(
    column_start: Indices, slot_row: Indices, lower: Blocks, pivot_inverse: Blocks, work: Blocks
) -> None:
    """Solve for `work` (n·k, m) in elimination order, vectorised over the m right-hand sides."""
    nodes, k = pivot_inverse.shape[0], pivot_inverse.shape[1]
    m = work.shape[1]
    for column in range(nodes):
        base = column * k
        for a in range(k - 1, -1, -1):
            scale = pivot_inverse[column, a, a]
            for x in range(m):
                work[base + a, x] *= scale
            for b in range(a):
                scale = pivot_inverse[column, a, b]
                for x in range(m):
                    work[base + a, x] += scale * work[base + b, x]
        for slot in range(column_start[column], column_start[column + 1]):
            row = slot_row[slot] * k
            for a in range(k):
                for b in range(k):
                    scale = lower[slot, a, b]
                    if scale == 0.0:
                        continue  # frequent for a node of one number among nodes of eight
                    for x in range(m):
                        work[row + a, x] -= scale * work[base + b, x]
    for column in range(nodes - 1, -1, -1):
        base = column * k
        for slot in range(column_start[column], column_start[column + 1]):
            row = slot_row[slot] * k
            for a in range(k):
                for b in range(k):
                    scale = lower[slot, a, b]
                    if scale == 0.0:
                        continue
                    for x in range(m):
                        work[base + b, x] -= scale * work[row + a, x]
        for a in range(k):
            scale = pivot_inverse[column, a, a]
            for x in range(m):
                work[base + a, x] *= scale
            for b in range(a + 1, k):
                scale = pivot_inverse[column, b, a]
                for x in range(m):
                    work[base + a, x] += scale * work[base + b, x]


@compiled
def multiply_sparse(
    diagonal: Blocks, ends: Indices, forth: Blocks, back: Blocks, vectors: Blocks, product: Blocks
) -> None:
    """Write the product of a sparse matrix with `vectors` (n·k, m); per edge it has the blocks `forth` and `back`."""
    n, k = diagonal.shape[0], diagonal.shape[1]
    m = vectors.shape[1]
    for node in range(n):
        for a in range(k):
            row = node * k + a
            for x in range(m):
                product[row, x] = 0.0
            for b in range(k):
                scale = diagonal[node, a, b]
                for x in range(m):
                    product[row, x] += scale * vectors[node * k + b, x]
    for edge in range(len(ends)):
        first, second = ends[edge, 0] * k, ends[edge, 1] * k
        for a in range(k):
            for b in range(k):
                there, again = forth[edge, a, b], back[edge, a, b]
                for x in range(m):
                    product[first + a, x] += there * vectors[second + b, x]
                for x in range(m):
                    product[second + a, x] += again * vectors[first + b, x]


@compiled_parallel
def _solve_in_parallel(
    column_start: Indices, slot_row: Indices, lower: Blocks, pivot_inverse: Blocks, work: Blocks
) -> None:
    m = work.shape[1]
    parts = (m + RIGHT_SIDES_AT_ONCE - 1) // RIGHT_SIDES_AT_ONCE
    for part in prange(parts):
        first = part * RIGHT_SIDES_AT_ONCE
        last = min(first + RIGHT_SIDES_AT_ONCE, m)
        own = work[:, first:last].copy()
        solve_in_place(column_start, slot_row, lower, pivot_inverse, own)
        work[:, first:last] = own
