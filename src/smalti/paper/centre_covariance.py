"""Compute the covariance of the centre of every frame in every other frame (γ_ij), for all pairs at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange
from smalti.geometry.linear_maps import apply, invert
from smalti.geometry.outline import Outline
from smalti.records import Transforms
from smalti.sparse.block_products import Blocks
from smalti.sparse.cholesky import multiply_sparse, solve_in_place
from smalti.sparse.pattern import Indices

FRAMES_AT_ONCE = 32
"""Frames whose columns one thread processes together: their right-hand sides fill vectors and fit in cache."""


def centre_in_other(mosaic_from_frame: Transforms, outline: Outline) -> NDArray[np.float64]:
    """Return γ_ij (N, N, 2): the centre of each frame i in the pixels of each frame j."""
    centres = apply(mosaic_from_frame, outline.centre[None])[:, 0]
    return np.swapaxes(apply(invert(mosaic_from_frame), centres[None]), 0, 1)


def centre_jacobian(mosaic_from_i: Transforms, mosaic_from_j: Transforms, outline: Outline) -> NDArray[np.float64]:
    """Return J_ij (2, 12), the derivative of γ_ij by Vec₆(Θ_i, Θ_j) (Eqs. jacobian_gamma_i, _j)."""
    inverse = np.linalg.inv(mosaic_from_j[:, :2])
    centre = np.append(outline.centre, 1.0)
    centre_in_j = np.append(inverse @ (mosaic_from_i @ centre - mosaic_from_j[:, 2]), 1.0)
    return np.hstack([np.kron(inverse, centre), -np.kron(inverse, centre_in_j)])


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
    shifts: Indices,
    place: Indices,
    maps: Transforms,
    inverses: Transforms,
    unit: float,
    centre_x: float,
    centre_y: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (N, N, 2) and covariance (N, N, 3) of γ_ij in pixels; maps are in the adjustment's units.

    Let t_i be the centre of i and u_j the point of j that lies there, both on the mosaic. The covariance of their
    difference is Cov(t_i) - Cov(t_i, u_j) - Cov(u_j, t_i) + Cov(u_j), mapped into frame j. The centre is the origin of
    the units, so t_i is a parameter of the frame's map: number `shifts` (2,) of x and y. All four terms come from
    columns of S⁻¹ M S⁻¹. M is the noise for xx, xy and yy (one matrix for all three if x and y share their parameters).

    Two neighbours hundreds of frames from the reference both have the large uncertainty of everything between them and
    it. The four terms nearly cancel. The rounding of a column is nearly the same in the rows of both frames and cancels
    too, if Cov(u_j) and Cov(t_i, u_j) are taken from the columns of j, and Cov(t_i) and Cov(u_j, t_i) from that of i.

    The noise of a pseudo-point is 1 px by construction of the link, so the result is in px² whatever the unit.
    """
    frames = place.shape[0]
    noises, n, k = noise_diagonal.shape[0], noise_diagonal.shape[1], noise_diagonal.shape[2]
    centre_in_j = np.empty((frames, frames, 2))
    cov = np.zeros((frames, frames, 3))
    for i in prange(frames):
        for j in range(frames):
            dx, dy = maps[i, 0, 2] - maps[j, 0, 2], maps[i, 1, 2] - maps[j, 1, 2]
            centre_in_j[i, j, 0] = inverses[j, 0, 0] * dx + inverses[j, 0, 1] * dy
            centre_in_j[i, j, 1] = inverses[j, 1, 0] * dx + inverses[j, 1, 1] * dy
    parts = (frames + FRAMES_AT_ONCE - 1) // FRAMES_AT_ONCE
    for part in prange(parts):
        first = part * FRAMES_AT_ONCE
        count = min(FRAMES_AT_ONCE, frames - first)
        solved = np.zeros((n * k, count * k))
        for f in range(count):
            if place[first + f] >= 0:
                for c in range(k):
                    solved[place[first + f] * k + c, f * k + c] = 1.0
        solve_in_place(column_start, slot_row, lower, pivot_inverse, solved)
        product = np.empty((n * k, count * k))
        for s in range(noises):
            multiply_sparse(noise_diagonal[s], noise_ends, noise_forth[s], noise_back[s], solved, product)
            solve_in_place(column_start, slot_row, lower, pivot_inverse, product)
            for entry in range(3):
                if noises == 1 or entry == s:
                    _add_of_second(product, entry, first, count, basis, shifts, place, centre_in_j, cov)
    for part in prange(parts):
        first = part * FRAMES_AT_ONCE
        count = min(FRAMES_AT_ONCE, frames - first)
        width = 1 if noises == 3 else 2  # columns per frame: the parameters of one plane that shift its centre
        solved = np.zeros((n * k, count * width))
        for f in range(count):
            if place[first + f] >= 0:
                solved[place[first + f] * k + shifts[0], f * width] = 1.0
                solved[place[first + f] * k + shifts[1], f * width + width - 1] = 1.0
        solve_in_place(column_start, slot_row, lower, pivot_inverse, solved)
        product = np.empty((n * k, count * width))
        for s in range(noises):
            multiply_sparse(noise_diagonal[s], noise_ends, noise_forth[s], noise_back[s], solved, product)
            solve_in_place(column_start, slot_row, lower, pivot_inverse, product)
            for entry in range(3):
                if noises == 1 or entry == s:
                    _add_of_first(product, entry, width, first, count, basis, shifts, place, centre_in_j, cov)
        for i in range(first, first + count):
            for j in range(frames):
                _carry_into(inverses[j], cov[i, j])
            cov[i, i] = 0.0
    for i in prange(frames):
        for j in range(frames):
            centre_in_j[i, j, 0] = centre_in_j[i, j, 0] * unit + centre_x
            centre_in_j[i, j, 1] = centre_in_j[i, j, 1] * unit + centre_y
    return centre_in_j, cov


