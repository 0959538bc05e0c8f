"""What an answer is expected to bring: P^pos · U, its bound, and the matrices people look at.

U_ij = √det Σ_γij (Eq. def_reward). Differs from the paper, whose overlap is not symmetric: the *product* P·U is
averaged over the two directions. Averaging P and U apart would pair one direction's probability with the other's
spread, and break the bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.centres import Centres
from smalti.compiled import compiled, compiled_parallel, prange
from smalti.overlap.bounds import largest_reward_in_square, probability_bounds
from smalti.overlap.rectangle import probability_in_rectangle, rectangle_probability
from smalti.records import PairNumbers


def informativeness(centres: Centres) -> NDArray[np.float64]:
    """Return U (N, N), px², mean of both directions."""
    directed = np.sqrt(centres.determinant)
    return (directed + directed.T) / 2


def position_probability(centres: Centres) -> NDArray[np.float64]:
    """Return P^pos (N, N), mean of both directions: for display."""
    directed = rectangle_probability(centres.mean, centres.cov, centres.outline)
    return (directed + directed.T) / 2


def position_probability_bounds(centres: Centres) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Λ and Υ (N, N), mean of both directions."""
    lower, upper = probability_bounds(centres.mean, centres.cov, centres.outline)
    return (lower + lower.T) / 2, (upper + upper.T) / 2


def expected_informativeness(centres: Centres, pairs: PairNumbers) -> NDArray[np.float64]:
    """Return P^pos·U of the given pairs (n, 2), mean of both directions."""
    o = centres.outline
    return _products(centres.mean, centres.cov, pairs, o.left, o.top, o.right, o.bottom)


def bound_expected_informativeness(centres: Centres, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return an upper bound of P^pos·U, and of Υ·U, for the wanted pairs i < j (N, N), zero elsewhere."""
    o = centres.outline
    return _bound_products(centres.mean, centres.cov, wanted, *o.centre_x_y, o.outer_half_side)


@compiled_parallel
def _products(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    pairs: PairNumbers,
    left: float,
    top: float,
    right: float,
    bottom: float,
) -> NDArray[np.float64]:
    result = np.zeros(len(pairs))
    for n in prange(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        forth = _product(mean[i, j], cov[i, j], left, top, right, bottom)
        back = _product(mean[j, i], cov[j, i], left, top, right, bottom)
        result[n] = 0.5 * (forth + back)
    return result


@compiled_parallel
def _bound_products(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    wanted: NDArray[np.bool_],
    centre_x: float,
    centre_y: float,
    half_side: float,
) -> NDArray[np.float64]:
    frames = len(wanted)
    result = np.zeros((frames, frames))
    for i in prange(frames):
        for j in range(i + 1, frames):
            if wanted[i, j]:
                dx, dy = mean[i, j, 0] - centre_x, mean[i, j, 1] - centre_y
                forth = largest_reward_in_square(dx, dy, cov[i, j, 0], cov[i, j, 1], cov[i, j, 2], half_side)
                dx, dy = mean[j, i, 0] - centre_x, mean[j, i, 1] - centre_y
                back = largest_reward_in_square(dx, dy, cov[j, i, 0], cov[j, i, 1], cov[j, i, 2], half_side)
                result[i, j] = 0.5 * (forth + back)
    return result


@compiled
def _product(
    mean: NDArray[np.float64], cov: NDArray[np.float64], left: float, top: float, right: float, bottom: float
) -> float:
    x, y = mean[0], mean[1]
    return _spread(cov) * probability_in_rectangle(left - x, right - x, top - y, bottom - y, cov[0], cov[1], cov[2])


@compiled
def _spread(cov: NDArray[np.float64]) -> float:
    return math.sqrt(max(cov[0] * cov[2] - cov[1] * cov[1], 0.0))
