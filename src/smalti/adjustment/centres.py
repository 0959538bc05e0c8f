"""Where the centre of every frame falls in every other frame: the covariance of all pairs, a few frames at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.cholesky import Blocks, multiply_sparse, solve_in_place
from smalti.adjustment.pattern import Indices
from smalti.compiled import compiled, compiled_parallel, prange
from smalti.geometry.outline import Outline
from smalti.records import Transforms

FRAMES_AT_ONCE = 32
"""Frames whose columns one thread works on together: their right-hand sides fill vectors and fit in cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """Where the centre of every frame i falls in every frame j, as a normal distribution (γ_ij)."""

    outline: Outline
    mean: NDArray[np.float64]  # (N, N, 2), [i, j], pixels of frame j
    cov: NDArray[np.float64]  # (N, N, 3): xx, xy, yy

    @property
    def spread_squared(self) -> NDArray[np.float64]:
        """(N, N): tr Σ_γ, px²."""
        total: NDArray[np.float64] = self.cov[..., 0] + self.cov[..., 2]
        return total

    @property
    def determinant(self) -> NDArray[np.float64]:
        """(N, N): det Σ_γ, px⁴."""
        return determinant(self.cov)


@dataclass(frozen=True, slots=True, eq=False)
class PairCentres:
    """The same for some pairs: the first frame's centre in the second, and the second's in the first."""

    outline: Outline
    mean: NDArray[np.float64]  # (n, 2, 2), [pair, direction], pixels of the frame that it is seen in
    cov: NDArray[np.float64]  # (n, 2, 3): xx, xy, yy

    @property
    def spread(self) -> NDArray[np.float64]:
        """tr Σ_γ (n,), px², mean of both directions."""
        spread: NDArray[np.float64] = self.cov[:, :, ::2].sum(axis=(1, 2)) / 2.0
        return spread

    def chosen(self, numbers: slice | NDArray[np.int64]) -> PairCentres:
        """Return those of some of the pairs."""
        return PairCentres(self.outline, self.mean[numbers], self.cov[numbers])


