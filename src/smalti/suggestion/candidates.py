"""Find the candidates: the pairs worth asking about, the probability of a yes, and their expected gain."""

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
"""Pairs evaluated closely: the best by a reward like the paper's, which measures the pair's own uncertainty."""

SMALLEST = 1e-3
"""Candidates have at least this share of the largest such reward."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePairs:
    """The candidates of one state, and the pairs over which the mosaic's error is measured."""

    surveyed: SurveyedPairs  # the n candidates
    yes_probability: NDArray[np.float64]  # (n,) of the candidates
    error_pairs: SurveyedPairs  # the candidates and pairs near in time, in this order
    weight: NDArray[np.float64]  # how many overlapping pairs each of `error_pairs` stands for

    @classmethod
    def of(cls, view: View) -> CandidatePairs:
        """Return the candidates of a view; they are computed once."""
        return view.once(cls._of)

    def expected_gain(self, view: View) -> ExpectedGain:
        """Return the expected gain of the candidates, which are those of the view; it is computed once."""
        return view.once(CandidatePairs._gain)

    @classmethod
    def _gain(cls, view: View) -> ExpectedGain:
        found = cls.of(view)
        return ExpectedGain.of(
            view.estimate, view.covariance, found.surveyed, found.yes_probability, found.error_pairs, found.weight
        )

    @classmethod
    def _of(cls, view: View) -> CandidatePairs:
        posterior = Posterior.of(view)
        appearance = WeighedAppearance(view.pooled, posterior.evidence)
        reward = AcceptedTimesSpread(posterior.acceptance)
        candidates = SurveyedPairs.of(view, search(view, appearance, reward, CANDIDATES, smallest_share=SMALLEST).pairs)
        yes_probability = posterior.of_surveyed(candidates)
        near = posterior.near
        known = np.isin(pair_key(*near.pairs.T), pair_key(*candidates.pairs.T))
        sampling_weight = np.where(known, 0.0, posterior.near_weight)
        error_pairs = SurveyedPairs.joined(candidates, near)
        weight = np.append(
            posterior.overlap_of_surveyed(candidates), sampling_weight * posterior.overlap_of_surveyed(near)
        )
        # Pairs of frames on different mosaics have no error yet.
        weight *= view.are_joined(error_pairs.pairs)
        return cls(candidates, yes_probability, error_pairs, weight * _counted_share(error_pairs))


def _counted_share(surveyed: SurveyedPairs) -> NDArray[np.float64]:
    """Return the share (n,) of each pair's squared error that counts.

    Errors beyond `LOST` all count about the same, so that one lost frame does not dominate: a frame with an error of
    three frame widths is no worse than one with an error of one width.
    """
    spread, outline = surveyed.centres.spread, surveyed.centres.outline
    lost = LOST**2 * outline.area
    share: NDArray[np.float64] = lost / (lost + spread)
    return share


class AcceptedTimesSpread:
    """The paper's P^pos · √det Σ, for an agent that says yes to some kinds of pairs more often than to others."""

    def __init__(self, acceptance: NDArray[np.float64]) -> None:
        accepted = int(np.flatnonzero(acceptance[:-1] > NEGLIGIBLE)[-1]) + 1
        self._reaches = REACHES[:accepted]
        # A sum over nested outlines: what is within an inner one is within the outer ones too.
        self._steps = -np.diff(np.append(acceptance[:accepted], 0.0))
        # Outlines beyond the frame's own are squares along the eigenvectors. Their corners stick out.
        self.reach = float(REACHES[accepted - 1] / 2.0) * (math.sqrt(2.0) if accepted > 1 else 1.0)
        # The paper's bound is for the area of one frame. Here the accepted area may be this many times as large.
        self._area = max(float(np.sum(np.maximum(self._steps, 0.0) * self._reaches**2)), 1.0)

    def of(self, centres: PairCentres, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the reward of pairs (n,), px², mean of both directions."""
        # The weighted sum is at most the largest value times the sum of the positive steps.
        above = least * self._area / max(float(np.sum(np.maximum(self._steps, 0.0))), NEGLIGIBLE)
        within = probability_within(centres, self._reaches, spread_above=above)
        reward: NDArray[np.float64] = np.sum(within * self._steps, axis=1) / self._area
        return np.maximum(reward, 0.0)
