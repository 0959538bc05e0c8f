"""Chosen blocks of S⁻¹ M S⁻¹ for the price of one more factorisation.

M has blocks only where the factor of S has. Eliminating S node by node carries M along within that pattern, and
going back from the last node to the first yields the blocks of S⁻¹ and of S⁻¹ M S⁻¹ in the pattern, the diagonal
ones among them, as Takahashi's recursion does for S⁻¹ alone. With column j below its pivot D and W = L_sj L_jj⁻¹
for the rows s of the column, the eliminated M has the blocks B (diagonal), b (column) and b' (row), and

    Σ_sj = -Σ_ss W                       X_sj = Σ_ss b D⁻¹ - X_ss W
    Σ_jj = D⁻¹ - Wᵀ Σ_sj                 X_js = D⁻¹ b' Σ_ss - Wᵀ X_ss
                                         X_jj = D⁻¹ B D⁻¹ - D⁻¹ b' Σ_ss W - Wᵀ X_sj

where Σ = S⁻¹ and X = S⁻¹ M S⁻¹. M need not be symmetric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.cholesky import BlockCholesky, Blocks
from smalti.adjustment.pattern import Indices
from smalti.compiled import compiled

Matrix = NDArray[np.float64]


def sandwiched_diagonal(factor: BlockCholesky, diagonal: Blocks, lower: Blocks, upper: Blocks) -> Blocks:
    """Return the diagonal blocks (n, k, k) of S⁻¹ M S⁻¹, nodes in elimination order.

    M is given by its diagonal (n, k, k) in that order and, for each slot of the factor's pattern, the block below
    the diagonal and the one mirrored above it.
    """
    return _sandwich(*factor.arrays, diagonal.copy(), lower.copy(), upper.copy())


@compiled
def inverse_diagonal(column_start: Indices, slot_row: Indices, lower: Blocks, pivot_inverse: Blocks) -> Blocks:
    """Return the diagonal blocks (n, k, k) of S⁻¹ alone, nodes in elimination order."""
    nodes, k = pivot_inverse.shape[0], pivot_inverse.shape[1]
    largest = 0
    for column in range(nodes):
        largest = max(largest, column_start[column + 1] - column_start[column])
    diagonal = np.zeros((nodes, k, k))
    below = np.zeros((len(slot_row), k, k))
    inverse = np.empty((largest * k, largest * k))  # Σ_ss
    w = np.empty((largest * k, k))
    carried = np.empty((largest * k, k))  # Σ_ss W
    for column in range(nodes - 1, -1, -1):
        first, last = column_start[column], column_start[column + 1]
        size = (last - first) * k
        for slot in range(first, last):
            part = (slot - first) * k
            for a in range(k):
                for b in range(k):
                    total = 0.0
                    for c in range(b, k):
                        total += lower[slot, a, c] * pivot_inverse[column, c, b]
                    w[part + a, b] = total
            for other in range(first, slot):
                at = _find(column_start, slot_row, slot_row[other], slot_row[slot])
                offset = (other - first) * k
                for a in range(k):
                    for b in range(k):
                        inverse[part + a, offset + b] = below[at, a, b]
                        inverse[offset + b, part + a] = below[at, a, b]
            for a in range(k):
                for b in range(k):
                    inverse[part + a, part + b] = diagonal[slot_row[slot], a, b]
        for a in range(size):
            for b in range(k):
                carried[a, b] = 0.0
            for c in range(size):
                scale = inverse[a, c]
                for b in range(k):
                    carried[a, b] += scale * w[c, b]
        for a in range(k):
            for b in range(k):
                total = 0.0
                for c in range(max(a, b), k):
                    total += pivot_inverse[column, c, a] * pivot_inverse[column, c, b]
                for c in range(size):
                    total += w[c, a] * carried[c, b]
                diagonal[column, a, b] = total
        for slot in range(first, last):
            part = (slot - first) * k
            for a in range(k):
                for b in range(k):
                    below[slot, a, b] = -carried[part + a, b]
    return diagonal


@compiled
def _sandwich(
    column_start: Indices,
    slot_row: Indices,
    factor: Blocks,
    pivot_inverse: Blocks,
    diagonal: Blocks,
    lower: Blocks,
    upper: Blocks,
) -> Blocks:
    nodes, k = pivot_inverse.shape[0], pivot_inverse.shape[1]
    largest = 0
    for column in range(nodes):
        largest = max(largest, column_start[column + 1] - column_start[column])
    ratio = np.zeros((len(slot_row), k, k))  # W
    for column in range(nodes):
        for slot in range(column_start[column], column_start[column + 1]):
            _add_product(ratio[slot], factor[slot], pivot_inverse[column], 1.0)
        _eliminate(column, column_start, slot_row, ratio, diagonal, lower, upper)

    inverse_diagonal = np.zeros((nodes, k, k))  # Σ in the pattern
    inverse_lower = np.zeros((len(slot_row), k, k))
    result_diagonal = np.zeros((nodes, k, k))  # X in the pattern
    result_lower = np.zeros((len(slot_row), k, k))
    result_upper = np.zeros((len(slot_row), k, k))
    pivot = np.zeros((k, k))  # D⁻¹
    inverse = np.zeros((largest * k, largest * k))  # Σ_ss
    result = np.zeros((largest * k, largest * k))  # X_ss
    for column in range(nodes - 1, -1, -1):
        first, last = column_start[column], column_start[column + 1]
        size = (last - first) * k
        pivot[:] = 0.0
        _add_product(pivot, pivot_inverse[column].T, pivot_inverse[column], 1.0)
        for a in range(first, last):
            for b in range(first, last):
                row, col = (a - first) * k, (b - first) * k
                if a == b:
                    inverse[row : row + k, col : col + k] = inverse_diagonal[slot_row[a]]
                    result[row : row + k, col : col + k] = result_diagonal[slot_row[a]]
                elif a > b:
                    slot = _find(column_start, slot_row, slot_row[b], slot_row[a])
                    inverse[row : row + k, col : col + k] = inverse_lower[slot]
                    inverse[col : col + k, row : row + k] = inverse_lower[slot].T
                    result[row : row + k, col : col + k] = result_lower[slot]
                    result[col : col + k, row : row + k] = result_upper[slot]
        w = np.ascontiguousarray(ratio[first:last]).reshape(size, k)
        b_column = np.ascontiguousarray(lower[first:last]).reshape(size, k)
        b_row = np.zeros((k, size))
        for slot in range(first, last):
            b_row[:, (slot - first) * k : (slot - first + 1) * k] = upper[slot]

        carried = np.zeros((size, k))  # Σ_ss W
        _add_product(carried, inverse[:size, :size], w, 1.0)
        along = np.zeros((size, k))  # Σ_ss b
        _add_product(along, inverse[:size, :size], b_column, 1.0)
        across = np.zeros((k, size))  # b' Σ_ss
        _add_product(across, b_row, inverse[:size, :size], 1.0)
        x_column = np.zeros((size, k))
        _add_product(x_column, along, pivot, 1.0)
        _add_product(x_column, result[:size, :size], w, -1.0)
        x_row = np.zeros((k, size))
        _add_product(x_row, pivot, across, 1.0)
        _add_product(x_row, w.T, result[:size, :size], -1.0)

        inverse_diagonal[column] = pivot
        _add_product(inverse_diagonal[column], w.T, carried, 1.0)
        scaled = np.zeros((k, k))
        _add_product(scaled, pivot, diagonal[column], 1.0)
        _add_product(result_diagonal[column], scaled, pivot, 1.0)
        turned = np.zeros((k, k))
        _add_product(turned, b_row, carried, 1.0)
        _add_product(result_diagonal[column], pivot, turned, -1.0)
        _add_product(result_diagonal[column], w.T, x_column, -1.0)
        for slot in range(first, last):
            part = (slot - first) * k
            inverse_lower[slot] = -carried[part : part + k]
            result_lower[slot] = x_column[part : part + k]
            result_upper[slot] = x_row[:, part : part + k]
    return result_diagonal


@compiled
def _eliminate(
    column: int,
    column_start: Indices,
    slot_row: Indices,
    ratio: Blocks,
    diagonal: Blocks,
    lower: Blocks,
    upper: Blocks,
) -> None:
    """Carry M through the elimination of one column: its blocks become B, b and b'."""
    first, last = column_start[column], column_start[column + 1]
    for slot in range(first, last):
        _add_product(lower[slot], ratio[slot], diagonal[column], -1.0)
        _add_product(upper[slot], diagonal[column], ratio[slot].T, -1.0)
    k = diagonal.shape[1]
    bent = np.zeros((k, k))
    for a in range(first, last):
        # M_al -= W_a b'_l + (b_a + W_a B) W_lᵀ
        bent[:] = lower[a]
        _add_product(bent, ratio[a], diagonal[column], 1.0)
        for b in range(first, last):
            if a == b:
                target = diagonal[slot_row[a]]
            elif a > b:
                target = lower[_find(column_start, slot_row, slot_row[b], slot_row[a])]
            else:
                target = upper[_find(column_start, slot_row, slot_row[a], slot_row[b])]
            _add_product(target, ratio[a], upper[b], -1.0)
            _add_product(target, bent, ratio[b].T, -1.0)


@compiled
def _find(column_start: Indices, slot_row: Indices, column: int, row: int) -> int:
    low, high = column_start[column], column_start[column + 1]
    while low < high:
        middle = (low + high) // 2
        if slot_row[middle] < row:
            low = middle + 1
        else:
            high = middle
    return int(low)


@compiled
def _add_product(target: Matrix, left: Matrix, right: Matrix, scale: float) -> None:
    for a in range(left.shape[0]):
        for c in range(left.shape[1]):
            factor = scale * left[a, c]
            for b in range(right.shape[1]):
                target[a, b] += factor * right[c, b]
