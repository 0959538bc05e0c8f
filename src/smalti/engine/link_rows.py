"""The residuals of links and their exact derivatives, as one compiled kernel.

A link costs |R e|² (`links.py`), with e = the eight entries of M - I and M = B Ĝ⁻¹ H_i⁻¹ H_j, normalised to a 1 in its
corner. Maps move by H ← H exp(δ). For a direction X, M changes

- by M X for frame j,
- by -B Ĝ⁻¹ X H_i⁻¹ H_j for frame i,
- by X M for the error B that links share (`equations.py`),

each time minus M times the change of the corner.

`linearise_links` comes first. The helpers after it differentiate one row and convert it to the basis of increments.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled

SMALLEST_CORNER = 0.02
"""The smallest corner of a link's M. Below it, one frame lies behind the camera of the other."""


@compiled
def linearise_links(
    ends: NDArray[np.int64],
    measured_back: NDArray[np.float64],
    roots: NDArray[np.float64],
    weights: NDArray[np.float64],
    sharing: NDArray[np.bool_],
    maps: NDArray[np.float64],
    inverses: NDArray[np.float64],
    common: NDArray[np.float64],
    freedom: int,
) -> tuple[bool, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return whether all is finite, R e (L, 8), its derivatives by i and j (L, 8, f) and by the shared turn (L, 8)."""
    links = len(ends)
    residual, by_shared = np.zeros((links, 8)), np.zeros((links, 8))
    by_i, by_j = np.zeros((links, 8, freedom)), np.zeros((links, 8, freedom))
    relative, m, left = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    root = np.zeros((3, 3))  # one row of R, by the entries of M; its entry for the corner stays 0
    for n in range(links):
        i, j = ends[n]
        _multiply(inverses[i], maps[j], relative)
        if sharing[n]:
            _multiply(common, measured_back[n], left)
        else:
            for a in range(3):
                for b in range(3):
                    left[a, b] = measured_back[n, a, b]
        _multiply(left, relative, m)
        corner, size = m[2, 2], 0.0
        for a in range(3):
            for b in range(3):
                size = max(size, abs(m[a, b]))
        if not math.isfinite(size):
            return False, residual, by_i, by_j, by_shared
        in_front = corner > SMALLEST_CORNER
        if not in_front:
            # Behind the camera, the residual stays finite and its gradient leads back to the front.
            corner = SMALLEST_CORNER
        for a in range(3):
            for b in range(3):
                m[a, b] /= corner
                relative[a, b] /= corner
        for a in range(8):
            off, scaled = 0.0, 0.0
            for b in range(8):
                weighed = weights[n] * roots[n, a, b]
                root[b // 3, b % 3] = weighed
                off += weighed * (m[b // 3, b % 3] - (1.0 if b % 4 == 0 else 0.0))
                scaled += weighed * m[b // 3, b % 3]
            residual[n, a] = off
            if not in_front:
                scaled = 0.0
            # First by the entries of Δ: the entry (k, q) changes only column q of M Δ.
            j0, j1, j2 = _entries_of_j(root, m, 0, scaled)
            j3, j4, j5 = _entries_of_j(root, m, 1, scaled)
            j6, j7, _ = _entries_of_j(root, m, 2, scaled)
            _write_directions(by_j, n, a, j0, j1, j2, j3, j4, j5, j6, j7)
            i0, i1, i2 = _entries_of_i(root, left, relative, 0, scaled)
            i3, i4, i5 = _entries_of_i(root, left, relative, 1, scaled)
            i6, i7, _ = _entries_of_i(root, left, relative, 2, scaled)
            _write_directions(by_i, n, a, -i0, -i1, -i2, -i3, -i4, -i5, -i6, -i7)
            if sharing[n]:
                turned = 0.0
                for q in range(3):
                    turned += root[1, q] * m[0, q] - root[0, q] * m[1, q]
                by_shared[n, a] = turned
    return True, residual, by_i, by_j, by_shared


@compiled
def _entries_of_j(
    root: NDArray[np.float64], m: NDArray[np.float64], k: int, scaled: float
) -> tuple[float, float, float]:
    """Return the derivatives of a row by the row k of Δ_j, of M Δ minus M times its corner."""
    x, y, w = m[0, k], m[1, k], m[2, k]
    return (
        root[0, 0] * x + root[1, 0] * y + root[2, 0] * w,
        root[0, 1] * x + root[1, 1] * y + root[2, 1] * w,
        root[0, 2] * x + root[1, 2] * y - scaled * w,
    )


@compiled
def _entries_of_i(
    root: NDArray[np.float64], left: NDArray[np.float64], relative: NDArray[np.float64], k: int, scaled: float
) -> tuple[float, float, float]:
    """Return the derivatives of a row by the row k of Δ_i: of `left` Δ `relative` minus M times its corner."""
    x, y, w = left[0, k], left[1, k], left[2, k]
    s = root[0, 0] * x + root[1, 0] * y + root[2, 0] * w
    t = root[0, 1] * x + root[1, 1] * y + root[2, 1] * w
    u = root[0, 2] * x + root[1, 2] * y - scaled * w
    return (
        s * relative[0, 0] + t * relative[0, 1] + u * relative[0, 2],
        s * relative[1, 0] + t * relative[1, 1] + u * relative[1, 2],
        s * relative[2, 0] + t * relative[2, 1] + u * relative[2, 2],
    )


@compiled
def _write_directions(
    target: NDArray[np.float64],
    n: int,
    row: int,
    d00: float,
    d01: float,
    d02: float,
    d10: float,
    d11: float,
    d12: float,
    d20: float,
    d21: float,
) -> None:
    """Write derivatives by the directions of `homographies.BASIS`, given those by the entries of Δ."""
    freedom = target.shape[2]
    target[n, row, 0], target[n, row, 1] = d02, d12
    if freedom > 2:
        target[n, row, 2] = d10 - d01
    if freedom > 3:
        target[n, row, 3] = d00 + d11
    if freedom > 4:
        target[n, row, 4], target[n, row, 5] = d00 - d11, d01 + d10
    if freedom > 6:
        target[n, row, 6], target[n, row, 7] = d20, d21


@compiled
def _multiply(left: NDArray[np.float64], right: NDArray[np.float64], product: NDArray[np.float64]) -> None:
    for a in range(3):
        for b in range(3):
            product[a, b] = left[a, 0] * right[0, b] + left[a, 1] * right[1, b] + left[a, 2] * right[2, b]
