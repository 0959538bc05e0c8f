"""The covariance of rows, J C Jᵀ, from the covariance of the frames that they join; and χ² of links against the rest.

The rows of a motion concern two frames. Those of a link also concern the shared node: a turn and a lens.
`propagate_pairs`, `propagate_frames` and `propagate_links` come first, then `chi2_against_rest`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.sparse.block_products import Blocks, add_product, transpose

LEAST_CHECKED = 1e-6
"""The smallest redundancy of a direction of a link. With less, other links do not check this direction."""

LEAST_PIVOT = 1e-10
"""The smallest pivot of a matrix whose largest eigenvalue is 1. With less, too few digits are left."""


@compiled
def propagate_pairs(
    own: Blocks, crossed: Blocks, ends: NDArray[np.int64], number: NDArray[np.int64], by_i: Blocks, by_j: Blocks
) -> NDArray[np.float64]:
    """Return the variances (n, rows) of rows that join two frames each; `number` (n,) is the block of each pair."""
    count, rows, freedom = by_i.shape
    result = np.zeros((count, rows))
    carried = np.empty((2, rows, freedom))
    for n in range(count):
        _carry(own, crossed, ends[n, 0], ends[n, 1], number[n], by_i, by_j, n, carried)
        for row in range(rows):
            for a in range(freedom):
                result[n, row] += carried[0, row, a] * by_i[n, row, a] + carried[1, row, a] * by_j[n, row, a]
    return result


@compiled
def propagate_frames(own: Blocks, by_frame: Blocks) -> NDArray[np.float64]:
    """Return the variances (n, rows) of rows that concern one frame each."""
    count, rows, freedom = by_frame.shape
    result = np.zeros((count, rows))
    carried = np.empty((1, rows, freedom))
    for n in range(count):
        carried[:] = 0.0
        add_product(carried, 0, by_frame, n, own, n, (0, rows), (0, freedom))
        for row in range(rows):
            for a in range(freedom):
                result[n, row] += carried[0, row, a] * by_frame[n, row, a]
    return result


@compiled
def propagate_links(
    own: Blocks,
    crossed: Blocks,
    ends: NDArray[np.int64],
    by_i: Blocks,
    by_j: Blocks,
    by_shared: NDArray[np.float64],
    shared_slot: NDArray[np.int64],
    directions: NDArray[np.int64],
) -> Blocks:
    """Return the covariances (n, rows, rows) of the rows of links, from both frames and the shared node."""
    count, rows, freedom = by_i.shape
    result = np.empty((count, rows, rows))
    carried, turned, half = np.empty((2, rows, freedom)), np.empty((2, freedom, rows)), np.empty((1, rows, rows))
    every, inner = (0, rows), (0, freedom)
    for n in range(count):
        i, j = ends[n]
        _carry(own, crossed, i, j, n, by_i, by_j, n, carried)
        transpose(turned, 0, by_i, n, 0.5)
        transpose(turned, 1, by_j, n, 0.5)
        half[:] = 0.0
        add_product(half, 0, carried, 0, turned, 0, every, inner)
        add_product(half, 0, carried, 1, turned, 1, every, inner)
        at_i, at_j = shared_slot[i], shared_slot[j]
        for c in range(len(directions) if at_i >= 0 and at_j >= 0 else 0):
            for row in range(rows):
                total = 0.0
                for d in range(len(directions)):
                    total += 0.5 * own[-1, directions[d], directions[c]] * by_shared[n, row, d]
                for a in range(freedom):
                    total += by_i[n, row, a] * crossed[at_i, a, directions[c]]
                    total += by_j[n, row, a] * crossed[at_j, a, directions[c]]
                for column in range(rows):
                    half[0, row, column] += total * by_shared[n, column, c]
        for row in range(rows):
            for column in range(rows):
                result[n, row, column] = half[0, row, column] + half[0, column, row]
    return result


@compiled
def _carry(
    own: Blocks, crossed: Blocks, i: int, j: int, number: int, by_i: Blocks, by_j: Blocks, n: int, carried: Blocks
) -> None:
    """Write J_i C_ii and 2 J_i C_ij + J_j C_jj.

    J C Jᵀ is the symmetric part of their products with J_iᵀ and J_jᵀ, summed.
    """
    rows, inner = (0, by_i.shape[1]), (0, by_i.shape[2])
    carried[:] = 0.0
    add_product(carried, 1, by_i, n, crossed, number, rows, inner)
    for row in range(carried.shape[1]):
        for a in range(carried.shape[2]):
            carried[1, row, a] *= 2.0
    add_product(carried, 1, by_j, n, own, j, rows, inner)
    add_product(carried, 0, by_i, n, own, i, rows, inner)


def chi2_against_rest(
    fitted_covariance: Blocks, residual: NDArray[np.float64], robust_weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return χ² (n,) of links against all others, from J C Jᵀ (n, r, r), residuals (n, r) and robust weights (n,).

    Along an eigenvector of J C Jᵀ with the value k, a link of robust weight t has a residual r. The residual against
    the other links alone is r / (√t (1 - k)), with the variance 1 + k / (t (1 - k)). So χ² = rᵀ (A (I - (1 - t) A))⁻¹ r
    with A = I - J C Jᵀ. A direction that no other link checks does not count. Eigenvectors are computed only for links
    with such a direction.
    """
    chi2, unchecked = _chi2_against_rest(fitted_covariance, residual, robust_weights)
    numbers = np.flatnonzero(unchecked)
    if len(numbers):
        values, vectors = np.linalg.eigh(np.eye(fitted_covariance.shape[1]) - fitted_covariance[numbers])
        along = np.einsum("lab,la->lb", vectors, residual[numbers])
        checked = values > LEAST_CHECKED
        checked_values = np.where(checked, np.minimum(values, 1.0), 1.0)
        variance = checked_values * (robust_weights[numbers, None] * checked_values + 1.0 - checked_values)
        chi2[numbers] = np.sum(np.where(checked, along**2 / variance, 0.0), axis=1)
    return chi2


