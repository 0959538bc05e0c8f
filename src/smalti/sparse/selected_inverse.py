"""The blocks of the inverse at the pattern of the matrix, for about the cost of one more factorisation.

Takahashi's recursion goes from the last node to the first. With D the pivot of column j, s the rows below it and
W = L_sj L_jj⁻¹,

    Σ_sj = -Σ_ss W,      Σ_jj = D⁻¹ - Wᵀ Σ_sj.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.sparse.block_products import Blocks, add_product, add_transposed_product, transpose
from smalti.sparse.cholesky import BlockCholesky
from smalti.sparse.pattern import Indices, find_slot


def inverse_in_pattern(factor: BlockCholesky) -> tuple[Blocks, Blocks]:
    """Return the blocks of S⁻¹ of all nodes (n, k, k) and of the pattern's edges (e, k, k), first node by second."""
    pattern = factor.pattern
    return _invert_in_pattern(*factor.arrays, factor.active, pattern.node_at, pattern.edge_slot, pattern.edge_flipped)


@compiled
def _invert_in_pattern(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    active: Indices,
    node_at: Indices,
    edge_slot: Indices,
    edge_flipped: NDArray[np.bool_],
) -> tuple[Blocks, Blocks]:
    """Return the blocks of S⁻¹ of nodes and of edges."""
    nodes, k = pivot_inverse.shape[0], pivot_inverse.shape[1]
    every = (0, k)
    largest = 0
    for column in range(nodes):
        largest = max(largest, column_start[column + 1] - column_start[column])
    diagonal = np.empty((nodes, k, k))
    # Rows that are zero in the factor stay zero here.
    below = np.zeros((len(slot_row), k, k))
    w = np.empty((largest, k, k))  # -W
    for column in range(nodes - 1, -1, -1):
        first, last = column_start[column], column_start[column + 1]
        node = node_at[column]
        for slot in range(first, last):
            rows = (active[slot_row[slot], 0], active[slot_row[slot], 1])
            for a in range(rows[0], rows[1]):
                for b in range(k):
                    w[slot - first, a, b] = 0.0
            add_product(w, slot - first, lower, slot, pivot_inverse, column, rows, every)
            for a in range(rows[0], rows[1]):
                for b in range(k):
                    w[slot - first, a, b] = -w[slot - first, a, b]
        for slot in range(first, last):
            row = slot_row[slot]
            rows = (active[row, 0], active[row, 1])
            add_product(below, slot, diagonal, node_at[row], w, slot - first, rows, rows)
            for other in range(first, slot):
                theirs = (active[slot_row[other], 0], active[slot_row[other], 1])
                at = find_slot(column_start, slot_row, slot_row[other], row)
                add_product(below, slot, below, at, w, other - first, rows, theirs)
                add_transposed_product(below, other, below, at, w, slot - first, theirs, rows)
        for a in range(k):
            for b in range(k):
                diagonal[node, a, b] = 0.0
        add_transposed_product(diagonal, node, pivot_inverse, column, pivot_inverse, column, every, every)
        for slot in range(first, last):
            rows = (active[slot_row[slot], 0], active[slot_row[slot], 1])
            add_transposed_product(diagonal, node, w, slot - first, below, slot, every, rows)
    edges = np.empty((len(edge_slot), k, k))
    for edge in range(len(edge_slot)):
        if edge_flipped[edge]:
            for a in range(k):
                for b in range(k):
                    edges[edge, a, b] = below[edge_slot[edge], a, b]
        else:
            transpose(edges, edge, below, edge_slot[edge], 1.0)
    return diagonal, edges
