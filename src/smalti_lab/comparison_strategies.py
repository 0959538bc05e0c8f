"""The strategies that the paper compares itself with, each with the paper's linear adjustment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from smalti.errors import UnknownNameError
from smalti.geometry.linear_maps import apply
from smalti.overlap.normal_probability import rectangle_probability
from smalti.paper.centre_covariance import centre_in_other
from smalti.paper.linear_adjustment import LinearAdjustment
from smalti.paper.paper_strategy import (
    Paper,
    PaperStrategy,
    PaperView,
    as_suggestions,
    branch_and_bound,
    informativeness,
    position_probability_bounds,
    rank,
    search_rewards,
)
from smalti.records import Pair, PairNumbers, Suggestion

SMALLEST_ARC = 1e-9
"""Arcs are at least this long: a sparse graph drops arcs of length 0, and the ratio needs a positive length."""


@dataclass(frozen=True, slots=True)
class PositionOnly:
    """Ranks by the position on the mosaic alone: P^pos · √det Σ_γ."""

    name: str = "position-only"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best pairs."""
        return as_suggestions(search_rewards(view, np.ones((view.frames, view.frames)), top))


@dataclass(frozen=True, slots=True)
class ExternalOnly:
    """Ranks by appearance alone: P^ext · √det Σ_γ. It has no bound from the position model, so nothing is pruned."""

    name: str = "external-only"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        reward = view.external_probabilities * informativeness(view.centres)
        return as_suggestions(rank(reward, view.candidates, top))


@dataclass(frozen=True, slots=True)
class Elibol:
    """Elibol, Gracias and Garcia (2013), as the paper's section 6.1 adapts it: safe pairs first, by entropy.

    Of the pairs whose upper bound on P^pos reaches `least_probability`, it asks the one with the largest P^pos · log
    det Σ_γ. log det may be negative, and so may the reward; it still orders the pairs. The filter removes pairs from
    the candidates and never enters the product.
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
        return as_suggestions(found, smallest_reward=-np.inf)


@dataclass(frozen=True, slots=True)
class Sawhney:
    """Sawhney, Hsu and Kumar (1998), as the paper's section 6.2 implements it: near on the mosaic, far in the graph.

    It asks the pair with the largest max(0, 1 - l) · max(0, L/l - 1). l is the arc on the mosaic, L the shortest path
    along links.
    """

    name: str = "sawhney"

    def rank(self, view: PaperView, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        arc = arc_lengths(view.adjustment)
        i, j = view.adjustment.ends.T
        graph = coo_array((arc[i, j], (i, j)), shape=(view.frames, view.frames)).tocsr()
        path = dijkstra(graph, directed=False)
        reward = np.maximum(0.0, 1.0 - arc) * np.maximum(0.0, path / arc - 1.0)
        return as_suggestions(rank(reward, view.candidates, top))


@dataclass(frozen=True, slots=True)
class Xia:
    """After Xia et al. (2017): frame after frame, the earlier frames under it on the mosaic, without uncertainty.

    As in the paper, two frames overlap if the centre of one lies in the other.
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
    """Return a strategy by its name."""
    if name not in PAPER_STRATEGIES:
        raise UnknownNameError("strategy", name, PAPER_STRATEGIES)
    return PAPER_STRATEGIES[name]


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