@compiled
def _chi2_against_rest(
    fitted_covariance: Blocks, residual: NDArray[np.float64], robust_weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return χ² (n,) of links whose directions are all checked, and which links have an unchecked one (n,)."""
    count, k = residual.shape
    chi2, unchecked = np.zeros(count), np.zeros(count, dtype=np.bool_)
    root, first, second = np.empty((k, k)), np.empty(k), np.empty(k)
    for n in range(count):
        # If A - LEAST_CHECKED I has a factor, all directions are checked.
        if not _decompose(fitted_covariance[n], -1.0, 1.0 - LEAST_CHECKED, root):
            unchecked[n] = True
            continue
        lost = 1.0 - robust_weights[n]
        possible = _decompose(fitted_covariance[n], -1.0, 1.0, root)
        _solve(root, residual[n], first)
        for a in range(k):
            second[a] = residual[n, a]
        if possible and lost > 0.0:
            possible = _decompose(fitted_covariance[n], lost, 1.0 - lost, root)
            _solve(root, residual[n], second)
        if not possible:
            unchecked[n] = True
            continue
        for a in range(k):
            chi2[n] += first[a] * second[a]
    return chi2, unchecked


@compiled
def _decompose(fitted_covariance: NDArray[np.float64], scale: float, own: float, root: NDArray[np.float64]) -> bool:
    """Write the Cholesky factor of `scale` J C Jᵀ + `own` I, its diagonal inverted; tell whether it exists."""
    k = len(fitted_covariance)
    for a in range(k):
        for b in range(a + 1):
            total = scale * fitted_covariance[a, b] + (own if a == b else 0.0)
            for c in range(b):
                total -= root[a, c] * root[b, c]
            if a > b:
                root[a, b] = total * root[b, b]
            elif total > LEAST_PIVOT:
                root[a, a] = 1.0 / np.sqrt(total)
            else:
                return False
    return True


@compiled
def _solve(root: NDArray[np.float64], right: NDArray[np.float64], result: NDArray[np.float64]) -> None:
    k = len(root)
    for a in range(k):
        total = right[a]
        for c in range(a):
            total -= root[a, c] * result[c]
        result[a] = total * root[a, a]
    for a in range(k - 1, -1, -1):
        total = result[a]
        for c in range(a + 1, k):
            total -= root[c, a] * result[c]
        result[a] = total * root[a, a]
