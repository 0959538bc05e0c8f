"""What an answer is expected to bring: P^pos · U, its bound, and the matrices people look at.

U_ij = √det Σ_γij (Eq. def_reward). Differs from the paper, whose overlap is not symmetric: the *product* P·U is
averaged over the two directions. Averaging P and U apart would pair one direction's probability with the other's
spread, and break the bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.centres import Centres, PairCentres
from smalti.compiled import compiled_parallel, prange, threads_for
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
    forth, back = pairs, pairs[:, ::-1]
    at = (np.stack([forth[:, 0], back[:, 0]], axis=1), np.stack([forth[:, 1], back[:, 1]], axis=1))
    chosen = PairCentres(centres.outline, centres.mean[at], centres.cov[at])
    return expected_informativeness_above(chosen, np.zeros(len(pairs)))


def expected_informativeness_above(centres: PairCentres, least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P^pos·U of pairs (n,), mean of both directions, or 0 where it is certainly below `least` (n,)."""
    o = centres.outline
    with threads_for(3.0 * len(least)):
        return _products(
            centres.mean, centres.cov, least, o.left, o.top, o.right, o.bottom, *o.centre_x_y, o.outer_half_side
        )


@compiled_parallel
def _products(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    least: NDArray[np.float64],
    left: float,
    top: float,
    right: float,
    bottom: float,
    centre_x: float,
    centre_y: float,
    half_side: float,
) -> NDArray[np.float64]:
    result = np.zeros(len(mean))
    for n in prange(len(mean)):
        bound = 0.0
        for side in range(2):
            dx, dy = mean[n, side, 0] - centre_x, mean[n, side, 1] - centre_y
            xx, xy, yy = cov[n, side, 0], cov[n, side, 1], cov[n, side, 2]
            bound += 0.5 * largest_reward_in_square(dx, dy, xx, xy, yy, half_side)
        if bound >= least[n]:
            for side in range(2):
                x, y = mean[n, side, 0], mean[n, side, 1]
                xx, xy, yy = cov[n, side, 0], cov[n, side, 1], cov[n, side, 2]
                spread = math.sqrt(max(xx * yy - xy * xy, 0.0))
                inside = probability_in_rectangle(left - x, right - x, top - y, bottom - y, xx, xy, yy)
                result[n] += 0.5 * spread * inside
    return result
