"""The paper's strategy: P^ext · P^pos · √det Σ_γ."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.centres import determinant
from smalti.overlap.rectangle import rectangle_probability
from smalti.records import Suggestion
from smalti.suggestion.reward import bound_expected_informativeness, expected_informativeness
from smalti.suggestion.search import search
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class Paper:
    """Asks the pair of largest expected reward (Eq. tradeoff_reward)."""

    name: str = "paper"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best pairs by branch and bound."""
        return with_reasons(view, rank_by_expected_reward(view, view.external_probabilities, top))


def rank_by_expected_reward(view: View, external: NDArray[np.float64], top: int) -> list[Suggestion]:
    """Rank by `external` times P^pos·U, of which both directions' mean is taken."""
    wanted = view.candidates & (external > 0)
    bound = external * bound_expected_informativeness(view.centres, wanted)

    def evaluate(pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        return external[pairs[:, 0], pairs[:, 1]] * expected_informativeness(view.centres, pairs)

    # The bound is computed along another path than the reward: leave room for their rounding.
    return as_suggestions(search(bound * (1 + 1e-9), wanted, evaluate, top))


def with_reasons(view: View, suggestions: list[Suggestion]) -> list[Suggestion]:
    """Say of each pair how likely it is to overlap, by either model, and how much is unknown of it."""
    i = np.array([suggestion.pair.i for suggestion in suggestions], dtype=np.int64)
    j = np.array([suggestion.pair.j for suggestion in suggestions], dtype=np.int64)
    centres, both = view.centres, (np.stack([i, j]), np.stack([j, i]))
    position = rectangle_probability(centres.mean[both], centres.cov[both], centres.outline).mean(axis=0)
    external = view.external_probabilities[i, j]
    unknown = np.sqrt(determinant(centres.cov[both])).mean(axis=0)
    return [
        replace(suggestion, reasons={"position": float(p), "external": float(e), "informativeness_px2": float(u)})
        for suggestion, p, e, u in zip(suggestions, position, external, unknown, strict=True)
    ]
