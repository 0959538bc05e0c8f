"""The paper without its position model: P^ext · √det Σ_γ.

No bound of the position model prunes here: this strategy has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from smalti.records import Suggestion
from smalti.suggestion.ranking import rank
from smalti.suggestion.reward import informativeness
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class ExternalOnly:
    """Asks by the looks alone."""

    name: str = "external-only"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        reward = view.external_probabilities * informativeness(view.centres)
        return as_suggestions(rank(reward, view.candidates, top))
