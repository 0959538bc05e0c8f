"""The exact top K of many pairs, of which most are never evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.records import PairNumbers

EVALUATED_AT_ONCE = 512


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best pairs, best first, and what they are worth."""

    pairs: PairNumbers  # (n, 2)
    rewards: NDArray[np.float64]
    evaluated: int


def search(
    bound: NDArray[np.float64],
    wanted: NDArray[np.bool_],
    evaluate: Callable[[PairNumbers], NDArray[np.float64]],
    top: int,
) -> Found:
    """Return the `top` wanted pairs of largest reward, exactly, by branch and bound.

    `bound` (N, N) is at least the reward of every wanted pair; `evaluate` gives the rewards of pairs (n, 2).
    Pairs are evaluated in decreasing order of their bound, until the next bound is below the worst of the best
    `top` found. Equal rewards are ordered by pair.
    """
    flat = np.flatnonzero(wanted)
    bounds = bound.ravel()[flat]
    best_pairs = np.empty((0, 2), dtype=np.int64)
    best_rewards = np.empty(0)
    evaluated = 0
    while len(flat) and top > 0:
        threshold = best_rewards[top - 1] if len(best_rewards) >= top else -np.inf
        # A pair whose bound equals the threshold may tie with it and come first by its numbers.
        alive = bounds >= threshold
        flat, bounds = flat[alive], bounds[alive]
        size = min(max(top, EVALUATED_AT_ONCE), len(flat))
        if not size:
            break
        # argpartition leaves ties at the edge in any order: harmless, as every tie is evaluated in the end.
        chosen = np.argpartition(-bounds, size - 1)[:size]
        pairs = np.stack(np.unravel_index(flat[chosen], wanted.shape), axis=1).astype(np.int64)
        evaluated += size
        best_pairs = np.concatenate([best_pairs, pairs])
        best_rewards = np.concatenate([best_rewards, evaluate(pairs)])
        order = np.lexsort((best_pairs[:, 1], best_pairs[:, 0], -best_rewards))[:top]
        best_pairs, best_rewards = best_pairs[order], best_rewards[order]
        rest = np.ones(len(flat), dtype=bool)
        rest[chosen] = False
        flat, bounds = flat[rest], bounds[rest]
    return Found(best_pairs, best_rewards, evaluated)


def rank(reward: NDArray[np.float64], wanted: NDArray[np.bool_], top: int) -> Found:
    """Return the `top` wanted pairs of a reward that is known for all pairs (N, N)."""
    return search(reward, wanted, lambda pairs: reward[pairs[:, 0], pairs[:, 1]], top)
