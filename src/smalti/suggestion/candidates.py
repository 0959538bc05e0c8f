"""What lies ahead: the pairs worth asking, how likely each is to get a yes, and what it would teach."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.engine.relative_position import PairCentres
from smalti.records import pair_key
from smalti.suggestion.appearance_evidence import WeighedAppearance
from smalti.suggestion.expected_gain import LOST, ExpectedGain
from smalti.suggestion.pair_search import search
from smalti.suggestion.pair_survey import REACHES, SurveyedPairs, probability_within
from smalti.suggestion.posterior import NEGLIGIBLE, Posterior
from smalti.suggestion.state_view import View

CANDIDATES = 1000
"""Pairs that are looked at closely: the best by a reward like the paper's, of how uncertain a pair itself is."""

FAINTEST = 1e-3
"""Of the largest such reward: what a candidate must have."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePairs:
    """The candidates of one state, and the pairs that matter."""

    candidates: SurveyedPairs
    likely: NDArray[np.float64]  # (n,) of the candidates
    mattering: SurveyedPairs  # the candidates, and pairs near in time
    weight: NDArray[np.float64]  # how many pairs that overlap each of these stands for

    @classmethod
    def of(cls, view: View) -> CandidatePairs:
        """Look for candidates."""
        return view.once(cls._of)

    def expected_gain(self, view: View) -> ExpectedGain:
        """Find out what the candidates would teach."""
        return ExpectedGain.of(
            view.estimate, view.covariance, self.candidates, self.likely, self.mattering, self.weight
        )

    @classmethod
    def _of(cls, view: View) -> CandidatePairs:
        posterior = Posterior.of(view)
        appearance = WeighedAppearance(view.pooled, posterior.evidence)
        reward = AcceptedTimesSpread(posterior.acceptance)
        candidates = SurveyedPairs.of(view, search(view, appearance, reward, CANDIDATES, faintest_share=FAINTEST).pairs)
        likely = posterior.of_surveyed(candidates)
        near = posterior.near
        known = np.isin(pair_key(*near.pairs.T), pair_key(*candidates.pairs.T))
        stand_for = np.where(known, 0.0, posterior.near_stand_for)
        mattering = SurveyedPairs.joined(candidates, near)
        weight = np.append(likely, stand_for * posterior.of_surveyed(near))
        # Pairs of frames that nothing joins have no error yet.
        weight *= view.are_joined(mattering.pairs)
        return cls(candidates, likely, mattering, weight * _bounded(mattering))


def _bounded(surveyed: SurveyedPairs) -> NDArray[np.float64]:
    """Return which share (n,) of the squared error of pairs counts.

    Errors beyond `LOST` all count about the same: a frame that is off by three of its widths is no worse than one that
    is off by one, and is not to be asked about until nothing is left to ask.
    """
    spread, outline = surveyed.centres.spread, surveyed.centres.outline
    lost = LOST**2 * outline.area
    share: NDArray[np.float64] = lost / (lost + spread)
    return share


class AcceptedTimesSpread:
    """What P^pos · √det Σ becomes for an agent that says yes to some kinds of pairs more often than to others."""

    def __init__(self, acceptance: NDArray[np.float64]) -> None:
        accepted = int(np.flatnonzero(acceptance[:-1] > NEGLIGIBLE)[-1]) + 1
        self._reaches = REACHES[:accepted]
        # A sum over nested outlines: what is within the inner ones is within the outer ones, too.
        self._steps = -np.diff(np.append(acceptance[:accepted], 0.0))
        # Outlines beyond the frame's own are squares along the eigenvectors, whose corners stick out.
        self.reach = float(REACHES[accepted - 1] / 2.0) * (math.sqrt(2.0) if accepted > 1 else 1.0)
        # The paper's bound is for one frame's area; here so many times as large a one may be accepted.
        self._area = max(float(np.sum(np.maximum(self._steps, 0.0) * self._reaches**2)), 1.0)

    def of(self, centres: PairCentres, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return it for pairs (n,), px², mean of both directions."""
        # All values together count for no more than the largest of them, times what is accepted at most.
        above = least * self._area / max(float(np.sum(np.maximum(self._steps, 0.0))), NEGLIGIBLE)
        within = probability_within(centres, self._reaches, spread_above=above)
        reward: NDArray[np.float64] = np.sum(within * self._steps, axis=1) / self._area
        return np.maximum(reward, 0.0)
