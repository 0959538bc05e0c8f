"""Predict what links would measure that do not exist yet, with the covariance of the prediction.

A point x of frame j lies in frame i at y = π(P x̃), P = H_i⁻¹ H_j. Local increments H ← H exp(Δ) move it by
J_P(x) v(x; Δ_j) - v(y; Δ_i), where v is the velocity of a point (`relative_position.py`). So two matrices of eight
columns describe any link, whatever it would measure.

`PredictedLinks` holds these matrices. `velocities` comes next, then the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, compiled_sums, prange, threads_for
from smalti.engine.elimination_paths import PRODUCT_OF, PathArrays
from smalti.engine.relative_position import FAR, shared_levels
from smalti.geometry.homographies import ENTRIES
from smalti.records import Homographies, PairNumbers, Points
from smalti.sparse.pattern import Indices

TINY = 1e-30
"""The smallest divisor, so that singular maps give finite numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictedLinks:
    """Links that are not measured yet: the derivatives of each of their rows by the entries of both frames' Δ."""

    pairs: PairNumbers  # (n, 2)
    by_i: NDArray[np.float64]  # (n, rows, 8)
    by_j: NDArray[np.float64]

    @classmethod
    def at(
        cls,
        pairs: PairNumbers,
        i_from_j: Homographies,
        points_j: Points,
        weights: NDArray[np.float64] | None,
        unit: float,
    ) -> PredictedLinks:
        """Return links that measure points (n, m, 2) of frames j, in units, where maps (n, 3, 3) take them in frames i.

        Rows are displacements in pixels of frame i, times `weights` (n, m): x of the first point, its y, x of the
        second, and so on, 2m in all. A point behind the camera of i counts as FAR away.
        """
        scaled = i_from_j / np.maximum(np.abs(i_from_j).max(axis=(1, 2), keepdims=True), TINY)
        mapped = points_j @ np.swapaxes(scaled[:, :, :2], 1, 2) + scaled[:, None, :, 2]
        least = np.maximum(np.abs(mapped[..., :2]).max(axis=-1) / FAR, 1.0 / FAR**2)
        depth = np.maximum(mapped[..., 2], least)[..., None]
        points_i = mapped[..., :2] / depth
        turned = (scaled[:, None, :2, :2] - points_i[..., None] * scaled[:, None, 2:, :2]) / depth[..., None]
        length = np.full(points_j.shape[:2], unit) if weights is None else unit * weights
        by_i = -length[..., None, None] * velocities(points_i)
        by_j = length[..., None, None] * (turned @ velocities(points_j))
        rows = 2 * points_j.shape[1]
        return cls(pairs, by_i.reshape(-1, rows, ENTRIES), by_j.reshape(-1, rows, ENTRIES))

    @classmethod
    def of_increments(cls, pairs: PairNumbers, i_from_j: Homographies, j_from_i: Homographies) -> PredictedLinks:
        """Return links that measure the increment E of the relative map P ← P exp(E): rows are its eight entries.

        exp(-Δ_i) P exp(Δ_j) = P exp(E) gives, to first order, E = Δ_j - P⁻¹ Δ_i P. Maps have no scale, so the corner of
        E is subtracted from its whole diagonal.
        """
        n = len(pairs)
        # The two maps are each other's inverse up to scale.
        scale = np.einsum("nab,nba->n", j_from_i, i_from_j) / 3.0
        inverse = j_from_i / np.where(np.abs(scale) > TINY, scale, 1.0)[:, None, None]
        moved = (
            -inverse[:, :, None, :, None] * np.swapaxes(i_from_j, 1, 2)[:, None, :, None, :]
        )  # [n, row, column of E]
        for k in range(2):
            moved[:, k, k] -= moved[:, 2, 2]
        by_i = moved.reshape(n, 9, 9)[:, :ENTRIES, :ENTRIES]
        return cls(pairs, np.ascontiguousarray(by_i), np.tile(np.eye(ENTRIES), (n, 1, 1)))

    def __getitem__(self, chosen: slice | NDArray[np.int64]) -> PredictedLinks:
        return PredictedLinks(self.pairs[chosen], self.by_i[chosen], self.by_j[chosen])

    def covariances(self, paths: PathArrays) -> NDArray[np.float64]:
        """Return the covariances (n, rows, rows) of the rows due to the mosaic's uncertainty; px² for points."""
        with threads_for(0.6 * self.by_i.shape[1] * len(self.pairs)):
            return _covariances(
                np.ascontiguousarray(self.pairs),
                np.ascontiguousarray(self.by_i),
                np.ascontiguousarray(self.by_j),
                paths,
            )

    def moved(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the changes of the rows (n, rows, m) for changes of the entries of all Δ (N, 8, m)."""
        return _moved(self.pairs, self.by_i, self.by_j, moves)

    def loads(self, frames: int, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the transposed product (frames, 8, m) with factors (n, rows, m)."""
        loads = np.zeros((frames, ENTRIES, factors.shape[2]))
        _add_loads(self.pairs, self.by_i, self.by_j, factors, loads)
        return loads


def velocities(points: Points) -> NDArray[np.float64]:
    """Return the derivatives (..., 2, 8) of points (..., 2), in units, by the entries of Δ."""
    x, y = points[..., 0], points[..., 1]
    result = np.zeros((*points.shape, ENTRIES))
    for row in range(2):
        result[..., row, 3 * row] = x
        result[..., row, 3 * row + 1] = y
        result[..., row, 3 * row + 2] = 1.0
        result[..., row, 6] = -points[..., row] * x
        result[..., row, 7] = -points[..., row] * y
    return result


@compiled
def combine(
    by_entry: NDArray[np.float64], loads: NDArray[np.float64], place: Indices, work: NDArray[np.float64]
) -> None:
    """Add loads by entry of Δ (N, 8, m) to those by parameter (n, f, m), frames at their columns `place`."""
    for n in range(len(place)):
        for a in range(by_entry.shape[0]):
            for entry in range(ENTRIES):
                share = by_entry[a, entry]
                if share != 0.0:
                    for x in range(loads.shape[2]):
                        work[place[n], a, x] += share * loads[n, entry, x]


@compiled
def combine_back(
    by_entry: NDArray[np.float64], work: NDArray[np.float64], place: Indices, moves: NDArray[np.float64]
) -> None:
    """Write the changes of the entries of Δ (N, 8, m), given those of the parameters (n, f, m)."""
    for n in range(len(place)):
        moves[n] = 0.0
        for a in range(by_entry.shape[0]):
            for entry in range(ENTRIES):
                share = by_entry[a, entry]
                if share != 0.0:
                    for x in range(moves.shape[2]):
                        moves[n, entry, x] += share * work[place[n], a, x]


@compiled
def _moved(
    pairs: PairNumbers, by_i: NDArray[np.float64], by_j: NDArray[np.float64], moves: NDArray[np.float64]
) -> NDArray[np.float64]:
    moved = np.zeros((len(pairs), by_i.shape[1], moves.shape[2]))
    for n in range(len(pairs)):
        i, j = pairs[n]
        for row in range(by_i.shape[1]):
            for entry in range(ENTRIES):
                of_i, of_j = by_i[n, row, entry], by_j[n, row, entry]
                for x in range(moves.shape[2]):
                    moved[n, row, x] += of_i * moves[i, entry, x] + of_j * moves[j, entry, x]
    return moved


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
    pairs: PairNumbers, by_i: NDArray[np.float64], by_j: NDArray[np.float64], paths: PathArrays
) -> NDArray[np.float64]:
    rows = by_i.shape[1]
    result = np.zeros((len(pairs), rows, rows))
    for n in prange(len(pairs)):
        add_covariance(pairs[n, 0], pairs[n, 1], paths, by_i[n], by_j[n], result[n])
    return result


