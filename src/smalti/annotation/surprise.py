"""How surprising a yes was when it came: χ² against what was known, of as many degrees as its landmarks determine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2 as chi2_distribution
from scipy.stats import norm

from smalti.annotation.states import AnyLoop, degrees_of
from smalti.records import Author, Landmarks

QUESTIONED_TAIL = 5e-7
"""The share of honest links that are as surprising, where the noise is what it is said to be."""

FEWEST_SURPRISES = 3
FIRST_SCALE = 4.0
"""By how much χ² may be larger than it should be before answers have shown by how much it is: chains drift by more than
their noise where relief or a lens bends every link the same way."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """χ² of a link against what the others foretold."""

    chi2: float
    degrees: int

    @property
    def excess(self) -> float:
        """How many times as large as the median of such χ² it is."""
        return self.chi2 / float(chi2_distribution.median(self.degrees))

    def is_more_than(self, earlier: Sequence[Surprise]) -> bool:
        """Tell whether it is more than the links before it let expect."""
        return self.chi2 / scale_of(earlier) > float(chi2_distribution.isf(QUESTIONED_TAIL, self.degrees))

    def sigmas(self, earlier: Sequence[Surprise]) -> float:
        """Return how many σ out a normal number is that is as surprising, after the links before it."""
        scaled = self.chi2 / scale_of(earlier)
        tail = float(chi2_distribution.sf(scaled, self.degrees))
        return float(norm.isf(tail / 2)) if tail > 1e-280 else math.sqrt(scaled)


def surprise_of(loop: AnyLoop, landmarks: Landmarks, author: Author) -> Surprise:
    """Return how surprising a yes is to a state."""
    return Surprise(loop.surprise(landmarks, author), degrees_of(loop, landmarks))


def scale_of(earlier: Sequence[Surprise]) -> float:
    """Return by how much χ² of honest links is larger than it should be."""
    if len(earlier) < FEWEST_SURPRISES:
        return FIRST_SCALE
    return max(1.0, float(np.median([surprise.excess for surprise in earlier])))
