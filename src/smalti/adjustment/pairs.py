"""Two frames relative to each other: where one's centre falls in the other, and how surely.

In local increments Θ ← Θ (I + δ) the place γ_ij of the centre of i in j changes by Q δ_i 0̃ - δ_j γ̃_ij, Q being the
linear part of Θ_j⁻¹ Θ_i; the centre is the origin of the adjustment's units. With the square roots of the covariance
along the ways of i and j (`ascent.py`), the covariance is the sum of squares of that difference.

The noise of a pseudo-point is 1 px by construction of the link, so covariances come out in px² whatever the unit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.ascent import ENTRIES, Ways
from smalti.adjustment.centres import centre_seen
from smalti.compiled import compiled, compiled_parallel, compiled_sums, prange
from smalti.records import PairNumbers, Transforms


@compiled_parallel
def relate_pairs(
    pairs: PairNumbers,
    ways: Ways,
    maps: Transforms,
    inverses: Transforms,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (n, 2, 2), in units, and covariance (n, 2, 3), px², of γ_ij and γ_ji for pairs (n, 2)."""
    mean = np.zeros((len(pairs), 2, 2))
    cov = np.zeros((len(pairs), 2, 3))
    for n in prange(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        if i != j:
            shared = shared_levels(i, j, ways)
            _relate(i, j, shared, ways, maps, inverses, mean[n, 0], cov[n, 0])
            _relate(j, i, shared, ways, maps, inverses, mean[n, 1], cov[n, 1])
    return mean, cov


@compiled_parallel
def relate_all(
    ways: Ways,
    maps: Transforms,
    inverses: Transforms,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (N, N, 2), in units, and covariance (N, N, 3), px², of γ_ij for all pairs."""
    frames = len(maps)
    mean = np.zeros((frames, frames, 2))
    cov = np.zeros((frames, frames, 3))
    for i in prange(frames):
        for j in range(frames):
            if i != j:
                _relate(i, j, shared_levels(i, j, ways), ways, maps, inverses, mean[i, j], cov[i, j])
    return mean, cov


@compiled
def _relate(
    i: int,
    j: int,
    shared: int,
    ways: Ways,
    maps: Transforms,
    inverses: Transforms,
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Write the distribution of the centre of i in j."""
    place, _, depth, freedom, start, values, tail_start, tails = ways
    at_i, at_j = place[i], place[j]
    x, y = centre_seen(maps, inverses, i, j)
    mean[0], mean[1] = x, y
    q = turned(inverses[j], maps[i])
    length_i, length_j = (depth[at_i] + 1) * freedom, (depth[at_j] + 1) * freedom
    way_i = values[start[at_i] : start[at_i] + ENTRIES * length_i]
    way_j = values[start[at_j] : start[at_j] + ENTRIES * length_j]
    _add_shared(way_i, length_i, way_j, length_j, shared * freedom, q, x, y, cov)
    _add_own(tails[tail_start[at_i] + shared], tails[tail_start[at_j] + shared], q, x, y, cov)


@compiled
def turned(inverse: Transforms, transform: Transforms) -> tuple[float, float, float, float]:
    """Return the linear part of the product of two maps, row by row."""
    a, b, c, d = inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1]
    e, f, g, h = transform[0, 0], transform[0, 1], transform[1, 0], transform[1, 1]
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


@compiled
def shared_levels(i: int, j: int, ways: Ways) -> int:
    """Return how many columns the ways of two frames share."""
    place, parent, depth = ways[0], ways[1], ways[2]
    first, second = place[i], place[j]
    while first != second:
        if depth[first] >= depth[second]:
            first = parent[first]
        else:
            second = parent[second]
        if first < 0 or second < 0:
            return 0
    return int(depth[first] + 1)


@compiled_sums
def _add_shared(
    way_i: NDArray[np.float64],
    length_i: int,
    way_j: NDArray[np.float64],
    length_j: int,
    shared: int,
    q: tuple[float, float, float, float],
    x: float,
    y: float,
    cov: NDArray[np.float64],
) -> None:
    """Add the covariance (3,) of Q δ_i 0̃ - δ_j (x, y, 1)ᵀ along what the two ways share."""
    q_xx, q_xy, q_yx, q_yy = q
    i2, i5 = way_i[2 * length_i :], way_i[5 * length_i :]
    j0, j1, j2 = way_j, way_j[length_j:], way_j[2 * length_j :]
    j3, j4, j5 = way_j[3 * length_j :], way_j[4 * length_j :], way_j[5 * length_j :]
    xx, xy, yy = 0.0, 0.0, 0.0
    for t in range(shared):
        along = q_xx * i2[t] + q_xy * i5[t] - (x * j0[t] + y * j1[t] + j2[t])
        across = q_yx * i2[t] + q_yy * i5[t] - (x * j3[t] + y * j4[t] + j5[t])
        xx += along * along
        xy += along * across
        yy += across * across
    cov[0] += xx
    cov[1] += xy
    cov[2] += yy


@compiled
def _add_own(
    tail_i: NDArray[np.float64],
    tail_j: NDArray[np.float64],
    q: tuple[float, float, float, float],
    x: float,
    y: float,
    cov: NDArray[np.float64],
) -> None:
    """Add the covariance (3,) of the same along what each way has for itself."""
    a, b, c, d = q
    xx, xy, yy = tail_i[5], tail_i[20], tail_i[11]
    cov[0] += a * a * xx + 2.0 * a * b * xy + b * b * yy
    cov[1] += a * c * xx + (a * d + b * c) * xy + b * d * yy
    cov[2] += c * c * xx + 2.0 * c * d * xy + d * d * yy
    along, mixed, across = of_point(tail_j, x, y)
    cov[0] += along
    cov[1] += mixed
    cov[2] += across


@compiled
def of_point(t: NDArray[np.float64], x: float, y: float) -> tuple[float, float, float]:
    """Return the covariance of δ (x, y, 1)ᵀ from the products of its entries."""
    along = x * (t[0] * x + 2.0 * (t[1] * y + t[2])) + y * (t[3] * y + 2.0 * t[4]) + t[5]
    mixed = x * (t[12] * x + t[13] * y + t[14]) + y * (t[15] * x + t[16] * y + t[17]) + t[18] * x + t[19] * y + t[20]
    across = x * (t[6] * x + 2.0 * (t[7] * y + t[8])) + y * (t[9] * y + 2.0 * t[10]) + t[11]
    return along, mixed, across
