"""After Xia et al. (2017): every pair that overlaps on the current mosaic, in the order of the sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smalti.adjustment.covariance import centre_in_other
from smalti.records import Pair, Suggestion
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class Xia:
    """Asks frame after frame about the earlier ones under it; no model of uncertainty.

    Two frames overlap, as in the paper, when the centre of one lies in the other.
    """

    name: str = "xia"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the first candidates by the later frame, then by the earlier one."""
        outline = view.adjustment.outline
        inside = outline.contains(centre_in_other(view.mosaic_from_frame, outline))
        later, earlier = np.nonzero((view.candidates & (inside | inside.T)).T)
        return [Suggestion(Pair(int(i), int(j)), 1.0) for i, j in zip(earlier[:top], later[:top], strict=True)]