@compiled
def _add_of_second(
    product: Blocks,
    entry: int,
    first: int,
    count: int,
    basis: NDArray[np.float64],
    shifts: Indices,
    place: Indices,
    centre_in_j: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Add Cov(u_j) - Cov(t_i, u_j) for all frames i and some frames j, whose columns are in `product`."""
    k = basis.shape[2]
    p, q = entry // 2, (entry + 1) // 2
    for i in range(len(place)):
        for f in range(count):
            j = first + f
            if place[j] < 0:
                continue
            x, y = centre_in_j[i, j, 0], centre_in_j[i, j, 1]
            total = 0.0
            for d in range(k):
                of_q = basis[q, 0, d] * x + basis[q, 1, d] * y + basis[q, 2, d]
                of_own = 0.0
                for c in range(k):
                    of_p = basis[p, 0, c] * x + basis[p, 1, c] * y + basis[p, 2, c]
                    of_own += of_p * product[place[j] * k + c, f * k + d]
                if place[i] >= 0:
                    of_own -= product[place[i] * k + shifts[p], f * k + d]
                total += of_own * of_q
            cov[i, j, entry] += total


@compiled
def _add_of_first(
    product: Blocks,
    entry: int,
    width: int,
    first: int,
    count: int,
    basis: NDArray[np.float64],
    shifts: Indices,
    place: Indices,
    centre_in_j: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Add Cov(t_i) - Cov(u_j, t_i) for some frames i, whose columns are in `product`, and all frames j."""
    k = basis.shape[2]
    p, q = entry // 2, (entry + 1) // 2
    for j in range(len(place)):
        for f in range(count):
            i = first + f
            if place[i] < 0:
                continue
            column = f * width + (q if width == 2 else 0)
            total = product[place[i] * k + shifts[p], column]
            if place[j] >= 0:
                x, y = centre_in_j[i, j, 0], centre_in_j[i, j, 1]
                for c in range(k):
                    of_p = basis[p, 0, c] * x + basis[p, 1, c] * y + basis[p, 2, c]
                    total -= of_p * product[place[j] * k + c, column]
            cov[i, j, entry] += total


@compiled
def _carry_into(inverse: Transforms, cov: NDArray[np.float64]) -> None:
    """Map a covariance (3,) from the mosaic into a frame."""
    a, b, c, d = inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1]
    xx, xy, yy = cov[0], cov[1], cov[2]
    cov[0] = a * a * xx + 2.0 * a * b * xy + b * b * yy
    cov[1] = a * c * xx + (a * d + b * c) * xy + b * d * yy
    cov[2] = c * c * xx + 2.0 * c * d * xy + d * d * yy
