"""The position of one frame's centre in another frame, γ_ij, and its covariance.

With P = H_j⁻¹ H_i, the centre of i, which is the origin of its units, lies in j at γ_ij = π(P 0̃). Local increments
H ← H exp(Δ) move it by Q (d02_i, d12_i) - v(γ_ij; Δ_j). Q is the derivative of P at the origin, and v is the velocity

    v(x, y; Δ) = (d00 x + d01 y + d02 - x (d20 x + d21 y), d10 x + d11 y + d12 - y (d20 x + d21 y))

of a point under exp(Δ). The elimination paths of i and j are square roots of their covariance
(`elimination_paths.py`). So the covariance of γ_ij is the sum of squares of this difference along the paths.

Nothing here depends on the scale of the maps, but their signs count: if the last coordinate of P 0̃ is not positive, i
lies behind the camera of j. Such a centre, and one further than FAR away, gets a mean of ±FAR in x or y and deviations
of FAR. So all numbers are finite, whatever the maps.

`Centres` holds all pairs and `PairCentres` some. `relate_pairs` and `relate_all` compute them. Kernels come last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, compiled_sums, prange
from smalti.engine.elimination_paths import PathArrays
from smalti.geometry.homographies import ENTRIES
from smalti.geometry.outline import Outline
from smalti.records import Homographies, PairNumbers

FAR = 1e6
"""In units: the largest coordinate and standard deviation. Both mean that nothing is known."""

MOST_VARIANCE = FAR * FAR
OVERFLOWS = 1e300


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """The position of the centre of every frame i in every frame j, as a normal distribution (γ_ij)."""

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
    """The same for some pairs, in both directions: the first frame's centre in the second, then the reverse."""

    outline: Outline
    mean: NDArray[np.float64]  # (n, 2, 2), [pair, direction], pixels of the frame in which the centre lies
    cov: NDArray[np.float64]  # (n, 2, 3): xx, xy, yy

    @property
    def spread(self) -> NDArray[np.float64]:
        """tr Σ_γ (n,), px², mean of both directions."""
        spread: NDArray[np.float64] = self.cov[:, :, ::2].sum(axis=(1, 2)) / 2.0
        return spread

    def chosen(self, numbers: slice | NDArray[np.int64]) -> PairCentres:
        """Return some of the pairs."""
        return PairCentres(self.outline, self.mean[numbers], self.cov[numbers])