@compiled
def add_covariance(
    i: int,
    j: int,
    paths: PathArrays,
    by_i: NDArray[np.float64],
    by_j: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> None:
    """Add the covariance (rows, rows) of by_i Δ_i + by_j Δ_j."""
    place, _, depth, freedom, start, values, tail_start, tails = paths
    at_i, at_j = place[i], place[j]
    shared = shared_levels(i, j, paths)
    length_i, length_j = (depth[at_i] + 1) * freedom, (depth[at_j] + 1) * freedom
    path_i = values[start[at_i] : start[at_i] + ENTRIES * length_i]
    path_j = values[start[at_j] : start[at_j] + ENTRIES * length_j]
    moved = np.zeros((len(by_i), shared * freedom))
    for row in range(len(by_i)):
        # The difference of the two is taken before squaring.
        _move(path_i, length_i, by_i[row], moved[row])
        _move(path_j, length_j, by_j[row], moved[row])
        for column in range(row + 1):
            covariance[row, column] += _product(moved[row], moved[column])
    _add_own(tails[tail_start[at_i] + shared], by_i, covariance)
    _add_own(tails[tail_start[at_j] + shared], by_j, covariance)
    for row in range(len(by_i)):
        for column in range(row):
            covariance[column, row] = covariance[row, column]


@compiled_sums
def _move(path: NDArray[np.float64], length: int, by: NDArray[np.float64], moved: NDArray[np.float64]) -> None:
    """Add the change of one row along the shared part of a path."""
    w0, w1, w2, w3 = path, path[length:], path[2 * length :], path[3 * length :]
    w4, w5, w6, w7 = path[4 * length :], path[5 * length :], path[6 * length :], path[7 * length :]
    b0, b1, b2, b3, b4, b5, b6, b7 = by[0], by[1], by[2], by[3], by[4], by[5], by[6], by[7]
    for t in range(len(moved)):
        half = b0 * w0[t] + b1 * w1[t] + b2 * w2[t] + b3 * w3[t]
        moved[t] += half + b4 * w4[t] + b5 * w5[t] + b6 * w6[t] + b7 * w7[t]


@compiled_sums
def _product(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    total = 0.0
    for t in range(len(first)):
        total += first[t] * second[t]
    return total


@compiled
def _add_own(tail: NDArray[np.float64], by: NDArray[np.float64], covariance: NDArray[np.float64]) -> None:
    """Add the covariance from the part of one path that is not shared."""
    product = np.empty(ENTRIES)
    for row in range(len(by)):
        for entry in range(ENTRIES):
            total = 0.0
            for other in range(ENTRIES):
                total += by[row, other] * tail[PRODUCT_OF[other, entry]]
            product[entry] = total
        for column in range(row + 1):
            total = 0.0
            for entry in range(ENTRIES):
                total += product[entry] * by[column, entry]
            covariance[row, column] += total
