"""How surely the mosaic foretells what links would measure, of links that nobody has made yet.

The residual of a link is (P - T̂) R with P = Θ_i⁻¹ Θ_j. In local increments Θ ← Θ (I + δ) it changes by
(P δ_j - δ_i P) R: two 6×6 matrices say all about it, whatever the link would measure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.ascent import ENTRIES, Ways
from smalti.adjustment.pairs import shared_levels
from smalti.compiled import compiled, compiled_parallel, prange, threads_for
from smalti.records import PairNumbers, Transforms

TAIL_OF = np.array(
    [
        [0, 1, 2, 12, 13, 14],
        [1, 3, 4, 15, 16, 17],
        [2, 4, 5, 18, 19, 20],
        [12, 15, 18, 6, 7, 8],
        [13, 16, 19, 7, 9, 10],
        [14, 17, 20, 8, 10, 11],
    ]
)
"""Where the product of two entries of a map is among those of `ascent.PRODUCTS`."""


@dataclass(frozen=True, slots=True, eq=False)
class Relations:
    """Links that are thought of: how the residuals of each change with the entries of its two frames' δ."""

    pairs: PairNumbers  # (n, 2)
    by_i: NDArray[np.float64]  # (n, rows, 6); all six rows: x of three points, then y
    by_j: NDArray[np.float64]

    @classmethod
    def of(cls, pairs: PairNumbers, i_from_j: Transforms, roots: NDArray[np.float64]) -> Relations:
        """Take what is expected of P (n, 2, 3) and R (n, 3, 3), in the adjustment's units."""
        mapped = i_from_j @ roots
        by_i, by_j = np.zeros((2, len(pairs), 2, 3, 2, 3))  # residual (row, point) by entry (row, column)
        for row in range(2):
            by_i[:, row, :, row, :2] = -np.swapaxes(mapped, 1, 2)
            by_i[:, row, :, row, 2] = -roots[:, 2]
        by_j[:] = i_from_j[:, :, None, :2, None] * np.swapaxes(roots, 1, 2)[:, None, :, None, :]
        return cls(pairs, by_i.reshape(-1, 6, ENTRIES), by_j.reshape(-1, 6, ENTRIES))

    def __getitem__(self, chosen: slice | NDArray[np.int64]) -> Relations:
        return Relations(self.pairs[chosen], self.by_i[chosen], self.by_j[chosen])

    def of_point(self, point: int) -> Relations:
        """Return what is measured of one of the three points alone: two rows."""
        rows = [point, 3 + point]
        return Relations(self.pairs, self.by_i[:, rows], self.by_j[:, rows])

    def covariances(self, ways: Ways) -> NDArray[np.float64]:
        """Return the covariance (n, 6, 6) of what the residuals would be without noise, px²."""
        with threads_for(5.0 * len(self.pairs)):
            return _covariances(self.pairs, self.by_i, self.by_j, ways)

    def moved(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how the residuals move (n, rows, m) with the entries of all δ (N, 6, m)."""
        moved: NDArray[np.float64] = self.by_i @ moves[self.pairs[:, 0]] + self.by_j @ moves[self.pairs[:, 1]]
        return moved

    def loads(self, frames: int, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the transpose of that (frames, 6, m), of factors (n, rows, m)."""
        loads = np.zeros((frames, ENTRIES, factors.shape[2]))
        _add_loads(self.pairs, self.by_i, self.by_j, factors, loads)
        return loads


@compiled
def _add_loads(
    pairs: PairNumbers,
    by_i: NDArray[np.float64],
    by_j: NDArray[np.float64],
    factors: NDArray[np.float64],
    loads: NDArray[np.float64],
) -> None:
    for n in range(len(pairs)):
        i, j = pairs[n]
        for entry in range(ENTRIES):
            for row in range(factors.shape[1]):
                of_i, of_j = by_i[n, row, entry], by_j[n, row, entry]
                for column in range(factors.shape[2]):
                    loads[i, entry, column] += of_i * factors[n, row, column]
                    loads[j, entry, column] += of_j * factors[n, row, column]


@compiled_parallel
def _covariances(
    pairs: PairNumbers, by_i: NDArray[np.float64], by_j: NDArray[np.float64], ways: Ways
) -> NDArray[np.float64]:
    place, _, depth, freedom, start, values, tail_start, tails = ways
    result = np.zeros((len(pairs), 6, 6))
    for n in prange(len(pairs)):
        at_i, at_j = place[pairs[n, 0]], place[pairs[n, 1]]
        shared = shared_levels(pairs[n, 0], pairs[n, 1], ways)
        length_i, length_j = (depth[at_i] + 1) * freedom, (depth[at_j] + 1) * freedom
        way_i = values[start[at_i] : start[at_i] + ENTRIES * length_i]
        way_j = values[start[at_j] : start[at_j] + ENTRIES * length_j]
        _add_shared(way_i, length_i, way_j, length_j, shared * freedom, by_i[n], by_j[n], result[n])
        _add_own(tails[tail_start[at_i] + shared], by_i[n], result[n])
        _add_own(tails[tail_start[at_j] + shared], by_j[n], result[n])
        for row in range(6):
            for column in range(row):
                result[n, column, row] = result[n, row, column]
    return result


@compiled
def _add_shared(
    way_i: NDArray[np.float64],
    length_i: int,
    way_j: NDArray[np.float64],
    length_j: int,
    shared: int,
    by_i: NDArray[np.float64],
    by_j: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> None:
    """Add what the two ways have in common: the difference is taken before squaring."""
    moved = np.empty(6)
    for t in range(shared):
        for row in range(6):
            total = 0.0
            for entry in range(ENTRIES):
                total += by_i[row, entry] * way_i[entry * length_i + t] + by_j[row, entry] * way_j[entry * length_j + t]
            moved[row] = total
        for row in range(6):
            for column in range(row + 1):
                covariance[row, column] += moved[row] * moved[column]


@compiled
def _add_own(tail: NDArray[np.float64], by: NDArray[np.float64], covariance: NDArray[np.float64]) -> None:
    """Add what one way has for itself."""
    product = np.empty(ENTRIES)
    for row in range(6):
        for entry in range(ENTRIES):
            total = 0.0
            for other in range(ENTRIES):
                total += by[row, other] * tail[TAIL_OF[other, entry]]
            product[entry] = total
        for column in range(row + 1):
            total = 0.0
            for entry in range(ENTRIES):
                total += product[entry] * by[column, entry]
            covariance[row, column] += total