def determinant(cov: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the determinants of covariances (..., 3) given as xx, xy, yy."""
    det: NDArray[np.float64] = cov[..., 0] * cov[..., 2] - cov[..., 1] ** 2
    return np.maximum(det, 0.0)


@compiled_parallel
def relate_pairs(
    pairs: PairNumbers,
    paths: PathArrays,
    maps: Homographies,
    inverses: Homographies,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (n, 2, 2), in units, and covariance (n, 2, 3), units², of γ_ij and γ_ji for pairs (n, 2)."""
    mean = np.zeros((len(pairs), 2, 2))
    cov = np.zeros((len(pairs), 2, 3))
    for n in prange(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        if i != j:
            shared = shared_levels(i, j, paths)
            _relate(i, j, shared, paths, maps, inverses, mean[n, 0], cov[n, 0])
            _relate(j, i, shared, paths, maps, inverses, mean[n, 1], cov[n, 1])
    return mean, cov


@compiled_parallel
def relate_all(
    paths: PathArrays,
    maps: Homographies,
    inverses: Homographies,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (N, N, 2), in units, and covariance (N, N, 3), units², of γ_ij for all pairs."""
    frames = len(maps)
    mean = np.zeros((frames, frames, 2))
    cov = np.zeros((frames, frames, 3))
    for i in prange(frames):
        for j in range(frames):
            if i != j:
                _relate(i, j, shared_levels(i, j, paths), paths, maps, inverses, mean[i, j], cov[i, j])
    return mean, cov


@compiled
def shared_levels(i: int, j: int, paths: PathArrays) -> int:
    """Return how many columns the elimination paths of two frames share."""
    place, parent, depth = paths[0], paths[1], paths[2]
    first, second = place[i], place[j]
    while first != second:
        if depth[first] >= depth[second]:
            first = parent[first]
        else:
            second = parent[second]
        if first < 0 or second < 0:
            return 0
    return int(depth[first] + 1)


@compiled
def _relate(
    i: int,
    j: int,
    shared: int,
    paths: PathArrays,
    maps: Homographies,
    inverses: Homographies,
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Write the distribution of the centre of i in j."""
    place, _, depth, freedom, start, values, tail_start, tails = paths
    at_i, at_j = place[i], place[j]
    near = _project_centre(inverses[j], maps[i], mean)
    if not near:
        cov[0], cov[1], cov[2] = MOST_VARIANCE, 0.0, MOST_VARIANCE
        return
    x, y = mean[0], mean[1]
    q = _derivative_at_origin(inverses[j], maps[i], x, y)
    length_i, length_j = (depth[at_i] + 1) * freedom, (depth[at_j] + 1) * freedom
    path_i = values[start[at_i] : start[at_i] + ENTRIES * length_i]
    path_j = values[start[at_j] : start[at_j] + ENTRIES * length_j]
    _add_shared(path_i, length_i, path_j, length_j, shared * freedom, q, x, y, cov)
    _add_own(tails[tail_start[at_i] + shared], tails[tail_start[at_j] + shared], q, x, y, cov)
    _limit(cov)


@compiled
def projected_centre(maps: Homographies, inverses: Homographies, i: int, j: int) -> tuple[float, float]:
    """Return γ_ij in units."""
    mean = np.empty(2)
    _project_centre(inverses[j], maps[i], mean)
    return mean[0], mean[1]


@compiled
def _project_centre(inverse: Homographies, transform: Homographies, mean: NDArray[np.float64]) -> bool:
    """Write the origin under the product of two maps; tell whether it is in front of the camera and nearer than FAR."""
    c, d, e = transform[0, 2], transform[1, 2], transform[2, 2]
    depth = inverse[2, 0] * c + inverse[2, 1] * d + inverse[2, 2] * e
    near = bool(depth > 0.0)
    for row in range(2):
        value = inverse[row, 0] * c + inverse[row, 1] * d + inverse[row, 2] * e
        projected = value / depth if depth > 0.0 else value * np.inf
        if not abs(projected) < FAR:
            near = False
            projected = -FAR if projected < 0.0 else FAR
        mean[row] = projected
    return near


@compiled
def _derivative_at_origin(
    inverse: Homographies, transform: Homographies, x: float, y: float
) -> tuple[float, float, float, float]:
    """Return the derivative of the product of two maps at the origin, which it maps to (x, y), row by row."""
    depth = inverse[2, 0] * transform[0, 2] + inverse[2, 1] * transform[1, 2] + inverse[2, 2] * transform[2, 2]
    # Rows of `inverse` minus the last one times x or y: they give P[:2] - γ P[2].
    a0, a1, a2 = inverse[0, 0] - x * inverse[2, 0], inverse[0, 1] - x * inverse[2, 1], inverse[0, 2] - x * inverse[2, 2]
    b0, b1, b2 = inverse[1, 0] - y * inverse[2, 0], inverse[1, 1] - y * inverse[2, 1], inverse[1, 2] - y * inverse[2, 2]
    return (
        (a0 * transform[0, 0] + a1 * transform[1, 0] + a2 * transform[2, 0]) / depth,
        (a0 * transform[0, 1] + a1 * transform[1, 1] + a2 * transform[2, 1]) / depth,
        (b0 * transform[0, 0] + b1 * transform[1, 0] + b2 * transform[2, 0]) / depth,
        (b0 * transform[0, 1] + b1 * transform[1, 1] + b2 * transform[2, 1]) / depth,
    )


@compiled_sums
def _add_shared(
    path_i: NDArray[np.float64],
    length_i: int,
    path_j: NDArray[np.float64],
    length_j: int,
    shared: int,
    q: tuple[float, float, float, float],
    x: float,
    y: float,
    cov: NDArray[np.float64],
) -> None:
    """Add the covariance (3,) of Q (d02_i, d12_i) - v(x, y; Δ_j) along the shared part of both paths."""
    q_xx, q_xy, q_yx, q_yy = q
    i2, i5 = path_i[2 * length_i :], path_i[5 * length_i :]
    j0, j1, j2 = path_j, path_j[length_j:], path_j[2 * length_j :]
    j3, j4, j5 = path_j[3 * length_j :], path_j[4 * length_j :], path_j[5 * length_j :]
    j6, j7 = path_j[6 * length_j :], path_j[7 * length_j :]
    xx, xy, yy = 0.0, 0.0, 0.0
    for t in range(shared):
        perspective = x * j6[t] + y * j7[t]
        along = q_xx * i2[t] + q_xy * i5[t] - (x * (j0[t] - perspective) + y * j1[t] + j2[t])
        across = q_yx * i2[t] + q_yy * i5[t] - (x * j3[t] + y * (j4[t] - perspective) + j5[t])
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
    """Add the covariance (3,) of the same along the part of each path that is not shared."""
    a, b, c, d = q
    xx, xy, yy = tail_i[15], tail_i[18], tail_i[30]  # of d02 and d12
    cov[0] += a * a * xx + 2.0 * a * b * xy + b * b * yy
    cov[1] += a * c * xx + (a * d + b * c) * xy + b * d * yy
    cov[2] += c * c * xx + 2.0 * c * d * xy + d * d * yy
    along, mixed, across = _velocity_covariance(tail_j, x, y)
    cov[0] += along
    cov[1] += mixed
    cov[2] += across


@compiled
def _velocity_covariance(t: NDArray[np.float64], x: float, y: float) -> tuple[float, float, float]:
    """Return the covariance (xx, xy, yy) of v(x, y; Δ) from the products of entries, indexed by `PRODUCT_OF`."""
    p, q, r = -x * x, -x * y, -y * y
    # s: the covariances of v_x with all entries; u: those of v_y with the entries that it contains.
    s0 = x * t[0] + y * t[1] + t[2] + p * t[6] + q * t[7]
    s1 = x * t[1] + y * t[8] + t[9] + p * t[13] + q * t[14]
    s2 = x * t[2] + y * t[9] + t[15] + p * t[19] + q * t[20]
    s3 = x * t[3] + y * t[10] + t[16] + p * t[24] + q * t[25]
    s4 = x * t[4] + y * t[11] + t[17] + p * t[28] + q * t[29]
    s5 = x * t[5] + y * t[12] + t[18] + p * t[31] + q * t[32]
    s6 = x * t[6] + y * t[13] + t[19] + p * t[33] + q * t[34]
    s7 = x * t[7] + y * t[14] + t[20] + p * t[34] + q * t[35]
    u3 = x * t[21] + y * t[22] + t[23] + q * t[24] + r * t[25]
    u4 = x * t[22] + y * t[26] + t[27] + q * t[28] + r * t[29]
    u5 = x * t[23] + y * t[27] + t[30] + q * t[31] + r * t[32]
    u6 = x * t[24] + y * t[28] + t[31] + q * t[33] + r * t[34]
    u7 = x * t[25] + y * t[29] + t[32] + q * t[34] + r * t[35]
    along = x * s0 + y * s1 + s2 + p * s6 + q * s7
    mixed = x * s3 + y * s4 + s5 + q * s6 + r * s7
    across = x * u3 + y * u4 + u5 + q * u6 + r * u7
    return along, mixed, across


@compiled
def _limit(cov: NDArray[np.float64]) -> None:
    """Limit the deviations of a covariance (3,) to FAR, in place; the correlation stays."""
    if not (cov[0] < OVERFLOWS and cov[2] < OVERFLOWS):
        cov[0], cov[1], cov[2] = MOST_VARIANCE, 0.0, MOST_VARIANCE
        return
    for n in (0, 2):
        if cov[n] > MOST_VARIANCE:
            cov[1] *= np.sqrt(MOST_VARIANCE / cov[n])
            cov[n] = MOST_VARIANCE
