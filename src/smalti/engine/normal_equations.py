"""The normal equations JᵀJ and Jᵀr of linearised rows, as sparse blocks, and the gauge.

`normal_equations` adds up links, motions, the shared node and attitudes, in this order. `fix_gauge` fixes one frame of
every connected part. Kernels come last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.engine.equations import System
from smalti.engine.linearisation import Rowset
from smalti.sparse.block_products import Blocks, add_transposed_product

GAUGE_DIRECTIONS = 3
"""The directions in which one frame of every part is fixed: position (2) and turn."""

WEAK_DEVIATIONS = np.array([1e4, 1e4, 6.0, 3.0, 1.0, 1.0, 1.0, 1.0])
"""Prior deviations of a frame's increments, so weak that they matter only where nothing else determines them."""


def normal_equations(system: System, rows: Rowset) -> tuple[Blocks, Blocks, NDArray[np.float64]]:
    """Return JᵀJ as blocks on the diagonal (n, f, f) and per edge of the pattern (e, f, f), and Jᵀr (n, f)."""
    freedom, frames = system.family.freedom, system.frames
    diagonal = np.zeros((system.nodes, freedom, freedom))
    off_diagonal = np.zeros((len(system.ends) + len(system.shared_ends), freedom, freedom))
    gradient = np.zeros((system.nodes, freedom))
    accumulate(system.ends, system.every, rows.by_i, rows.by_j, rows.residual, diagonal, off_diagonal, gradient)
    if len(rows.motion):
        accumulate(
            system.step_ends,
            system.steps,
            rows.motion_by_i,
            rows.motion_by_j,
            rows.motion,
            diagonal,
            off_diagonal,
            gradient,
        )
    if system.shares_error:
        _accumulate_shared(
            system.ends,
            system.sharing,
            system.shared_slot,
            system.shared_directions,
            rows.by_i,
            rows.by_j,
            rows.by_shared,
            rows.residual,
            diagonal,
            off_diagonal,
            gradient,
        )
        diagonal[frames] += rows.shared_root.T @ rows.shared_root
        gradient[frames] += rows.shared_root.T @ rows.shared
    _accumulate_attitudes(rows.by_frame, rows.attitude, WEAK_DEVIATIONS, diagonal, gradient)
    return diagonal, off_diagonal, gradient


def fix_gauge(system: System, diagonal: Blocks) -> None:
    """Fix position and turn of one frame of every part, as strongly as its own links do, in place."""
    fixed = np.arange(min(GAUGE_DIRECTIONS, system.family.freedom))
    diagonal[system.references[:, None], fixed, fixed] *= 2.0


@compiled
def accumulate(
    ends: NDArray[np.int64],
    number: NDArray[np.int64],
    by_i: NDArray[np.float64],
    by_j: NDArray[np.float64],
    residual: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    off_diagonal: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> None:
    """Add JᵀJ and Jᵀr of rows that join two frames each, in their order; `number` (n,) is the edge of each."""
    every, rows = (0, by_i.shape[2]), (0, by_i.shape[1])
    for n in range(len(ends)):
        i, j = ends[n, 0], ends[n, 1]
        add_transposed_product(diagonal, i, by_i, n, by_i, n, every, rows)
        add_transposed_product(diagonal, j, by_j, n, by_j, n, every, rows)
        add_transposed_product(off_diagonal, number[n], by_i, n, by_j, n, every, rows)
        for row in range(by_i.shape[1]):
            value = residual[n, row]
            for a in range(by_i.shape[2]):
                gradient[i, a] += by_i[n, row, a] * value
                gradient[j, a] += by_j[n, row, a] * value


@compiled
def _accumulate_shared(
    ends: NDArray[np.int64],
    sharing: NDArray[np.int64],
    slot: NDArray[np.int64],
    directions: NDArray[np.int64],
    by_i: NDArray[np.float64],
    by_j: NDArray[np.float64],
    by_shared: NDArray[np.float64],
    residual: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    off_diagonal: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> None:
    """Add the terms of the shared node, which is the last one, and its blocks with the frames."""
    node, freedom = len(diagonal) - 1, by_i.shape[2]
    for n in sharing:
        i, j = slot[ends[n, 0]], slot[ends[n, 1]]
        for row in range(by_i.shape[1]):
            for c in range(len(directions)):
                value, direction = by_shared[n, row, c], directions[c]
                gradient[node, direction] += value * residual[n, row]
                for d in range(len(directions)):
                    diagonal[node, directions[d], direction] += by_shared[n, row, d] * value
                for a in range(freedom):
                    off_diagonal[i, a, direction] += by_i[n, row, a] * value
                    off_diagonal[j, a, direction] += by_j[n, row, a] * value


@compiled
def _accumulate_attitudes(
    by_frame: Blocks,
    attitude: NDArray[np.float64],
    open_deviations: NDArray[np.float64],
    diagonal: Blocks,
    gradient: NDArray[np.float64],
) -> None:
    """Add the terms of attitudes, and the weak prior on every frame's increments."""
    every, rows = (0, by_frame.shape[2]), (0, by_frame.shape[1])
    for n in range(len(by_frame)):
        add_transposed_product(diagonal, n, by_frame, n, by_frame, n, every, rows)
        for row in range(by_frame.shape[1]):
            for a in range(by_frame.shape[2]):
                gradient[n, a] += by_frame[n, row, a] * attitude[n, row]
        for a in range(by_frame.shape[2]):
            diagonal[n, a, a] += 1.0 / open_deviations[a] ** 2
