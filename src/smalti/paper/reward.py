"""What an answer is expected to bring: P^pos · U, its bound, and the exact search for the best pairs.

U_ij = √det Σ_γij (Eq. def_reward). Differs from the paper, whose overlap is not symmetric: the *product* P·U is
averaged over the two directions. Averaging P and U apart would pair one direction's probability with the other's
spread, and break the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled_parallel, prange
from smalti.engine.places import Centres, determinant
from smalti.overlap.bounds import largest_reward_in_square, probability_bounds
from smalti.overlap.rectangle import rectangle_probability
from smalti.records import PairNumbers

EVALUATED_AT_ONCE = 512


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
    products = np.zeros(len(pairs))
    for i, j in (pairs.T, pairs[:, ::-1].T):
        cov = centres.cov[i, j]
        products += rectangle_probability(centres.mean[i, j], cov, centres.outline) * np.sqrt(determinant(cov))
    return products / 2


def expected_informativeness_bound(centres: Centres) -> NDArray[np.float64]:
    """Return what P^pos·U of every pair (N, N) is at most: the reward of a square around the frame."""
    outline = centres.outline
    directed = _largest(centres.mean, centres.cov, *outline.centre_x_y, outline.outer_half_side)
    return (directed + directed.T) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best pairs, best first, and what they are worth."""

    pairs: PairNumbers  # (n, 2)
    rewards: NDArray[np.float64]
    evaluated: int

    @classmethod
    def nothing(cls) -> Found:
        """Begin."""
        return cls(np.empty((0, 2), dtype=np.int64), np.empty(0), 0)


def merge(found: Found, pairs: PairNumbers, rewards: NDArray[np.float64], top: int, evaluated: int) -> Found:
    """Return the best `top` of what was found and of these pairs; equal rewards are ordered by pair."""
    together, worth = np.concatenate([found.pairs, pairs]), np.concatenate([found.rewards, rewards])
    order = np.lexsort((together[:, 1], together[:, 0], -worth))[:top]
    return Found(together[order], worth[order], found.evaluated + evaluated)


def branch_and_bound(
    bound: NDArray[np.float64],
    wanted: NDArray[np.bool_],
    evaluate: Callable[[PairNumbers], NDArray[np.float64]],
    top: int,
) -> Found:
    """Return the `top` wanted pairs of largest reward, exactly.

    `bound` (N, N) is at least the reward of every wanted pair; `evaluate` gives the rewards of pairs (n, 2). Pairs are
    evaluated in decreasing order of their bound, until the next bound is below the worst of the best `top` found.
    """
    flat = np.flatnonzero(wanted)
    bounds = bound.ravel()[flat]
    found = Found.nothing()
    while len(flat) and top > 0:
        threshold = found.rewards[top - 1] if len(found.rewards) >= top else -np.inf
        # A pair whose bound equals the threshold may tie with it and come first by its numbers.
        alive = bounds >= threshold
        flat, bounds = flat[alive], bounds[alive]
        size = min(max(top, EVALUATED_AT_ONCE), len(flat))
        if not size:
            break
        # argpartition leaves ties at the edge in any order: harmless, as every tie is evaluated in the end.
        chosen = np.argpartition(-bounds, size - 1)[:size]
        pairs = np.stack(np.unravel_index(flat[chosen], wanted.shape), axis=1).astype(np.int64)
        found = merge(found, pairs, evaluate(pairs), top, evaluated=size)
        rest = np.ones(len(flat), dtype=bool)
        rest[chosen] = False
        flat, bounds = flat[rest], bounds[rest]
    return found


def rank(reward: NDArray[np.float64], wanted: NDArray[np.bool_], top: int) -> Found:
    """Return the `top` wanted pairs of a reward that is known for all pairs (N, N)."""
    return branch_and_bound(reward, wanted, lambda pairs: reward[pairs[:, 0], pairs[:, 1]], top)


@compiled_parallel
def _largest(
    mean: NDArray[np.float64], cov: NDArray[np.float64], centre_x: float, centre_y: float, half_side: float
) -> NDArray[np.float64]:
    frames = len(mean)
    result = np.empty((frames, frames))
    for i in prange(frames):
        for j in range(frames):
            dx, dy = mean[i, j, 0] - centre_x, mean[i, j, 1] - centre_y
            result[i, j] = largest_reward_in_square(dx, dy, cov[i, j, 0], cov[i, j, 1], cov[i, j, 2], half_side)
    return result
