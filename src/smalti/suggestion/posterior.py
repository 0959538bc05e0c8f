"""How likely a pair is to be answered yes, given everything that is known.

Differs from the paper, whose P^ext·P^pos ranks pairs but is no probability. P^pos, where refusals beside the pair leave
it, is the prior; the looks are evidence, by the likelihood ratio that `Evidence` has learned.
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

FAINTEST = 1e-12
"""A smaller probability is none."""

NEGLIGIBLE = 0.02
"""A kind of pairs of which fewer get a yes is not looked for."""


Learned = tuple[Evidence, NDArray[np.float64], NoAnswers, SurveyedPairs, NDArray[np.float64]]
"""The fields of a posterior but for the view."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The probability of a yes for any pair of one state."""

    view: View
    evidence: Evidence
    acceptance: NDArray[np.float64]  # (kinds,)
    no_answers: NoAnswers
    near: SurveyedPairs
    near_stand_for: NDArray[np.float64]

    @classmethod
    def of(cls, view: View) -> Posterior:
        """Learn what looks are worth from pairs that are near in time and from pairs anywhere."""
        # A view that kept itself would stay in memory, mosaic and all, until Python looks for such circles.
        return cls(view, *view.once(cls._learn))

    @classmethod
    def _learn(cls, view: View) -> Learned:
        near, stand_for = near_pairs(view.frames)
        far = far_pairs(view.frames)
        surveyed = SurveyedPairs.of(view, np.concatenate([near, far]))
        total = view.frames * (view.frames - 1) / 2 - stand_for.sum()
        weight = np.append(stand_for, np.full(len(far), max(total, 0.0) / max(len(far), 1)))
        within = surveyed.within.copy()
        within[view.is_linked(surveyed.pairs)] = 1.0
        evidence = Evidence.learn(surveyed.external, weight, kinds(within))
        refused = SurveyedPairs.of(view, view.refused)
        accepted = acceptance(view.estimate.system, update(kinds(refused.within), evidence.of(refused.external)))
        no_answers = NoAnswers(view.covariance, view.refused, refused.centres)
        return evidence, accepted, no_answers, surveyed[: len(near)], stand_for

    def of_surveyed(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return the probability (n,) of pairs that were looked at; of those that were answered, what is known."""
        prior = self._discounted(surveyed)
        probability: NDArray[np.float64] = np.sum(
            update(prior, self.evidence.of(surveyed.external)) * self.acceptance, axis=1
        )
        probability[self.view.is_settled(surveyed.pairs)] = 0.0
        probability[self.view.is_linked(surveyed.pairs)] = 1.0
        return probability

    def _discounted(self, surveyed: SurveyedPairs) -> NDArray[np.float64]:
        """Return how probably pairs are of each kind (n, kinds) by their place, given what was refused beside them.

        What is less likely to be accepted is as much more likely to be what would not be.
        """
        prior = kinds(surveyed.within)
        accepted = self.acceptance > NEGLIGIBLE
        for kind in np.flatnonzero(accepted[:-1]):
            prior[:, kind] *= self.no_answers.discount(surveyed, REACHES[kind], self.acceptance[kind])
        rest, total = prior[:, ~accepted], prior.sum(axis=1, keepdims=True)
        unlike = rest.sum(axis=1, keepdims=True)
        prior[:, ~accepted] = rest * (1.0 + (1.0 - total) / np.maximum(unlike, FAINTEST))
        prior[:, -1:] += (1.0 - total) * (unlike <= FAINTEST)
        return prior

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the probability of pairs (n, 2), i ≤ j."""
        probability = np.ones(len(pairs))
        apart = pairs[:, 0] != pairs[:, 1]
        probability[apart] = self.of_surveyed(SurveyedPairs.of(self.view, pairs[apart]))
        return probability

    def reasons(self, pair: Pair) -> dict[str, float]:
        """Say of a pair how likely it is to overlap, by place alone and by looks alone, and how well it is known."""
        surveyed = SurveyedPairs.of(self.view, np.array([[pair.i, pair.j]]))
        return {
            "overlap": float(self.of_surveyed(surveyed)[0]),
            "position": float(surveyed.position[0]),
            "external": float(surveyed.external[0]),
            "spread_px": float(np.sqrt(surveyed.centres.spread[0])),
        }


def kinds(within: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how probably pairs (n, 5) overlap, share a good part or a rim, are neighbours, or are apart."""
    beyond = np.diff(within, axis=1, prepend=0.0, append=1.0)
    return np.maximum(beyond, 0.0)
