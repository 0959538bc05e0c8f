"""The paper's strategy (`Paper`): expected reward P^pos · U, its bound, and the exact search for the best pairs.

U_ij = √det Σ_γij (Eq. def_reward). Differs from the paper: its overlap is not symmetric. Here the *product* P·U is
averaged over the two directions. Averaging P and U separately would combine one direction's probability with the
other's spread, and break the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled_parallel, prange
from smalti.engine.relative_position import Centres, determinant
from smalti.overlap.external_model import ExternalModel
from smalti.overlap.normal_probability import rectangle_probability
from smalti.overlap.position_bounds import largest_reward_in_square, probability_bounds
from smalti.paper.haralick import Haralick
from smalti.paper.linear_adjustment import LinearAdjustment
from smalti.records import Pair, PairNumbers, Suggestion
from smalti.suggestion.pair_search import Found, merge
from smalti.suggestion.state_view import CLOSEST_ASKED

EVALUATED_AT_ONCE = 512


class PaperStrategy(Protocol):
    """Ranks the pairs that may be asked."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return at most `top` candidates, best first; none if no pair is useful."""
        ...


@dataclass(frozen=True, slots=True)
class Paper:
    """Asks the pair of largest expected reward P^ext · P^pos · √det Σ_γ (Eq. tradeoff_reward)."""

    name: str = "paper"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best pairs."""
        return view.explain(as_suggestions(search_rewards(view, view.external_probabilities, top)))


def search_rewards(view: PaperView, external: NDArray[np.float64], top: int) -> Found:
    """Return the `top` candidates of largest P^ext · P^pos · U, exactly, for any P^ext (N, N)."""
    centres = view.centres

    def evaluate(pairs: PairNumbers) -> NDArray[np.float64]:
        return external[pairs[:, 0], pairs[:, 1]] * expected_informativeness(centres, pairs)

    bound = external * expected_informativeness_bound(centres)
    return branch_and_bound(bound, view.candidates & (external > 0.0), evaluate, top)


def as_suggestions(found: Found, smallest_reward: float = 0.0) -> list[Suggestion]:
    """Turn the result of a search into suggestions; pairs without reward are dropped."""
    return [
        Suggestion(Pair(int(i), int(j)), float(reward))
        for (i, j), reward in zip(found.pairs, found.rewards, strict=True)
        if reward > smallest_reward
    ]


@dataclass(frozen=True, eq=False)
class PaperView:
    """An adjustment, the external model, and the pairs that may still be asked."""

    haralick: Haralick
    external: ExternalModel  # trained on the answers
    settled: PairNumbers  # (n, 2): the chain and all answered pairs
    only: PairNumbers | None = None  # (n, 2): if given, no other pairs may be asked

    @property
    def adjustment(self) -> LinearAdjustment:
        """The links and the linear mosaic."""
        return self.haralick.adjustment

    @property
    def frames(self) -> int:
        """N."""
        return self.adjustment.frames

    @property
    def centres(self) -> Centres:
        """The distribution of every frame's centre in every other frame."""
        return self.haralick.centres

    @cached_property
    def external_probabilities(self) -> NDArray[np.float64]:
        """P^ext (N, N)."""
        return self.external.probabilities()

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """(N, N): the pairs i < j that may be asked."""
        allowed = np.triu(np.ones((self.frames, self.frames), dtype=np.bool_), CLOSEST_ASKED)
        if self.only is not None:
            wanted = np.zeros_like(allowed)
            wanted[self.only[:, 0], self.only[:, 1]] = True
            allowed &= wanted
        for pairs in (self.adjustment.ends, self.settled):
            allowed[pairs[:, 0], pairs[:, 1]] = False
        return allowed

    def explain(self, suggestions: list[Suggestion]) -> list[Suggestion]:
        """Add to each pair its probability of overlap, by position, by appearance and by both, and its spread."""
        i = np.array([suggestion.pair.i for suggestion in suggestions], dtype=np.int64)
        j = np.array([suggestion.pair.j for suggestion in suggestions], dtype=np.int64)
        forth_and_back = np.stack([i, j]), np.stack([j, i])
        mean, cov = self.centres.mean[forth_and_back], self.centres.cov[forth_and_back]
        position = rectangle_probability(mean, cov, self.centres.outline).mean(axis=0)
        spread_px = np.sqrt(np.sqrt(determinant(cov)).mean(axis=0))
        external = self.external_probabilities[i, j]
        names = ("overlap", "position", "external", "spread_px")
        numbers = np.column_stack([position * external, position, external, spread_px]).tolist()
        return [
            replace(suggestion, reasons=dict(zip(names, row, strict=True)))
            for suggestion, row in zip(suggestions, numbers, strict=True)
        ]


def informativeness(centres: Centres) -> NDArray[np.float64]:
    """Return U (N, N), px², mean of both directions."""
    directed = np.sqrt(centres.determinant)
    return (directed + directed.T) / 2


def position_probability(centres: Centres) -> NDArray[np.float64]:
    """Return P^pos (N, N), mean of both directions, for display."""
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
    """Return an upper bound of P^pos·U of every pair (N, N): the reward of a square around the frame."""
    outline = centres.outline
    directed = _largest(centres.mean, centres.cov, *outline.centre_x_y, outline.outer_half_side)
    return (directed + directed.T) / 2


def branch_and_bound(
    bound: NDArray[np.float64],
    wanted: NDArray[np.bool_],
    evaluate: Callable[[PairNumbers], NDArray[np.float64]],
    top: int,
) -> Found:
    """Return the `top` wanted pairs of largest reward, exactly.

    `bound` (N, N) is at least the reward of every wanted pair; `evaluate` returns the rewards of pairs (n, 2). Pairs
    are evaluated in decreasing order of their bound, until the next bound is below the worst of the best `top` found.
    """
    flat = np.flatnonzero(wanted)
    bounds = bound.ravel()[flat]
    found = Found.nothing()
    while len(flat) and top > 0:
        threshold = found.rewards[top - 1] if len(found.rewards) >= top else -np.inf
        # A pair whose bound equals the threshold may tie with it and precede it by its numbers.
        alive = bounds >= threshold
        flat, bounds = flat[alive], bounds[alive]
        size = min(max(top, EVALUATED_AT_ONCE), len(flat))
        if not size:
            break
        # argpartition leaves ties at the edge in any order: harmless, because every tie is evaluated in the end.
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
