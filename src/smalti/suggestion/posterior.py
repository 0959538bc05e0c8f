"""Compute the posterior: the probability that a pair is answered yes.

Differs from the paper: its P^ext·P^pos ranks pairs but is no probability. Here the prior is P^pos, discounted by "no"
answers to neighbouring pairs. Appearance is the evidence, by the likelihood ratio that `Evidence` has learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.records import Pair, PairNumbers
from smalti.suggestion.answer_model import NoAnswers, acceptance
from smalti.suggestion.appearance_evidence import Evidence, update
from smalti.suggestion.pair_survey import REACHES, SurveyedPairs, far_pairs, near_pairs
from smalti.suggestion.state_view import View

SMALLEST = 1e-12
"""Smaller probabilities count as 0."""

NEGLIGIBLE = 0.02
"""Kinds of pairs with a smaller rate of yes are not searched."""


Learned = tuple[Evidence, NDArray[np.float64], NoAnswers, SurveyedPairs, NDArray[np.float64]]
"""The fields of a posterior without the view."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The probability of a yes for any pair of one state."""

    view: View
    evidence: Evidence
    acceptance: NDArray[np.float64]  # (kinds,)
    no_answers: NoAnswers
    near: SurveyedPairs
    near_weight: NDArray[np.float64]

    @classmethod
    def of(cls, view: View) -> Posterior:
        """Learn from pairs near in time and from pairs anywhere, once per view."""
        learned: Learned | None = view.remembered.get("posterior")
        if learned is None:
            learned = view.remembered["posterior"] = cls._learn(view)
        # The view must not hold a posterior, which holds the view: such a cycle would keep the mosaic in memory.
        return cls(view, *learned)

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
        refused = SurveyedPairs.of(view, view.refused)
        accepted = acceptance(view.estimate.system, update(kinds(refused.within), evidence.of(refused.external)))
        no_answers = NoAnswers(view.covariance, view.refused, refused.centres)
        return evidence, accepted, no_answers, surveyed[: len(near)], sampling_weight

    def of_surveyed(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return the probability (n,) of surveyed pairs; 1 or 0 for those that were answered."""
        prior = self._discounted(surveyed)
        probability: NDArray[np.float64] = np.sum(
            update(prior, self.evidence.of(surveyed.external)) * self.acceptance, axis=1
        )
        probability[self.view.is_settled(surveyed.pairs)] = 0.0
        probability[self.view.is_linked(surveyed.pairs)] = 1.0
        return probability

    def _discounted(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return the probability of each kind (n, kinds) by position, given the "no" answers to neighbouring pairs.

        The probability that the accepted kinds lose goes to the kinds that would not be accepted.
        """
        prior = kinds(surveyed.within)
        accepted = self.acceptance > NEGLIGIBLE
        for kind in np.flatnonzero(accepted[:-1]):
            prior[:, kind] *= self.no_answers.discount(surveyed, REACHES[kind], self.acceptance[kind])
        rest, total = prior[:, ~accepted], prior.sum(axis=1, keepdims=True)
        rejected = rest.sum(axis=1, keepdims=True)
        prior[:, ~accepted] = rest * (1.0 + (1.0 - total) / np.maximum(rejected, SMALLEST))
        prior[:, -1:] += (1.0 - total) * (rejected <= SMALLEST)
        return prior

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the probability of pairs (n, 2), i ≤ j."""
        probability = np.ones(len(pairs))
        apart = pairs[:, 0] != pairs[:, 1]
        probability[apart] = self.of_surveyed(SurveyedPairs.of(self.view, pairs[apart]))
        return probability

    def reasons(self, pair: Pair) -> dict[str, float]:
        """Return a pair's posterior, its probability by position alone and by appearance alone, and its spread."""
        surveyed = SurveyedPairs.of(self.view, np.array([[pair.i, pair.j]]))
        return {
            "overlap": float(self.of_surveyed(surveyed)[0]),
            "position": float(surveyed.position[0]),
            "external": float(surveyed.external[0]),
            "spread_px": float(np.sqrt(surveyed.centres.spread[0])),
        }


def kinds(within: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities (n, 5) of: overlap, a good part shared, a rim shared, neighbours, apart."""
    beyond = np.diff(within, axis=1, prepend=0.0, append=1.0)
    return np.maximum(beyond, 0.0)
