"""Position and looks as in the paper, with the *expected overlap* in the place of the probability of overlap.

Differs from the paper, for which two frames overlap if the centre of one lies in the other: strips that share a rim are
then never asked, and a pair that just reaches the centre is worth as much as one that coincides. A matcher finds
landmarks in proportion to what two frames share, so that is what is expected here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.records import PairNumbers, Suggestion
from smalti.suggestion.reward import bound_expected_informativeness, expected_informativeness
from smalti.suggestion.search import search
from smalti.suggestion.strategies.paper import BOUND_MARGIN, with_reasons
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View

REACHES = (0.4, 0.8, 1.2, 1.6, 1.9)
"""1 - max(|dx|/w, |dy|/h), about the part of a frame that another one covers, is the mean over r of whether the other's
centre lies in the frame scaled by 2 r. Beyond 1.9 the rim that is shared is too narrow to match."""


@dataclass(frozen=True, slots=True)
class Area:
    """Asks the largest P^ext · E[overlap] · √det Σ_γ."""

    name: str = "area"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best pairs by branch and bound."""
        external, centres = view.external_probabilities, view.centres
        reached = [replace(centres, outline=centres.outline.scaled(reach)) for reach in REACHES]

        def evaluate(pairs: PairNumbers) -> NDArray[np.float64]:
            expected = np.mean([expected_informativeness(within, pairs) for within in reached], axis=0)
            rewards: NDArray[np.float64] = external[pairs[:, 0], pairs[:, 1]] * expected
            return rewards

        # The mean over the reaches is at most the reward of the farthest.
        bound = external * bound_expected_informativeness(reached[-1], view.candidates) * BOUND_MARGIN
        return with_reasons(view, as_suggestions(search(bound, view.candidates, evaluate, top)))
