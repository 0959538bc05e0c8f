"""The paper without its external model: P^pos · √det Σ_γ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalti.records import Suggestion
from smalti.suggestion.strategies.paper import rank_by_expected_reward
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class PositionOnly:
    """Asks by the place on the mosaic alone."""

    name: str = "position-only"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best pairs by branch and bound."""
        return rank_by_expected_reward(view, np.ones((view.frames, view.frames)), top)
