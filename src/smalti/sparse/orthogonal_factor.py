"""The same factor as in `cholesky.py`, by QR of the rows A of a least-squares problem instead of from AᵀA.

The condition number of AᵀA is the square of that of A. In an open chain of about ten thousand frames or more, no digits
of the relative position of its ends remain. Householder reflections, node by node, work on A itself. They take several
times as long, so they are used only where Cholesky fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smalti.compiled import compiled
from smalti.sparse.block_products import Blocks
from smalti.sparse.cholesky import BlockCholesky, NotPositiveDefiniteError
from smalti.sparse.pattern import Indices, Pattern


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Equations A x ≈ b in groups of r rows; each group concerns one or two nodes."""

    ends: Indices  # (g, 2): the nodes, -1 for none
    first: Blocks  # (g, r, k)
    second: Blocks  # (g, r, k)
    right: Blocks  # (g, r, m): b


def factorise_rows(pattern: Pattern, rows: Rows) -> tuple[BlockCholesky, Blocks]:
    """Return the factor of AᵀA and the least-squares solution (n, k, m), nodes in their own order."""
    nodes, k, m = pattern.nodes, rows.first.shape[2], rows.right.shape[2]
    place = np.append(pattern.place, nodes)[rows.ends]  # `nodes` stands for none
    owner = place.min(axis=1)
    by_owner = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[by_owner], np.arange(nodes + 1))
    slots = np.diff(pattern.column_start)
    largest = np.append(0, np.cumsum((slots * k) * (slots * k + m)))
    lower, pivot_inverse = np.zeros((len(pattern.slot_row), k, k)), np.zeros((nodes, k, k))
    reduced = np.zeros((nodes * k, m))
    failed = _eliminate(
        pattern.column_start,
        pattern.slot_row,
        pattern.parent,
        start,
        by_owner,
        place,
        rows.first,
        rows.second,
        rows.right,
        largest,
        lower,
        pivot_inverse,
        reduced,
    )
    if failed >= 0:
        raise NotPositiveDefiniteError(int(pattern.node_at[failed]))
    _substitute(pattern.column_start, pattern.slot_row, lower, pivot_inverse, reduced)
    return BlockCholesky.of_factor(pattern, lower, pivot_inverse), reduced.reshape(nodes, k, m)[pattern.place]


@compiled
def _eliminate(
    column_start: Indices,
    slot_row: Indices,
    parent: Indices,
    group_start: Indices,
    groups: Indices,
    place: Indices,
    first: Blocks,
    second: Blocks,
    right: Blocks,
    rest_start: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    reduced: Blocks,
) -> int:
    """Write the factor, and Qᵀb into `reduced`; return the column where it fails, or -1."""
    nodes, r, k = len(parent), first.shape[1], first.shape[2]
    m = right.shape[2]
    # What a column passes to its parent: an upper triangle over the rows of the column, and its right-hand sides.
    rest = np.zeros(rest_start[-1])
    rest_rows = np.zeros(nodes, dtype=np.int64)
    first_child = np.full(nodes, -1, dtype=np.int64)
    next_sibling = np.full(nodes, -1, dtype=np.int64)
    local = np.zeros(nodes + 1, dtype=np.int64)
    for column in range(nodes):
        slots = column_start[column + 1] - column_start[column]
        size = (slots + 1) * k
        local[column] = 0
        for t in range(slots):
            local[slot_row[column_start[column] + t]] = (t + 1) * k
        height = (group_start[column + 1] - group_start[column]) * r
        child = first_child[column]
        while child >= 0:
            height += rest_rows[child]
            child = next_sibling[child]
        front = np.zeros((max(height, k), size + m))
        at = 0
        for n in range(group_start[column], group_start[column + 1]):
            group = groups[n]
            for row in range(r):
                for side in range(2):
                    node = place[group, side]
                    if node < nodes:
                        block = first if side == 0 else second
                        for a in range(k):
                            front[at, local[node] + a] = block[group, row, a]
                for a in range(m):
                    front[at, size + a] = right[group, row, a]
                at += 1
        child = first_child[column]
        while child >= 0:
            width = (column_start[child + 1] - column_start[child]) * k
            for row in range(rest_rows[child]):
                source = rest_start[child] + row * (width + m)
                for a in range(width):
                    node = slot_row[column_start[child] + a // k]
                    front[at, local[node] + a % k] = rest[source + a]
                for a in range(m):
                    front[at, size + a] = rest[source + width + a]
                at += 1
            child = next_sibling[child]
        largest = 0.0
        for a in range(k):
            largest = max(largest, _length(front, 0, a))
        _triangulate(front, size)
        for a in range(k):
            if not abs(front[a, a]) > 1e-13 * largest:
                return column
            if front[a, a] < 0.0:
                for b in range(a, size + m):
                    front[a, b] = -front[a, b]
        # L is the transpose of this triangle.
        for b in range(k):
            pivot_inverse[column, b, b] = 1.0 / front[b, b]
            for a in range(b + 1, k):
                total = 0.0
                for c in range(b, a):
                    total -= front[c, a] * pivot_inverse[column, c, b]
                pivot_inverse[column, a, b] = total / front[a, a]
            for t in range(slots):
                for a in range(k):
                    lower[column_start[column] + t, a, b] = front[b, (t + 1) * k + a]
            for a in range(m):
                reduced[column * k + b, a] = front[b, size + a]
        left = min(front.shape[0], size) - k
        rest_rows[column] = left
        for row in range(left):
            target = rest_start[column] + row * (size - k + m)
            for a in range(size - k + m):
                rest[target + a] = front[k + row, k + a]
        if parent[column] >= 0:
            next_sibling[column] = first_child[parent[column]]
            first_child[parent[column]] = column
    return -1


@compiled
def _triangulate(front: Blocks, columns: int) -> None:
    """Make the first columns upper triangular by Householder reflections from the left."""
    rows, width = front.shape
    for c in range(min(rows - 1, columns)):
        length = _length(front, c, c)
        if length == 0.0:
            continue
        head = front[c, c]
        front[c, c] = head + math.copysign(length, head)
        scale = length * (length + abs(head))  # half the squared length of the Householder vector
        for b in range(c + 1, width):
            total = 0.0
            for a in range(c, rows):
                total += front[a, c] * front[a, b]
            total /= scale
            if total != 0.0:
                for a in range(c, rows):
                    front[a, b] -= total * front[a, c]
        front[c, c] = -math.copysign(length, head)
        for a in range(c + 1, rows):
            front[a, c] = 0.0


@compiled
def _length(front: Blocks, row: int, column: int) -> float:
    total = 0.0
    for a in range(row, front.shape[0]):
        total += front[a, column] * front[a, column]
    return math.sqrt(total)


@compiled
def _substitute(column_start: Indices, slot_row: Indices, lower: Blocks, pivot_inverse: Blocks, work: Blocks) -> None:
    """Solve Lᵀ x = `work` (n·k, m) in place, from the root down."""
    nodes, k = pivot_inverse.shape[0], pivot_inverse.shape[1]
    m = work.shape[1]
    for column in range(nodes - 1, -1, -1):
        for x in range(m):
            for slot in range(column_start[column], column_start[column + 1]):
                for b in range(k):
                    for a in range(k):
                        work[column * k + b, x] -= lower[slot, a, b] * work[slot_row[slot] * k + a, x]
            for a in range(k):
                total = 0.0
                for b in range(a, k):
                    total += pivot_inverse[column, b, a] * work[column * k + b, x]
                work[column * k + a, x] = total
