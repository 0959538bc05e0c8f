"""The paper's strategy: expected reward P^pos · U, its bound, and the exact search for the best pairs.

U_ij = √det Σ_γij (Eq. def_reward). Differs from the paper, whose overlap is not symmetric: the *product* P·U is
averaged over the two directions. Averaging P and U apart would pair one direction's probability with the other's
spread, and break the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from smalti.compiled import compiled_parallel, prange
from smalti.engine.relative_position import Centres, determinant
from smalti.errors import UnknownNameError
from smalti.geometry.linear_maps import apply
from smalti.overlap.external_model import ExternalModel
from smalti.overlap.normal_probability import rectangle_probability
from smalti.overlap.position_bounds import largest_reward_in_square, probability_bounds
from smalti.paper.centre_covariance import centre_in_other
from smalti.paper.haralick import Haralick
from smalti.paper.linear_adjustment import LinearAdjustment
from smalti.records import Pair, PairNumbers, Suggestion

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


CLOSEST_ASKED = 2
"""Candidates lie at least this many frames apart: consecutive ones are the chain's business."""

SMALLEST_ARC = 1e-9
"""Arcs are at least this long: a sparse graph takes an arc of length 0 for no arc, and the ratio needs one."""


@dataclass(frozen=True, eq=False)
class PaperView:
    """An adjustment, what else is known, and the pairs that may still be asked."""

    haralick: Haralick
    external: ExternalModel  # trained on the answers
    settled: PairNumbers  # (n, 2): the chain, and all that were answered, however
    only: PairNumbers | None = None  # (n, 2): no other pairs may be asked

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
        """Say of each pair how likely it is to overlap, by place, by looks and by both, and how well it is known."""
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


class PaperStrategy(Protocol):
    """Ranks the pairs that may be asked."""

    @property
    def name(self) -> str:
        """What the command line calls it."""
        ...

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return at most `top` candidates, best first; none if it has nothing to ask."""
        ...


@dataclass(frozen=True, slots=True)
class Paper:
    """Asks the pair of largest expected reward P^ext · P^pos · √det Σ_γ (Eq. tradeoff_reward)."""

    name: str = "paper"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best pairs."""
        return view.explain(_as_suggestions(search_rewards(view, view.external_probabilities, top)))


@dataclass(frozen=True, slots=True)
class PositionOnly:
    """Asks by the place on the mosaic alone: P^pos · √det Σ_γ."""

    name: str = "position-only"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best pairs."""
        return _as_suggestions(search_rewards(view, np.ones((view.frames, view.frames)), top))


@dataclass(frozen=True, slots=True)
class ExternalOnly:
    """Asks by the looks alone: P^ext · √det Σ_γ. No bound of the position model prunes here: it has none."""

    name: str = "external-only"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        reward = view.external_probabilities * informativeness(view.centres)
        return _as_suggestions(rank(reward, view.candidates, top))


@dataclass(frozen=True, slots=True)
class Elibol:
    """Elibol, Gracias and Garcia (2013), as the paper's section 6.1 adapts it: safe pairs first, by entropy.

    Asks, of the pairs whose upper bound on P^pos reaches `least_probability`, the largest P^pos · log det Σ_γ. log det
    may be negative, and with it the reward: it orders the pairs all the same. The filter removes pairs from the
    candidates and never enters the product.
    """

    name: str = "elibol"
    least_probability: float = 0.99

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best of the pairs that pass the filter."""
        centres = view.centres
        _, upper = position_probability_bounds(centres)
        wanted = view.candidates & (upper >= self.least_probability)
        log_det = np.log(np.maximum(centres.determinant, np.finfo(np.float64).tiny))

        def evaluate(pairs: PairNumbers) -> NDArray[np.float64]:
            reward = np.zeros(len(pairs))
            for i, j in (pairs.T, pairs[:, ::-1].T):
                probability = rectangle_probability(centres.mean[i, j], centres.cov[i, j], centres.outline)
                reward += probability * log_det[i, j] / 2
            return reward

        # P ≤ 1 bounds the reward of either sign: P·log det ≤ max(log det, 0).
        bound = np.maximum(log_det, 0)
        found = branch_and_bound((bound + bound.T) / 2, wanted, evaluate, top)
        return _as_suggestions(found, smallest_reward=-np.inf)


