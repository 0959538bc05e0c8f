"""The paper's section 5 as it is printed, dense and slow: to be read next to it.

Frames count from 0 here and from 1 there, so that the paper's e_{n - δ_{n>r}} is `e(N - 1, n - (n > r))` in
both. Differs from the paper: a pair's landmarks are the three pseudo-points of its link, so L_ij = 3, and
their homogeneous third coordinates are not 1. Everything is in pixels and σ = 1.

`solve_family` at the end does the same for all three families and many measurements at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smalti.paper.linear_adjustment import AffineLink
from smalti.records import Landmarks, Pair, Transforms

Matrix = NDArray[np.float64]


def e(size: int, at: int) -> Matrix:
    """e_at^(size), as a column."""
    return np.eye(size)[:, [at]]


def kron(*factors: Matrix) -> Matrix:
    product = np.eye(1)
    for factor in factors:
        product = np.kron(product, factor)
    return product


def vec(matrix: Matrix) -> Matrix:
    """Vec: the rows of a matrix one after the other."""
    return matrix.reshape(-1)


def pseudo_points(link: AffineLink) -> tuple[Matrix, Matrix]:
    """Return X̃_i and X̃_j, 3 × L_ij."""
    last_row = np.array([[0.0, 0.0, 1.0]])
    return np.vstack([link.i_from_j, last_row]) @ link.root, link.root


def matrix_a(pair: Pair, X_i: Matrix, X_j: Matrix, N: int, r: int) -> Matrix:
    """Eq. definition_of_A: 6(N-1) × 2 L_ij."""
    i, j = pair.i, pair.j
    A = np.zeros((6 * (N - 1), 2 * X_i.shape[1]))
    if j != r:
        A += kron(e(N - 1, j - (j > r)), np.eye(2), X_j)
    if i != r:
        A -= kron(e(N - 1, i - (i > r)), np.eye(2), X_i)
    return A


def vector_b(pair: Pair, X_i: Matrix, X_j: Matrix, r: int) -> Matrix:
    """Eq. definition_of_b: 2 L_ij."""
    return (pair.i == r) * vec(X_i[:2]) - (pair.j == r) * vec(X_j[:2])


def matrix_s(links: Sequence[AffineLink], N: int, r: int) -> Matrix:
    """Eq. definition_of_S."""
    S = np.zeros((6 * (N - 1), 6 * (N - 1)))
    for link in links:
        A = matrix_a(link.pair, *pseudo_points(link), N, r)
        S += A @ A.T
    return S


def vector_v(links: Sequence[AffineLink], N: int, r: int) -> Matrix:
    """Eq. definition_of_v."""
    v = np.zeros(6 * (N - 1))
    for link in links:
        X_i, X_j = pseudo_points(link)
        v += matrix_a(link.pair, X_i, X_j, N, r) @ vector_b(link.pair, X_i, X_j, r)
    return v


def solve(links: Sequence[AffineLink], N: int, r: int) -> Matrix:
    """Vec₆[(Θ̂_n)_{n≠r}], from S θ = v."""
    return np.linalg.solve(matrix_s(links, N, r), vector_v(links, N, r))


def maps(theta: Matrix, N: int, r: int) -> Transforms:
    """(N, 2, 3): all maps, the reference frame's among them."""
    return np.insert(theta.reshape(N - 1, 2, 3), r, np.eye(2, 3), axis=0)


def gradient_of_pair(theta: Matrix, pair: Pair, X_i: Matrix, X_j: Matrix, N: int, r: int) -> Matrix:
    """The pair's part of ∂F/∂θ = S θ - v (Eq. bundle_adjustment_cost_function)."""
    A, b = matrix_a(pair, X_i, X_j, N, r), vector_b(pair, X_i, X_j, r)
    return A @ A.T @ theta - A @ b


def matrix_f_of_pair(theta: Matrix, pair: Pair, X_i: Matrix, X_j: Matrix, N: int, r: int) -> Matrix:
    """Eq. F_uv: 6(N-1) × 2 L_ij, column c = 2(l-1) + d."""
    i, L = pair.i, X_i.shape[1]
    A, b = matrix_a(pair, X_i, X_j, N, r), vector_b(pair, X_i, X_j, r)
    F = np.zeros((6 * (N - 1), 2 * L))
    for l in range(L):  # noqa: E741
        for d in range(2):
            dA = np.zeros_like(A)
            if i != r:
                dA = -kron(e(N - 1, i - (i > r)), np.eye(2), e(3, d) @ e(L, l).T)
            db = (i == r) * vec(e(2, d) @ e(L, l).T)
            F[:, 2 * l + d] = (dA @ A.T + A @ dA.T) @ theta - dA @ b - A @ db
    return F


def covariance(links: Sequence[AffineLink], N: int, r: int) -> Matrix:
    """Eq. covariance_propagation_haralick: 6(N-1) × 6(N-1)."""
    theta = solve(links, N, r)
    F = np.hstack([matrix_f_of_pair(theta, link.pair, *pseudo_points(link), N, r) for link in links])
    S_inverse = np.linalg.inv(matrix_s(links, N, r))
    return S_inverse @ F @ F.T @ S_inverse


