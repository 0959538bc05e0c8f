"""Looks by what they are worth, for a search that asks for the pairs whose looks matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from smalti.overlap.external import PairwiseModel
from smalti.overlap.scan import Batches
from smalti.records import PairNumbers
from smalti.suggestion.evidence import Evidence

ROUNDED_UP = 1e-4
"""By so much at most a bound of P^ext is above it."""


@dataclass(frozen=True, slots=True)
class WeighedLooks:
    """The likelihood ratio of overlapping pairs, as a share of the largest, in the place of P^ext."""

    looks: PairwiseModel
    evidence: Evidence

    @property
    def frames(self) -> int:
        """N."""
        return self.looks.frames

    def probabilities(self) -> NDArray[np.float64]:
        """Return the shares of all pairs (N, N)."""
        probabilities = self.looks.probabilities()
        return self._share(probabilities.ravel()).reshape(probabilities.shape)

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the shares of pairs (n, 2)."""
        return self._share(self.looks.of_pairs(pairs))

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs whose share reaches least[I, J], by pair of blocks, then i, then j."""
        shares = self.evidence.ratios[:, 0] / self.evidence.ratios[:, 0].max()
        # The first step that reaches a level, whatever those above it do.
        reached = np.maximum.accumulate(shares)
        lowest = np.append(0.0, expit(self.evidence.edges))
        step = np.searchsorted(reached, least)
        needed = np.where(step < len(shares), lowest[np.minimum(step, len(shares) - 1)], np.inf)
        for pairs, bound in self.looks.pairs_above(needed, starts):
            yield pairs, np.maximum(self._share(bound), self._share(np.maximum(bound - ROUNDED_UP, 0.0)))

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> WeighedLooks:
        """Return itself: what looks are worth is learned elsewhere."""
        return self

    def _share(self, external: NDArray[np.float64]) -> NDArray[np.float64]:
        share: NDArray[np.float64] = self.evidence.of(external)[:, 0] / self.evidence.ratios[:, 0].max()
        return share
