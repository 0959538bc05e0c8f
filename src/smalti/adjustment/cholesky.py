"""Sparse Cholesky factor of a symmetric matrix of small blocks, one block row a node.

Columns that a change reaches are computed anew from the matrix, not updated by rotations: the factor is a function of
the matrix alone, bit for bit, whatever the history of changes, and rounding errors cannot pile up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.pattern import Indices, Pattern
from smalti.compiled import compiled, compiled_parallel, prange

Blocks = NDArray[np.float64]

RIGHT_SIDES_AT_ONCE = 64
"""Right-hand sides that one thread solves together: enough to fill vectors, few enough to stay in cache."""


class NotPositiveDefiniteError(Exception):
    """The matrix has no Cholesky factor; `node` is where it failed."""

    def __init__(self, node: int) -> None:
        super().__init__(f"not positive definite at node {node}")
        self.node = node


class BlockCholesky:
    """A matrix of k×k blocks and its factor, kept together while the matrix changes."""

    def __init__(self, pattern: Pattern, diagonal: Blocks, off_diagonal: Blocks) -> None:
        """Factorise the matrix with `diagonal` (n, k, k) and blocks (first, second) of the pattern's edges."""
        self.pattern = pattern
        self._set_matrix(diagonal, off_diagonal)
        k = diagonal.shape[1]
        self._lower = np.zeros((len(pattern.slot_row), k, k))
        self._pivot_inverse = np.zeros((pattern.nodes, k, k))
        self._compute(np.arange(pattern.nodes))

    def changed(self, pattern: Pattern, diagonal: Blocks, off_diagonal: Blocks, nodes: Indices) -> BlockCholesky:
        """Return the factor of a matrix that differs from this one only in blocks whose row and column are of `nodes`.

        Columns that the change does not reach are taken over as they are, if the order of elimination is the same.
        """
        if not np.array_equal(pattern.node_at, self.pattern.node_at):
            return BlockCholesky(pattern, diagonal, off_diagonal)
        successor = BlockCholesky.__new__(BlockCholesky)
        successor.pattern = pattern
        successor._set_matrix(diagonal, off_diagonal)
        reached = np.union1d(self.pattern.columns_above(nodes), pattern.columns_above(nodes))
        kept = np.setdiff1d(np.arange(pattern.nodes), reached, assume_unique=True)
        k = diagonal.shape[1]
        successor._lower = np.zeros((len(pattern.slot_row), k, k))
        successor._pivot_inverse = self._pivot_inverse.copy()
        _take_over(kept, self.pattern.column_start, self._lower, pattern.column_start, successor._lower)
        successor._compute(reached)
        return successor

    @property
    def matrix(self) -> tuple[Blocks, Blocks]:
        """The matrix itself: diagonal in elimination order, blocks below it by slot."""
        return self._matrix_diagonal, self._matrix_lower

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

    def _set_matrix(self, diagonal: Blocks, off_diagonal: Blocks) -> None:
        pattern = self.pattern
        k = diagonal.shape[1]
        self._matrix_diagonal = np.ascontiguousarray(diagonal[pattern.node_at])
        self._matrix_lower = np.zeros((len(pattern.slot_row), k, k))
        # The block of an edge (a, b) is row a, column b; a slot wants the later node's row.
        flipped = pattern.edge_flipped[:, None, None]
        self._matrix_lower[pattern.edge_slot] = np.where(flipped, off_diagonal, np.swapaxes(off_diagonal, 1, 2))

    def _compute(self, columns: Indices) -> None:
        pattern = self.pattern
        failed = factorise_columns(
            columns,
            pattern.column_start,
            pattern.slot_row,
            pattern.row_start,
            pattern.row_column,
            pattern.row_slot,
            self._matrix_diagonal,
            self._matrix_lower,
            self._lower,
            self._pivot_inverse,
        )
        if failed >= 0:
            raise NotPositiveDefiniteError(int(pattern.node_at[failed]))


@compiled
def _take_over(
    columns: Indices, old_start: Indices, old_blocks: Blocks, new_start: Indices, new_blocks: Blocks
) -> None:
    for column in columns:
        shift = new_start[column] - old_start[column]
        for slot in range(old_start[column], old_start[column + 1]):
            new_blocks[slot + shift] = old_blocks[slot]


@compiled
def factorise_columns(
    columns: Indices,
    column_start: Indices,
    slot_row: Indices,
    row_start: Indices,
    row_column: Indices,
    row_slot: Indices,
    matrix_diagonal: Blocks,
    matrix_lower: Blocks,
    lower: Blocks,
    pivot_inverse: Blocks,
) -> int:
    """Compute the given columns, left-looking; return the first that has no positive pivot, or -1."""
    nodes, k = matrix_diagonal.shape[0], matrix_diagonal.shape[1]
    slot_of_row = np.zeros(nodes, dtype=np.int64)
    pivot = np.empty((k, k))
    for column in columns:
        first, last = column_start[column], column_start[column + 1]
        pivot[:] = matrix_diagonal[column]
        for slot in range(first, last):
            lower[slot] = matrix_lower[slot]
            slot_of_row[slot_row[slot]] = slot
        for t in range(row_start[column], row_start[column + 1]):
            earlier, mine = row_column[t], row_slot[t]
            _subtract_product(pivot, lower[mine], lower[mine])
            for slot in range(mine + 1, column_start[earlier + 1]):
                _subtract_product(lower[slot_of_row[slot_row[slot]]], lower[slot], lower[mine])
        if not _invert_pivot(pivot, matrix_diagonal[column], pivot_inverse[column]):
            return int(column)
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
def _invert_pivot(pivot: Blocks, original: Blocks, inverse: Blocks) -> bool:
    """Replace `pivot` by its Cholesky factor and write that factor's inverse; tell whether it has one."""
    k = pivot.shape[0]
    for a in range(k):
        for b in range(a + 1):
            total = pivot[a, b]
            for c in range(b):
                total -= pivot[a, c] * pivot[b, c]
            if a == b:
                # What is left of a diagonal entry after eliminating the rest must be more than its rounding.
                if not total > 1e-14 * original[a, a]:
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
    everywhere = np.ones(pivot_inverse.shape[0], dtype=np.bool_)
    solve_sparse_in_place(column_start, slot_row, lower, pivot_inverse, work, everywhere)


@compiled
def solve_sparse_in_place(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    work: Blocks,
    present: NDArray[np.bool_],
) -> None:
    """Solve as `solve_in_place` does for right-hand sides that are zero but at the places `present`, which it spoils.

    The way up the elimination tree passes only through columns above those places.
    """
    nodes, k = pivot_inverse.shape[0], pivot_inverse.shape[1]
    m = work.shape[1]
    for column in range(nodes):
        if not present[column]:
            continue
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
            present[slot_row[slot]] = True
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