def with_reference(cov: Matrix, N: int, r: int) -> Matrix:
    """(N, 6, N, 6): the covariance of all maps; the reference frame is certain."""
    blocks = cov.reshape(N - 1, 6, N - 1, 6)
    return np.insert(np.insert(blocks, r, 0.0, axis=0), r, 0.0, axis=2)


def centre_in_other(theta_i: Matrix, theta_j: Matrix, centre: Matrix) -> Matrix:
    """Eq. definition_gamma_ij: γ_ij."""
    last_row = np.array([[0.0, 0.0, 1.0]])
    squares = np.vstack([theta_i, last_row]), np.vstack([theta_j, last_row])
    return (np.linalg.inv(squares[1]) @ squares[0] @ np.append(centre, 1.0))[:2]


def centre_jacobian(theta_i: Matrix, theta_j: Matrix, centre: Matrix) -> Matrix:
    """Eqs. jacobian_gamma_i and jacobian_gamma_j: 2 × 12."""
    lin_inverse = np.linalg.inv(theta_j[:, :2])
    gamma = np.append(centre, 1.0)[None]
    gamma_ij = np.append(centre_in_other(theta_i, theta_j, centre), 1.0)[None]
    return np.hstack([kron(lin_inverse, gamma), -kron(lin_inverse, gamma_ij)])


# The same for every family, many measurements at once.

FAMILY_DIRECTIONS = {
    "translation": [[[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 1]]],
    "similarity": [
        [[1, 0, 0], [0, 1, 0]],
        [[0, -1, 0], [1, 0, 0]],
        [[0, 0, 1], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 1]],
    ],
    "affine": np.eye(6).reshape(6, 2, 3).tolist(),
}
"""Θ = origin + Σ φ_c direction_c; the origin is the identity for a translation and 0 otherwise."""


def fit_family(landmarks: Landmarks, points_i: Matrix, family: str) -> Transforms:
    """Fit i_from_j (m, 2, 3) to m drawings of the landmarks in i, (m, n, 2), by weighted least squares."""
    directions, origin = _directions_and_origin(family)
    source = np.column_stack([landmarks.points_j, np.ones(len(landmarks))])
    weight = np.repeat(1.0 / np.broadcast_to(np.asarray(landmarks.sigma), (len(landmarks),)), 2)
    columns = np.stack([(source @ direction.T).reshape(-1) for direction in directions], axis=1)
    target = (points_i - source @ origin.T).reshape(len(points_i), -1)
    parameters = (target * weight) @ np.linalg.pinv(columns * weight[:, None]).T
    return origin + np.einsum("mc,cpa->mpa", parameters, directions)


def solve_family(
    pairs: Sequence[Pair],
    i_from_j: Transforms,
    roots: Matrix,
    N: int,
    r: int,
    family: str,
) -> Transforms:
    """Return the maps (m, N, 2, 3) that minimise Σ |(Θ_j - Θ_i T̂) R|² for m drawings of T̂, (m, L, 2, 3)."""
    directions, origin = _directions_and_origin(family)
    draws, k = len(i_from_j), len(directions)
    design = np.zeros((draws, len(pairs), 6, N, k))
    constant = np.zeros((draws, len(pairs), 6))
    for at, pair in enumerate(pairs):
        X_j = roots[at]
        X_i = np.concatenate([i_from_j[:, at] @ X_j, np.broadcast_to(X_j[2], (draws, 1, 3))], axis=1)
        for c, direction in enumerate(directions):
            design[:, at, :, pair.j, c] = (direction @ X_j).reshape(6)
            design[:, at, :, pair.i, c] = -(direction @ X_i).reshape(draws, 6)
        fixed_j = np.eye(2, 3) if pair.j == r else origin
        fixed_i = np.eye(2, 3) if pair.i == r else origin
        constant[:, at] = (fixed_j @ X_j - fixed_i @ X_i).reshape(draws, 6)
    free = [n for n in range(N) if n != r]
    rows = design[:, :, :, free].reshape(draws, 6 * len(pairs), (N - 1) * k)
    q, upper = np.linalg.qr(rows)
    right = -np.swapaxes(q, 1, 2) @ constant.reshape(draws, -1, 1)
    parameters = np.linalg.solve(upper, right).reshape(draws, N - 1, k)
    solved = np.empty((draws, N, 2, 3))
    solved[:, r] = np.eye(2, 3)
    solved[:, free] = origin + np.einsum("mnc,cpa->mnpa", parameters, directions)
    return solved


def _directions_and_origin(family: str) -> tuple[Matrix, Matrix]:
    origin = np.eye(2, 3) if family == "translation" else np.zeros((2, 3))
    return np.array(FAMILY_DIRECTIONS[family], dtype=np.float64), origin
