"""Sparse Cholesky factor of a symmetric matrix of small blocks, one block row a node.

A changed matrix is factorised anew, not updated by rotations. With few loops that takes as long as looking at every
frame once; the factor is a function of the matrix alone, bit for bit, whatever the history of changes, and rounding
errors cannot pile up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.pattern import Indices, Pattern
from smalti.compiled import compiled, compiled_parallel, prange

Blocks = NDArray[np.float64]

RIGHT_SIDES_AT_ONCE = 64
"""Right-hand sides that one thread solves together: enough to fill vectors, few enough to stay in cache."""


LEAST_LEFT = 1e-14
"""More than rounding."""

ENOUGH_LEFT = 1e-11
"""Enough to be accurate; below it, `orthogonal.py` is."""


class NotPositiveDefiniteError(Exception):
    """The matrix has no Cholesky factor; `node` is where it failed."""

    def __init__(self, node: int) -> None:
        super().__init__(f"not positive definite at node {node}")
        self.node = node


class BlockCholesky:
    """A matrix of k×k blocks and its factor."""

    def __init__(
        self, pattern: Pattern, diagonal: Blocks, off_diagonal: Blocks, *, least_left: float = LEAST_LEFT
    ) -> None:
        """Factorise the matrix with `diagonal` (n, k, k) and blocks (first, second) of the pattern's edges.

        What eliminating the rest leaves of a diagonal entry must be more than `least_left` of it.
        """
        self.pattern = pattern
        n, k = diagonal.shape[:2]
        self._lower = np.zeros((len(pattern.slot_row), k, k))
        self._pivot_inverse = np.zeros((n, k, k))
        # The block of an edge (a, b) is row a, column b; a slot wants the later node's row.
        flipped = pattern.edge_flipped[:, None, None]
        self._lower[pattern.edge_slot] = np.where(flipped, off_diagonal, np.swapaxes(off_diagonal, 1, 2))
        failed = _factorise(
            pattern.column_start,
            pattern.slot_row,
            pattern.row_start,
            pattern.row_column,
            pattern.row_slot,
            np.ascontiguousarray(diagonal[pattern.node_at]),
            self._lower,
            self._pivot_inverse,
            least_left,
        )
        if failed >= 0:
            raise NotPositiveDefiniteError(int(pattern.node_at[failed]))

    @classmethod
    def of_factor(cls, pattern: Pattern, lower: Blocks, pivot_inverse: Blocks) -> BlockCholesky:
        """Take a factor that was found in another way: blocks by slot, inverted pivots by column."""
        factor = cls.__new__(cls)
        factor.pattern, factor._lower, factor._pivot_inverse = pattern, lower, pivot_inverse
        return factor

    @property
    def arrays(self) -> tuple[Indices, Indices, Blocks, Blocks]:
        """The factor as kernels want it: column starts, rows of slots, blocks, inverted pivots."""
        return self.pattern.column_start, self.pattern.slot_row, self._lower, self._pivot_inverse

    def solve(self, right: Blocks) -> Blocks:
        """Solve for right-hand sides (n, k, m), nodes in their own order."""
        n, k, m = right.shape
        work = np.ascontiguousarray(right[self.pattern.node_at])
        # One thread's worth of right-hand sides does not pay for waking the others.
        solve = solve_in_place if m <= RIGHT_SIDES_AT_ONCE else _solve_in_parallel
        solve(*self.arrays, work.reshape(n * k, m))
        return work[self.pattern.place]


@compiled
def _factorise(
    column_start: Indices,
    slot_row: Indices,
    row_start: Indices,
    row_column: Indices,
    row_slot: Indices,
    diagonal: Blocks,
    lower: Blocks,
    pivot_inverse: Blocks,
    least_left: float,
) -> int:
    """Turn the blocks below the diagonal into the factor's, left-looking; return where a pivot fails, or -1."""
    nodes, k = diagonal.shape[0], diagonal.shape[1]
    slot_of_row = np.zeros(nodes, dtype=np.int64)
    pivot = np.empty((k, k))
    for column in range(nodes):
        first, last = column_start[column], column_start[column + 1]
        for a in range(k):
            for b in range(k):
                pivot[a, b] = diagonal[column, a, b]
        for slot in range(first, last):
            slot_of_row[slot_row[slot]] = slot
        for t in range(row_start[column], row_start[column + 1]):
            earlier, mine = row_column[t], row_slot[t]
            _subtract_product(pivot, lower[mine], lower[mine])
            for slot in range(mine + 1, column_start[earlier + 1]):
                _subtract_product(lower[slot_of_row[slot_row[slot]]], lower[slot], lower[mine])
        if not _invert_pivot(pivot, diagonal[column], pivot_inverse[column], least_left):
            return column
        for slot in range(first, last):
            _divide_by_pivot(lower[slot], pivot_inverse[column])
    return -1


@compiled
def _subtract_product(target: Blocks, left: Blocks, right: Blocks) -> None:
    k = target.shape[0]
    for a in range(k):
        for b in range(k):
            total = 0.0
            for c in range(k):
                total += left[a, c] * right[b, c]
            target[a, b] -= total


@compiled
def _invert_pivot(pivot: Blocks, original: Blocks, inverse: Blocks, least_left: float) -> bool:
    """Replace `pivot` by its Cholesky factor and write that factor's inverse; tell whether it has one."""
    k = pivot.shape[0]
    for a in range(k):
        for b in range(a + 1):
            total = pivot[a, b]
            for c in range(b):
                total -= pivot[a, c] * pivot[b, c]
            if a == b:
                if not total > least_left * original[a, a]:
                    return False
                pivot[a, a] = np.sqrt(total)
            else:
                pivot[a, b] = total / pivot[b, b]
    for a in range(k):
        for b in range(k):
            inverse[a, b] = 0.0
    for b in range(k):
        inverse[b, b] = 1.0 / pivot[b, b]
        for a in range(b + 1, k):
            total = 0.0
            for c in range(b, a):
                total -= pivot[a, c] * inverse[c, b]
            inverse[a, b] = total / pivot[a, a]
    return True


@compiled
def _divide_by_pivot(block: Blocks, pivot_inverse: Blocks) -> None:
    k = block.shape[0]
    for a in range(k):
        for b in range(k - 1, -1, -1):
            total = 0.0
            for c in range(b + 1):
                total += block[a, c] * pivot_inverse[b, c]
            block[a, b] = total


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
                    for x in range(m):
                        work[row + a, x] -= scale * work[base + b, x]
    for column in range(nodes - 1, -1, -1):
        base = column * k
        for slot in range(column_start[column], column_start[column + 1]):
            row = slot_row[slot] * k
            for a in range(k):
                for b in range(k):
                    scale = lower[slot, a, b]
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
    """Write the product with `vectors` (n·k, m) of a matrix of blocks on the diagonal and, per edge, forth and back."""
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
