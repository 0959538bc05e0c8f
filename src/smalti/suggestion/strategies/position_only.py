"""The paper without its external model: P^pos · √det Σ_γ."""

from __future__ import annotations

from dataclasses import dataclass

from smalti.overlap.external import NoExternalModel
from smalti.records import Suggestion
from smalti.suggestion.search import search
from smalti.suggestion.strategies.paper import ExpectedInformativeness
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class PositionOnly:
    """Asks by the place on the mosaic alone."""

    name: str = "position-only"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best pairs."""
        return as_suggestions(search(view, NoExternalModel(view.frames), ExpectedInformativeness(), top))
