"""Elibol, Gracias and Garcia (2013), as the paper's section 6.1 adapts it: safe pairs first, by entropy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.overlap.rectangle import rectangle_probability
from smalti.records import Suggestion
from smalti.suggestion.ranking import branch_and_bound
from smalti.suggestion.reward import position_probability_bounds
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class Elibol:
    """Asks, of the pairs whose upper bound on P^pos reaches `least_probability`, the largest P^pos · log det Σ_γ.

    log det may be negative, and with it the reward: it orders the pairs all the same. The filter removes pairs
    from the candidates and never enters the product.
    """

    name: str = "elibol"
    least_probability: float = 0.99

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best of the pairs that pass the filter."""
        centres = view.centres
        _, upper = position_probability_bounds(centres)
        wanted = view.candidates & (upper >= self.least_probability)
        log_det = np.log(np.maximum(centres.determinant, np.finfo(np.float64).tiny))

        def evaluate(pairs: NDArray[np.int64]) -> NDArray[np.float64]:
            reward = np.zeros(len(pairs))
            for i, j in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
                probability = rectangle_probability(centres.mean[i, j], centres.cov[i, j], centres.outline)
                reward += probability * log_det[i, j] / 2
            return reward

        # P ≤ 1 bounds the reward of either sign: P·log det ≤ max(log det, 0).
        bound = np.maximum(log_det, 0)
        found = branch_and_bound((bound + bound.T) / 2, wanted, evaluate, top)
        return as_suggestions(found, smallest_reward=-np.inf)
