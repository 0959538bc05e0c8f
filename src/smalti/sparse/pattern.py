"""The elimination order and the sparsity pattern of the Cholesky factor of a matrix of blocks.

Frames between two loops have only their two neighbours in the chain. Every second of them is eliminated first, then
every second of the rest, and so on, until each stretch of the chain is one edge between the *knots* where loops begin
and end. Of the knots, those with few neighbours are eliminated first, as many per round as are not adjacent. The factor
stays about as sparse as the matrix, and the elimination tree is shallow: the elimination path of a frame is short.

`Pattern` holds the result. The elimination order comes next, then the symbolic factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled

Indices = NDArray[np.int64]

MORE_NEIGHBOURS, SHARE_OF_A_ROUND = 1, 10
"""Knots with at most so many neighbours more than the fewest are eliminated in the same round, and at least about one
in so many is eligible. The tree is shallower at the price of a little fill. With the fewest neighbours alone, a ladder
would be eliminated from its ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """The pattern of the factor of a matrix with these edges; columns are in elimination order."""

    nodes: int
    place: Indices  # node -> column, its place in the elimination order
    node_at: Indices  # column -> node
    edges: Indices  # (e, 2) nodes, as given
    edge_slot: Indices  # (e,) slot of each edge's block
    edge_flipped: NDArray[np.bool_]  # (e,) whether the edge's first node is the row of its slot
    column_start: Indices  # slots of column c: column_start[c] to column_start[c + 1]
    slot_row: Indices  # row of each slot, ascending within a column
    row_start: Indices  # the same slots by rows
    row_column: Indices
    row_slot: Indices
    parent: Indices  # of each column in the elimination tree, -1 at a root

    @classmethod
    def of(cls, nodes: int, edges: Indices, last: int = 0) -> Pattern:
        """Analyse a matrix of `nodes` block rows with off-diagonal blocks at `edges` (e, 2).

        The `last` nodes, counted from the end, have many neighbours and are eliminated last.
        """
        inner = nodes - last
        node_at = _elimination_order(inner, edges[(edges < inner).all(axis=1)])
        node_at = np.concatenate([node_at, np.arange(inner, nodes)])
        place = np.empty(nodes, dtype=np.int64)
        place[node_at] = np.arange(nodes)
        low = np.minimum(place[edges[:, 0]], place[edges[:, 1]])
        high = np.maximum(place[edges[:, 0]], place[edges[:, 1]])
        by_low = np.lexsort((high, low))
        start = np.searchsorted(low[by_low], np.arange(nodes + 1))
        column_start, slot_row, parent = _analyse(nodes, start, high[by_low])
        row_start, row_column, row_slot = _transpose(nodes, column_start, slot_row)
        return cls(
            nodes=nodes,
            place=place,
            node_at=node_at,
            edges=edges,
            edge_slot=_find_slots(column_start, slot_row, low, high),
            edge_flipped=place[edges[:, 0]] > place[edges[:, 1]],
            column_start=column_start,
            slot_row=slot_row,
            row_start=row_start,
            row_column=row_column,
            row_slot=row_slot,
            parent=parent,
        )


def _elimination_order(nodes: int, edges: Indices) -> Indices:
    """Return the nodes in the order in which they are eliminated."""
    degree = np.bincount(edges.ravel(), minlength=nodes)
    consecutive = np.abs(edges[:, 0] - edges[:, 1]) == 1
    to_neighbours = np.bincount(edges[consecutive].ravel(), minlength=nodes)
    interior = (degree == 2) & (to_neighbours == 2)
    numbers = np.arange(nodes, dtype=np.int64)
    last_knot = np.maximum.accumulate(np.where(interior, -1, numbers))
    within = numbers - last_knot  # 1, 2, … within a stretch, 0 at a knot
    level = within & -within  # the largest power of two that divides the number
    stretches = numbers[interior][np.argsort(level[interior], kind="stable")]
    knots = numbers[~interior]
    # Eliminating a stretch joins the knots at its two ends.
    between = interior[edges].any(axis=1)
    joined = np.column_stack([knots[:-1], knots[1:]])[np.diff(knots) > 1]
    between_knots = np.searchsorted(knots, np.concatenate([edges[~between], joined]))
    return np.concatenate([stretches, knots[_fewest_neighbours_order(len(knots), between_knots)]])