def determinant(cov: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the determinants of covariances (..., 3) given as xx, xy, yy."""
    det: NDArray[np.float64] = cov[..., 0] * cov[..., 2] - cov[..., 1] ** 2
    return np.maximum(det, 0.0)


@compiled_parallel
def distribute_centres(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    noise_diagonal: Blocks,
    noise_ends: Indices,
    noise_forth: Blocks,
    noise_back: Blocks,
    basis: NDArray[np.float64],
    shift_x: int,
    shift_y: int,
    place: Indices,
    maps: Transforms,
    inverses: Transforms,
    own: NDArray[np.float64],
    unit: float,
    centre_x: float,
    centre_y: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (N, N, 2) and covariance (N, N, 3) of γ_ij in pixels; maps are in the adjustment's units.

    With t_i the centre of i and u_j the point of j that lies there, both on the mosaic, the covariance of their
    difference is Cov(t_i) - Cov(t_i, u_j) - Cov(u_j, t_i) + Cov(u_j), carried into frame j. The centre is the origin of
    the units, so t_i is the shift of the frame's map. `own` (N, 2, 3, 2, 3) is the covariance of every frame's map; the
    terms that cross two frames are columns of S⁻¹ M S⁻¹, M being the noise for xx, xy and yy (one matrix for all three
    where x and y share their parameters). A thread takes some frames i, holds only their columns, writes their rows.

    The noise of a pseudo-point is 1 px by construction of the link, so the result is in px² whatever the unit.
    """
    frames = place.shape[0]
    noises, n, k = noise_diagonal.shape[0], noise_diagonal.shape[1], noise_diagonal.shape[2]
    width = 1 if noises == 3 else 2  # columns a frame: the parameters of one plane that shift its centre
    mean = np.empty((frames, frames, 2))
    cov = np.empty((frames, frames, 3))
    parts = (frames + FRAMES_AT_ONCE - 1) // FRAMES_AT_ONCE
    for part in prange(parts):
        first = part * FRAMES_AT_ONCE
        count = min(FRAMES_AT_ONCE, frames - first)
        solved = np.zeros((n * k, count * width))
        for f in range(count):
            if place[first + f] >= 0:
                solved[place[first + f] * k + shift_x, f * width] = 1.0
                solved[place[first + f] * k + shift_y, f * width + width - 1] = 1.0
        solve_in_place(column_start, slot_row, lower, pivot_inverse, solved)
        product = np.empty((n * k, count * width))
        # [f, entry, j, a]: Cov(t_i, Θ_j) + Cov(Θ_j, t_i) for frame i = first + f, entry xx, xy or yy, column a of Θ_j.
        crossed = np.zeros((count, 3, frames, 3))
        for s in range(noises):
            multiply_sparse(noise_diagonal[s], noise_ends, noise_forth[s], noise_back[s], solved, product)
            solve_in_place(column_start, slot_row, lower, pivot_inverse, product)
            for entry in range(3):
                if noises == 1 or entry == s:
                    _cross(product, entry, width, basis, place, crossed)
        for f in range(count):
            _finish_row(
                first + f, crossed[f], maps, inverses, own, unit, centre_x, centre_y, mean[first + f], cov[first + f]
            )
    return mean, cov


@compiled
def _cross(
    product: Blocks,
    entry: int,
    width: int,
    basis: NDArray[np.float64],
    place: Indices,
    crossed: NDArray[np.float64],
) -> None:
    """Turn covariances with parameters into covariances with the entries of maps, both ways, frame by frame."""
    count, frames, k = crossed.shape[0], crossed.shape[2], basis.shape[2]
    p, q = entry // 2, (entry + 1) // 2
    for row, column in ((p, q), (q, p)):
        shifted = column if width == 2 else 0
        for a in range(3):
            for c in range(k):
                scale = basis[row, a, c]
                if scale != 0.0:
                    for j in range(frames):
                        if place[j] >= 0:
                            at = place[j] * k + c
                            for f in range(count):
                                crossed[f, entry, j, a] += scale * product[at, f * width + shifted]


@compiled
def _finish_row(
    i: int,
    crossed: NDArray[np.float64],
    maps: Transforms,
    inverses: Transforms,
    own: NDArray[np.float64],
    unit: float,
    centre_x: float,
    centre_y: float,
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Write the distribution of the centre of frame i in every frame j."""
    for j in range(maps.shape[0]):
        a, b, c, d = inverses[j, 0, 0], inverses[j, 0, 1], inverses[j, 1, 0], inverses[j, 1, 1]
        x, y = centre_seen(maps, inverses, i, j)
        mean[j, 0], mean[j, 1] = x * unit + centre_x, y * unit + centre_y
        if i == j:
            cov[j] = 0.0
            continue
        xx = _spread_on_mosaic(own[i, 0, :, 0], crossed[0, j], own[j, 0, :, 0], x, y)
        xy = _spread_on_mosaic(own[i, 0, :, 1], crossed[1, j], own[j, 0, :, 1], x, y)
        yy = _spread_on_mosaic(own[i, 1, :, 1], crossed[2, j], own[j, 1, :, 1], x, y)
        cov[j, 0] = a * a * xx + 2.0 * a * b * xy + b * b * yy
        cov[j, 1] = a * c * xx + (a * d + b * c) * xy + b * d * yy
        cov[j, 2] = c * c * xx + 2.0 * c * d * xy + d * d * yy


@compiled
def centre_seen(maps: Transforms, inverses: Transforms, i: int, j: int) -> tuple[float, float]:
    """Return γ_ij in the adjustment's units, in which the centre of a frame is its origin."""
    dx, dy = maps[i, 0, 2] - maps[j, 0, 2], maps[i, 1, 2] - maps[j, 1, 2]
    return inverses[j, 0, 0] * dx + inverses[j, 0, 1] * dy, inverses[j, 1, 0] * dx + inverses[j, 1, 1] * dy


@compiled
def _spread_on_mosaic(
    own_i: NDArray[np.float64], crossed: NDArray[np.float64], own_j: NDArray[np.float64], x: float, y: float
) -> float:
    total = own_i[2, 2] - (crossed[0] * x + crossed[1] * y + crossed[2])
    total += x * (own_j[0, 0] * x + (own_j[0, 1] + own_j[1, 0]) * y + own_j[0, 2] + own_j[2, 0])
    total += y * (own_j[1, 1] * y + own_j[1, 2] + own_j[2, 1]) + own_j[2, 2]
    return float(total)
