"""Where the Cholesky factor of a sparse matrix of blocks has blocks.

A chain with few loops is eliminated in the order of cyclic reduction: every second node first, then every second of
those left, and so on. Its elimination tree has depth log₂ n, and a change at two nodes reaches only the columns on
their two paths to the root. That order depends on the number of nodes alone: a new edge leaves it as it is. With
many loops it fills up; then the node with the fewest neighbours goes first, and a new edge costs a new factor.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled

Indices = NDArray[np.int64]

FEW_EDGES = 1.3
"""Edges a node up to which the order of cyclic reduction is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Where the factor of a matrix with these edges has blocks; columns in elimination order."""

    nodes: int
    place: Indices  # node -> its place in the elimination order
    node_at: Indices  # place -> node
    edges: Indices  # (e, 2) nodes, as given
    edge_slot: Indices  # (e,) slot of each edge's block
    edge_flipped: NDArray[np.bool_]  # (e,) whether the edge's first node is the row of its slot
    column_start: Indices  # slots of column c: column_start[c] to column_start[c + 1]
    slot_row: Indices  # row of each slot, ascending within a column
    row_start: Indices  # the same by rows
    row_column: Indices
    row_slot: Indices
    parent: Indices  # of each column in the elimination tree, -1 at a root

    @classmethod
    def of(cls, nodes: int, edges: Indices) -> Pattern:
        """Analyse a matrix of `nodes` block rows with off-diagonal blocks at `edges` (e, 2)."""
        few = len(edges) <= FEW_EDGES * nodes
        node_at = _cyclic_reduction_order(nodes) if few else _fewest_neighbours_order(nodes, edges)
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

    def columns_above(self, nodes: Indices) -> Indices:
        """Return the columns, ascending, that a change at `nodes` reaches."""
        reached: set[int] = set()
        for column in self.place[nodes]:
            at = int(column)
            while at >= 0 and at not in reached:
                reached.add(at)
                at = int(self.parent[at])
        return np.array(sorted(reached), dtype=np.int64)


def _cyclic_reduction_order(nodes: int) -> Indices:
    numbers = np.arange(1, nodes + 1, dtype=np.int64)
    level = numbers & -numbers  # the largest power of two that divides the number
    return np.argsort(level, kind="stable")


def _fewest_neighbours_order(nodes: int, edges: Indices) -> Indices:
    """Eliminate a node of fewest neighbours, join these, and so on; the lowest number first among equals."""
    neighbours: list[set[int]] = [set() for _ in range(nodes)]
    for first, second in edges.tolist():
        neighbours[first].add(second)
        neighbours[second].add(first)
    waiting = [(len(around), node) for node, around in enumerate(neighbours)]
    heapq.heapify(waiting)
    order = []
    gone = [False] * nodes
    while waiting:
        count, node = heapq.heappop(waiting)
        if gone[node] or count != len(neighbours[node]):
            continue  # an entry from before its neighbours changed
        gone[node] = True
        order.append(node)
        around = neighbours[node]
        for other in around:
            neighbours[other] |= around
            neighbours[other] -= {other, node}
            heapq.heappush(waiting, (len(neighbours[other]), other))
    return np.array(order, dtype=np.int64)


@compiled
def _analyse(nodes: int, start: Indices, after: Indices) -> tuple[Indices, Indices, Indices]:
    column_start = np.zeros(nodes + 1, dtype=np.int64)
    rows = np.empty(max(4 * nodes, 16), dtype=np.int64)
    parent = np.full(nodes, -1, dtype=np.int64)
    first_child = np.full(nodes, -1, dtype=np.int64)
    next_sibling = np.full(nodes, -1, dtype=np.int64)
    seen = np.full(nodes, -1, dtype=np.int64)
    count = 0
    for column in range(nodes):
        if count + nodes > len(rows):
            larger = np.empty(2 * len(rows) + nodes, dtype=np.int64)
            larger[:count] = rows[:count]
            rows = larger
        first = count
        for t in range(start[column], start[column + 1]):
            row = after[t]
            if seen[row] != column:
                seen[row] = column
                rows[count] = row
                count += 1
        child = first_child[column]
        while child >= 0:
            for t in range(column_start[child], column_start[child + 1]):
                row = rows[t]
                if row != column and seen[row] != column:
                    seen[row] = column
                    rows[count] = row
                    count += 1
            child = next_sibling[child]
        rows[first:count].sort()
        if count > first:
            parent[column] = rows[first]
            next_sibling[column] = first_child[rows[first]]
            first_child[rows[first]] = column
        column_start[column + 1] = count
    return column_start, rows[:count].copy(), parent


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
        first, last = column_start[columns[t]], column_start[columns[t] + 1]
        slots[t] = first + np.searchsorted(slot_row[first:last], rows[t])
    return slots
