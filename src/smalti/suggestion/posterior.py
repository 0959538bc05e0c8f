"""Compute the posterior: the probability that a pair overlaps, and that it is answered yes.

Differs from the paper: its P^ext·P^pos ranks pairs but is no probability. Here the prior is P^pos, discounted by "no"
answers to neighbouring pairs. Appearance is the evidence, by the likelihood ratio that `Evidence` has learned.

Not every overlap is answered yes: a matcher misses some, and at hard pairs a person cannot tell. Two models of the
answers tell both probabilities apart. They are the same as long as all answers are yes or no.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.records import Pair, PairNumbers, pair_key
from smalti.suggestion.answer_model import NoAnswers, acceptance, share_found
from smalti.suggestion.appearance_evidence import Evidence, update
from smalti.suggestion.pair_survey import REACHES, SurveyedPairs, far_pairs, near_pairs
from smalti.suggestion.state_view import View

SMALLEST = 1e-12
"""Smaller probabilities count as 0."""

NEGLIGIBLE = 0.02
"""Kinds of pairs with a smaller rate of yes are not searched."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerModel:
    """How often each kind of pair gets a yes, and the refusals that lower the probability of pairs beside them."""

    evidence: Evidence
    acceptance: NDArray[np.float64]  # (kinds,)
    refusals: tuple[NoAnswers, ...]

    def of(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return the probability (n,) of a yes, whatever was answered about these pairs themselves."""
        prior = self._discounted(surveyed)
        return np.asarray(np.sum(update(prior, self.evidence.of(surveyed.external)) * self.acceptance, axis=1))

    def _discounted(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return the probability of each kind (n, kinds) by position, given the "no" answers to neighbouring pairs.

        The probability that the accepted kinds lose goes to the kinds that would not be accepted.
        """
        prior = kinds(surveyed.within)
        accepted = self.acceptance > NEGLIGIBLE
        for kind in np.flatnonzero(accepted[:-1]):
            for refused in self.refusals:
                prior[:, kind] *= refused.discount(surveyed, REACHES[kind], self.acceptance[kind])
        rest, total = prior[:, ~accepted], prior.sum(axis=1, keepdims=True)
        rejected = rest.sum(axis=1, keepdims=True)
        prior[:, ~accepted] = rest * (1.0 + (1.0 - total) / np.maximum(rejected, SMALLEST))
        prior[:, -1:] += (1.0 - total) * (rejected <= SMALLEST)
        return prior


Learned = tuple[AnswerModel, AnswerModel, SurveyedPairs, NDArray[np.float64]]
"""The fields of a posterior without the view."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The probability of an overlap and of a yes, for any pair of one state."""

    view: View
    answers: AnswerModel  # of whoever is asked now
    overlaps: AnswerModel  # of somebody who sees every overlap that a person can see
    near: SurveyedPairs
    near_weight: NDArray[np.float64]

    @property
    def evidence(self) -> Evidence:
        """What appearance says."""
        return self.answers.evidence

    @property
    def acceptance(self) -> NDArray[np.float64]:
        """The share of yes (kinds,) of whoever is asked now."""
        return self.answers.acceptance

    @classmethod
    def of(cls, view: View) -> Posterior:
        """Learn from pairs near in time and from pairs anywhere, once per view."""
        # The view must not hold a posterior, which holds the view: such a cycle would keep the mosaic in memory.
        return cls(view, *view.once(cls._learn))

    @classmethod
    def _learn(cls, view: View) -> Learned:
        near, sampling_weight = near_pairs(view.frames)
        far = far_pairs(view.frames)
        surveyed = SurveyedPairs.of(view, np.concatenate([near, far]))
        total = view.frames * (view.frames - 1) / 2 - sampling_weight.sum()
        weight = np.append(sampling_weight, np.full(len(far), max(total, 0.0) / max(len(far), 1)))
        within = surveyed.within.copy()
        within[view.is_linked(surveyed.pairs)] = 1.0
        evidence = Evidence.learn(surveyed.external, weight, kinds(within))
        return *_model_answers(view, evidence), surveyed[: len(near)], sampling_weight

    def of_surveyed(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return the probability of a yes (n,) of surveyed pairs; 1 or 0 for those that were answered."""
        probability = self.answers.of(surveyed)
        probability[self.view.is_settled(surveyed.pairs)] = 0.0
        probability[self.view.is_linked(surveyed.pairs)] = 1.0
        return probability

    def overlap_of_surveyed(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return the probability of an overlap (n,); 1 or 0 for pairs that were answered yes or no.

        It does not depend on what is asked next, nor on pairs about which a person cannot tell.
        """
        probability = self.overlaps.of(surveyed)
        probability[self.view.is_decided(surveyed.pairs)] = 0.0
        probability[self.view.is_linked(surveyed.pairs)] = 1.0
        return probability

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the probability of a yes of pairs (n, 2), i ≤ j."""
        probability = np.ones(len(pairs))
        apart = pairs[:, 0] != pairs[:, 1]
        probability[apart] = self.of_surveyed(SurveyedPairs.of(self.view, pairs[apart]))
        return probability

    def overlap_of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the probability of an overlap of pairs (n, 2), i < j."""
        return self.overlap_of_surveyed(SurveyedPairs.of(self.view, pairs))

    def reasons(self, pair: Pair) -> dict[str, float]:
        """Return a pair's posterior, its probability by position alone and by appearance alone, and its spread."""
        surveyed = SurveyedPairs.of(self.view, np.array([[pair.i, pair.j]]))
        return {
            "overlap": float(self.of_surveyed(surveyed)[0]),
            "position": float(surveyed.position[0]),
            "external": float(surveyed.external[0]),
            "spread_px": float(np.sqrt(surveyed.centres.spread[0])),
        }


def _model_answers(view: View, evidence: Evidence) -> tuple[AnswerModel, AnswerModel]:
    """Return the model of whoever is asked, and that of overlaps.

    Both are learned from refusals. For overlaps only a no is one; where the matcher failed, the probability falls as
    far as it finds overlaps elsewhere. Whoever is asked, and could not tell about a pair, cannot about the next one.
    """

    def model(refused: PairNumbers, *others: NoAnswers) -> AnswerModel:
        surveyed = SurveyedPairs.of(view, refused)
        accepted = acceptance(view.estimate.system, update(kinds(surveyed.within), evidence.of(surveyed.external)))
        return AnswerModel(evidence, accepted, (NoAnswers(view.covariance, refused, surveyed.centres), *others))

    answered = view.answered
    certain = model(answered.apart)
    if not len(answered.failed):
        failures: tuple[NoAnswers, ...] = ()
    else:
        failed = SurveyedPairs.of(view, answered.failed)
        overlap = certain.of(failed)
        overlap[view.is_decided(failed.pairs)] = 0.0
        overlap[view.is_linked(failed.pairs)] = 1.0
        found = share_found(answered.matched, overlap)
        failures = (NoAnswers(view.covariance, failed.pairs, failed.centres, found),)
    overlaps = AnswerModel(evidence, certain.acceptance, (*certain.refusals, *failures))
    if len(answered.refused) == len(answered.apart):
        return overlaps, overlaps
    # A matcher that is asked again fails again.
    is_among = np.isin(pair_key(*answered.failed.T), pair_key(*answered.refused.T))
    return model(answered.refused, *(() if is_among.any() else failures)), overlaps


def kinds(within: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities (n, 5) of: overlap, a good part shared, a rim shared, neighbours, apart."""
    beyond = np.diff(within, axis=1, prepend=0.0, append=1.0)
    return np.maximum(beyond, 0.0)