@dataclass(frozen=True, slots=True)
class Sawhney:
    """Sawhney, Hsu and Kumar (1998), as the paper's section 6.2 implements it: near on the mosaic, far in the graph.

    Asks the largest max(0, 1 - l) · max(0, L/l - 1): l the arc on the mosaic, L the shortest path by links.
    """

    name: str = "sawhney"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        arc = arc_lengths(view.adjustment)
        i, j = view.adjustment.ends.T
        graph = coo_array((arc[i, j], (i, j)), shape=(view.frames, view.frames)).tocsr()
        path = dijkstra(graph, directed=False)
        reward = np.maximum(0.0, 1.0 - arc) * np.maximum(0.0, path / arc - 1.0)
        return _as_suggestions(rank(reward, view.candidates, top))


@dataclass(frozen=True, slots=True)
class Xia:
    """After Xia et al. (2017): frame after frame, the earlier ones under it on the mosaic; no model of uncertainty.

    Two frames overlap, as in the paper, when the centre of one lies in the other.
    """

    name: str = "xia"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the first candidates by the later frame, then by the earlier one."""
        outline = view.adjustment.outline
        inside = outline.contains(centre_in_other(view.adjustment.mosaic_from_frame, outline))
        later, earlier = np.nonzero((view.candidates & (inside | inside.T)).T)
        return [Suggestion(Pair(int(i), int(j)), 1.0) for i, j in zip(earlier[:top], later[:top], strict=True)]


PAPER_STRATEGIES: dict[str, PaperStrategy] = {
    strategy.name: strategy for strategy in (Paper(), ExternalOnly(), PositionOnly(), Elibol(), Sawhney(), Xia())
}


def paper_strategy_named(name: str) -> PaperStrategy:
    """Look a strategy up by its name."""
    if name not in PAPER_STRATEGIES:
        raise UnknownNameError("strategy", name, PAPER_STRATEGIES)
    return PAPER_STRATEGIES[name]


def search_rewards(view: PaperView, external: NDArray[np.float64], top: int) -> Found:
    """Return the `top` candidates of largest P^ext · P^pos · U, exactly, for any P^ext (N, N)."""
    centres = view.centres

    def evaluate(pairs: PairNumbers) -> NDArray[np.float64]:
        return external[pairs[:, 0], pairs[:, 1]] * expected_informativeness(centres, pairs)

    bound = external * expected_informativeness_bound(centres)
    return branch_and_bound(bound, view.candidates & (external > 0.0), evaluate, top)


def arc_lengths(adjustment: LinearAdjustment) -> NDArray[np.float64]:
    """Return l (N, N) of all pairs, registered or not (Eq. sawhney_overlap_score)."""
    maps, outline = adjustment.mosaic_from_frame, adjustment.outline
    centres = apply(maps, outline.centre[None])[:, 0]
    corners = apply(maps, outline.corners)
    radius = np.linalg.norm(corners - centres[:, None], axis=2).mean(axis=1)
    distance = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    gap = np.maximum(0.0, distance - np.abs(radius[:, None] - radius[None]))
    arc: NDArray[np.float64] = np.maximum(gap / (2.0 * np.minimum(radius[:, None], radius[None])), SMALLEST_ARC)
    return arc


def _as_suggestions(found: Found, smallest_reward: float = 0.0) -> list[Suggestion]:
    """Turn what a search found into suggestions, dropping pairs that are worth nothing."""
    return [
        Suggestion(Pair(int(i), int(j)), float(reward))
        for (i, j), reward in zip(found.pairs, found.rewards, strict=True)
        if reward > smallest_reward
    ]
