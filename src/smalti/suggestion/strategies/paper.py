"""The paper's strategy: P^ext · P^pos · √det Σ_γ."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.centres import PairCentres, determinant
from smalti.overlap.rectangle import rectangle_probability
from smalti.records import Suggestion
from smalti.suggestion.reward import expected_informativeness_above
from smalti.suggestion.search import search
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class Paper:
    """Asks the pair of largest expected reward (Eq. tradeoff_reward)."""

    name: str = "paper"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best pairs."""
        return with_reasons(view, as_suggestions(search(view, view.looks, ExpectedInformativeness(), top)))


class ExpectedInformativeness:
    """P^pos · U: the frames overlap where the centre of one lies in the other."""

    reach = 0.5

    def of(self, centres: PairCentres, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return it for pairs (n,), mean of both directions; 0 will do for what is below `least` (n,)."""
        return expected_informativeness_above(centres, least)


def with_reasons(view: View, suggestions: list[Suggestion]) -> list[Suggestion]:
    """Say of each pair how likely it is to overlap, by either model, and how much is unknown of it."""
    if not suggestions:
        return suggestions
    pairs = np.array([(suggestion.pair.i, suggestion.pair.j) for suggestion in suggestions], dtype=np.int64)
    centres = view.covariance.of_pairs(pairs)
    position = rectangle_probability(centres.mean, centres.cov, centres.outline).mean(axis=1)
    external = view.looks.of_pairs(pairs)
    unknown = np.sqrt(determinant(centres.cov)).mean(axis=1)
    return [
        replace(suggestion, reasons={"position": float(p), "external": float(e), "informativeness_px2": float(u)})
        for suggestion, p, e, u in zip(suggestions, position, external, unknown, strict=True)
    ]
