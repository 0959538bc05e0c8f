"""The best of pairs whose rewards, or bounds on them, are known for all pairs: for strategies to compare with."""

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

    `bound` (N, N) is at least the reward of every wanted pair; `evaluate` gives the rewards of pairs (n, 2).
    Pairs are evaluated in decreasing order of their bound, until the next bound is below the worst of the best
    `top` found.
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