def _fewest_neighbours_order(nodes: int, edges: Indices) -> Indices:
    """Return an order by few neighbours: per round, eliminate nodes that are not adjacent and join their neighbours."""
    neighbours: list[set[int]] = [set() for _ in range(nodes)]
    for first, second in edges.tolist():
        neighbours[first].add(second)
        neighbours[second].add(first)
    waiting = list(range(nodes))
    order: list[int] = []
    while waiting:
        counts = sorted(len(neighbours[node]) for node in waiting)
        most = max(counts[0] + MORE_NEIGHBOURS, counts[len(counts) // SHARE_OF_A_ROUND])
        touched: set[int] = set()
        left = []
        for node in waiting:
            around = neighbours[node]
            if node in touched or len(around) > most:
                left.append(node)
                continue
            touched |= around
            order.append(node)
            for other in around:
                neighbours[other] |= around
                neighbours[other] -= {other, node}
        waiting = left
    return np.array(order, dtype=np.int64)


@compiled
def _analyse(nodes: int, start: Indices, after: Indices) -> tuple[Indices, Indices, Indices]:
    column_start = np.zeros(nodes + 1, dtype=np.int64)
    rows = np.empty(max(4 * nodes, 16), dtype=np.int64)
    parent = np.full(nodes, -1, dtype=np.int64)
    first_child = np.full(nodes, -1, dtype=np.int64)
    next_sibling = np.full(nodes, -1, dtype=np.int64)
    marked = np.full(nodes, -1, dtype=np.int64)
    count = 0
    for column in range(nodes):
        if count + nodes > len(rows):
            larger = np.empty(2 * len(rows) + nodes, dtype=np.int64)
            for t in range(count):  # a slice would cost seconds to compile
                larger[t] = rows[t]
            rows = larger
        first = count
        for t in range(start[column], start[column + 1]):
            row = after[t]
            if marked[row] != column:
                marked[row] = column
                rows[count] = row
                count += 1
        child = first_child[column]
        while child >= 0:
            for t in range(column_start[child], column_start[child + 1]):
                row = rows[t]
                if row != column and marked[row] != column:
                    marked[row] = column
                    rows[count] = row
                    count += 1
            child = next_sibling[child]
        _sort(rows, first, count)
        if count > first:
            parent[column] = rows[first]
            next_sibling[column] = first_child[rows[first]]
            first_child[rows[first]] = column
        column_start[column + 1] = count
    return column_start, rows[:count].copy(), parent


@compiled
def _sort(values: Indices, first: int, last: int) -> None:
    """Sort a few values in place by insertion; most are in order already."""
    for n in range(first + 1, last):
        value, at = values[n], n
        while at > first and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@compiled
def _transpose(nodes: int, column_start: Indices, slot_row: Indices) -> tuple[Indices, Indices, Indices]:
    row_start = np.zeros(nodes + 1, dtype=np.int64)
    for row in slot_row:
        row_start[row + 1] += 1
    for row in range(nodes):
        row_start[row + 1] += row_start[row]
    filled = row_start[:nodes].copy()
    row_column = np.empty(len(slot_row), dtype=np.int64)
    row_slot = np.empty(len(slot_row), dtype=np.int64)
    for column in range(nodes):
        for slot in range(column_start[column], column_start[column + 1]):
            at = filled[slot_row[slot]]
            row_column[at] = column
            row_slot[at] = slot
            filled[slot_row[slot]] += 1
    return row_start, row_column, row_slot


@compiled
def _find_slots(column_start: Indices, slot_row: Indices, columns: Indices, rows: Indices) -> Indices:
    slots = np.empty(len(columns), dtype=np.int64)
    for t in range(len(columns)):
        slots[t] = find_slot(column_start, slot_row, columns[t], rows[t])
    return slots


@compiled
def find_slot(column_start: Indices, slot_row: Indices, column: int, row: int) -> int:
    """Return the slot of a row in a column, or that of the next row there."""
    low, high = column_start[column], column_start[column + 1]
    while low < high:
        middle = (low + high) // 2
        if slot_row[middle] < row:
            low = middle + 1
        else:
            high = middle
    return int(low)
