"""Compute the paper's closed-form bounds on the overlap probability (Eqs. lower_/upper_bound_position_probability)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange
from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import normal_between


def probability_bounds(
    mean: NDArray[np.float64], cov: NDArray[np.float64], outline: Outline
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Λ and Υ for N(mean (..., 2), cov (..., 3)): squares along the eigenvectors, inside and around Ω."""
    shape = mean.shape[:-1]
    lower = _in_squares(mean.reshape(-1, 2), cov.reshape(-1, 3), *outline.centre_x_y, outline.inner_half_side)
    upper = _in_squares(mean.reshape(-1, 2), cov.reshape(-1, 3), *outline.centre_x_y, outline.outer_half_side)
    return lower.reshape(shape), upper.reshape(shape)


def quick_probability(mean: NDArray[np.float64], cov: NDArray[np.float64], outline: Outline) -> NDArray[np.float64]:
    """Return an approximation of P(x ∈ Ω): a square of Ω's area along the eigenvectors replaces Ω."""
    half_side = math.sqrt(outline.area) / 2
    square = _in_squares(mean.reshape(-1, 2), cov.reshape(-1, 3), *outline.centre_x_y, half_side)
    return square.reshape(mean.shape[:-1])


@compiled_parallel
def _in_squares(
    mean: NDArray[np.float64], cov: NDArray[np.float64], centre_x: float, centre_y: float, half_side: float
) -> NDArray[np.float64]:
    result = np.empty(len(mean))
    for n in prange(len(mean)):
        dx, dy = mean[n, 0] - centre_x, mean[n, 1] - centre_y
        result[n] = probability_in_square(dx, dy, cov[n, 0], cov[n, 1], cov[n, 2], half_side)
    return result


@compiled
def probability_in_square(dx: float, dy: float, xx: float, xy: float, yy: float, half_side: float) -> float:
    """Return the probability of a square about the origin, along the eigenvectors, for mean (dx, dy)."""
    along, across, large, small = _along_eigenvectors(dx, dy, xx, xy, yy)
    return _in_interval(along, large, half_side) * _in_interval(across, small, half_side)


@compiled
def largest_reward_in_square(dx: float, dy: float, xx: float, xy: float, yy: float, half_side: float) -> float:
    """Return a bound on √det Σ times the probability of that square, at the cost of one exponential.

    Along each eigenvector √ν f_a is at most √ν, and at most the width 2a over √(2π) times the largest value of the
    exponential within the interval. So it is at most 2a²/π for every pair.

    Differs from the paper: its asymptotic bounds lack the square of a. This bound is not only asymptotic.
    """
    along, across, large, small = _along_eigenvectors(dx, dy, xx, xy, yy)
    widest = 2.0 * half_side / math.sqrt(2.0 * math.pi)
    reward = min(math.sqrt(large), widest) * min(math.sqrt(small), widest)
    along, across = max(abs(along) - half_side, 0.0), max(abs(across) - half_side, 0.0)
    if large > 0.0 and small > 0.0:
        reward *= math.exp(-0.5 * (along * along / large + across * across / small))
    return reward


@compiled
def _along_eigenvectors(dx: float, dy: float, xx: float, xy: float, yy: float) -> tuple[float, float, float, float]:
    """Return (dx, dy) along the eigenvectors of the covariance, and the eigenvalues, the large one first."""
    half = 0.5 * (xx - yy)
    radius = math.sqrt(half * half + xy * xy)
    large = 0.5 * (xx + yy) + radius
    # Compute the small eigenvalue from the determinant: a difference would cancel where Σ is nearly singular.
    small = max(xx * yy - xy * xy, 0.0) / large if large > 0.0 else 0.0
    # Compute the eigenvector of the large eigenvalue from the row that does not cancel.
    ux, uy = (half + radius, xy) if half >= 0.0 else (xy, radius - half)
    length = math.sqrt(ux * ux + uy * uy)
    if length > 0.0:
        ux, uy = ux / length, uy / length
    else:
        ux = 1.0
    return ux * dx + uy * dy, ux * dy - uy * dx, large, small


@compiled
def _in_interval(distance: float, variance: float, half_side: float) -> float:
    """Return f_a (Eq. function_f_overlap).

    Differs from the paper: it writes N(0, √ν) for its Z_k, but ν is the variance.
    """
    if variance <= 0.0:
        return 1.0 if abs(distance) <= half_side else 0.0
    deviation = math.sqrt(variance)
    return normal_between((distance - half_side) / deviation, (distance + half_side) / deviation)
