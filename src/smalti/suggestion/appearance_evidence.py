"""What appearance says about overlap: pooled over neighbouring frames, as a likelihood ratio, for the pair search.

Keypoints that are found in one frame are missed in the next, so that two frames of the same place may look less alike
than two of different ones. Neighbours in time show much the same; what they show together is known better.

P^ext is what the external model says; whether it can be trusted is another question. So it is taken for a mere score,
and its likelihood ratio is learned, the mosaic being the judge: a model that knows nothing has a ratio of one
everywhere, one that errs in half of what it is sure of a ratio that says so.

Frames that share no more than a rim, or are neighbours, look alike too. If they are the alternative, looks decide
little; so each of these kinds has a ratio of its own, against frames that are far apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, logit

from smalti.compiled import compiled
from smalti.engine.estimate import Estimate
from smalti.overlap.external_model import ExternalModel, PairwiseModel, PoolableModel
from smalti.overlap.threshold_scan import Batches
from smalti.records import PairNumbers

REACH = 0.5
"""Of a frame's size: neighbours count until the camera has moved so far, and half of what they show is new."""

MOST_NEIGHBOURS = 4
"""On either side: where the camera is slow, some of those within reach, evenly spread."""


def pooled(external: ExternalModel, first: Estimate, chain: PairNumbers) -> ExternalModel:
    """Return an external model pooled over neighbouring frames of the chain; the model itself where it cannot pool."""
    if not isinstance(external, PoolableModel):
        return external
    reach = frames_in_reach(first)
    return external.pooled(neighbours(first.frames, chain, reach)) if reach else external


def frames_in_reach(first: Estimate) -> int:
    """Return after how many frames the camera has moved so far, as links of consecutive frames tell; 0 if after one."""
    system, outline = first.system, first.outline
    offset = np.abs(system.offsets[system.steps]) * outline.unit
    step = np.minimum((offset / (outline.width, outline.height)).max(axis=1), 1.0)
    if not len(step) or float(step.mean()) > REACH:
        return 0
    return round(REACH / max(float(step.mean()), 1.0 / first.frames))


def neighbours(frames: int, chain: PairNumbers, reach: int) -> csr_array:
    """Return a matrix (N, N): one where two frames are at most so far apart in time and joined by the chain.

    As many before a frame as after it, so that what is seen around it is seen about its place.
    """
    joined = np.zeros(frames, dtype=np.bool_)
    joined[chain[np.diff(chain, axis=1)[:, 0] == 1, 1]] = True
    stretch = np.cumsum(~joined)
    first = np.arange(frames)
    ends = [(first, first)]
    for apart in np.unique(np.rint(np.linspace(0, reach, min(reach, MOST_NEIGHBOURS) + 1)).astype(np.int64))[1:]:
        middle = first[apart : frames - apart]
        middle = middle[stretch[middle - apart] == stretch[middle + apart]]
        ends += [(middle, middle - apart), (middle, middle + apart)]
    rows, columns = (np.concatenate(side) for side in zip(*ends, strict=True))
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(frames, frames))


STEPS = 12
"""Of the score, each with a ratio of its own."""

DOUBT = 2.0
"""Pairs of either kind that are imagined to have been seen, evenly over all steps."""

MOST_SEEN = 2000.0
"""As so many pairs of a kind count all that are seen."""

STRONGEST = 1000.0
"""Ratio: looks are never trusted more."""

ROUNDS = 10
"""Of expectation and maximisation."""

CLOSEST_TO_CERTAIN = 1e-6

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Likelihood ratios for every step of the score: of some kinds of pairs, against those of the last kind."""

    edges: NDArray[np.float64]  # (n - 1,) of log odds, ascending
    ratios: NDArray[np.float64]  # (n, kinds), the last kind's being one

    @classmethod
    def nothing(cls, kinds: int) -> Evidence:
        """Know nothing yet."""
        return cls(np.empty(0), np.ones((1, kinds)))

    @classmethod
    def learn(
        cls,
        external: NDArray[np.float64],
        weight: NDArray[np.float64],
        prior: NDArray[np.float64],
    ) -> Evidence:
        """Learn from P^ext (n,) of pairs that stand for so many (n,) and are of each kind with some probability (n, k).

        Pairs are taken to be of a kind as probably as their looks, as far as these are understood, make likely; what
        looks are worth follows from that, and so on.
        """
        kinds = prior.shape[1]
        if not prior.any(axis=0).all():
            return cls.nothing(kinds)
        score = _score(external)
        order = np.argsort(score, kind="stable")
        # Steps between which the first kind and the last are spread evenly.
        counted = weight[:, None] * prior[:, [0, -1]]
        reached = np.cumsum((counted / counted.sum(axis=0)).sum(axis=1)[order]) / 2.0
        edges = np.unique(score[order][np.searchsorted(reached, np.arange(1, STEPS) / STEPS)])
        edges = edges[edges > score.min()]  # no step without pairs
        step = np.searchsorted(edges, score, side="right")
        return cls(edges, _learn_ratios(step, weight, prior, np.ones((len(edges) + 1, kinds))))

    def of(self, external: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the likelihood ratios (n, kinds) of P^ext (n,)."""
        ratios: NDArray[np.float64] = self.ratios[self.step_of(external)]
        return ratios

    def step_of(self, external: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of the step (n,) of P^ext."""
        return np.searchsorted(self.edges, _score(external), side="right")


def _score(external: NDArray[np.float64]) -> NDArray[np.float64]:
    score: NDArray[np.float64] = logit(np.clip(external, CLOSEST_TO_CERTAIN, 1.0 - CLOSEST_TO_CERTAIN))
    return score


def update(prior: NDArray[np.float64], ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of every kind (n, k) after evidence with these likelihood ratios."""
    joint = prior * ratios
    updated: NDArray[np.float64] = joint / np.maximum(joint.sum(axis=1, keepdims=True), TINY)
    return updated


@compiled
def _learn_ratios(
    step: NDArray[np.int64],
    weight: NDArray[np.float64],
    prior: NDArray[np.float64],
    ratios: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the ratios (steps, k) after some rounds, given to begin with."""
    steps, kinds = ratios.shape
    accepted = np.empty(kinds)
    for _ in range(ROUNDS):
        shares, squares = np.zeros((steps, kinds)), np.zeros(kinds)
        for n in range(len(step)):
            likely = 0.0
            for kind in range(kinds):
                accepted[kind] = prior[n, kind] * ratios[step[n], kind]
                likely += accepted[kind]
            for kind in range(kinds):
                counted = weight[n] * accepted[kind] / max(likely, TINY)
                shares[step[n], kind] += counted
                squares[kind] += counted * counted
        for kind in range(kinds):
            total = shares[:, kind].sum()
            # As many as if all counted the same.
            seen = min(total * total / max(squares[kind], TINY), MOST_SEEN)
            shares[:, kind] = (seen * shares[:, kind] / max(total, TINY) + DOUBT / steps) / (seen + DOUBT)
        for n in range(steps):
            for kind in range(kinds):
                ratios[n, kind] = min(max(shares[n, kind] / shares[n, kinds - 1], 1.0 / STRONGEST), STRONGEST)
    return ratios


ROUNDED_UP = 1e-4
"""By so much at most a bound of P^ext is above it."""


@dataclass(frozen=True, slots=True)
class WeighedAppearance:
    """The likelihood ratio of overlapping pairs, as a share of the largest, in the place of P^ext."""

    appearance: PairwiseModel
    evidence: Evidence

    @property
    def frames(self) -> int:
        """N."""
        return self.appearance.frames

    def probabilities(self) -> NDArray[np.float64]:
        """Return the shares of all pairs (N, N)."""
        probabilities = self.appearance.probabilities()
        return self._share(probabilities.ravel()).reshape(probabilities.shape)

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the shares of pairs (n, 2)."""
        return self._share(self.appearance.of_pairs(pairs))

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs whose share reaches least[I, J], by pair of blocks, then i, then j."""
        shares = self.evidence.ratios[:, 0] / self.evidence.ratios[:, 0].max()
        # The first step that reaches a level, whatever those above it do.
        reached = np.maximum.accumulate(shares)
        lowest = np.append(0.0, expit(self.evidence.edges))
        step = np.searchsorted(reached, least)
        needed = np.where(step < len(shares), lowest[np.minimum(step, len(shares) - 1)], np.inf)
        for pairs, bound in self.appearance.pairs_above(needed, starts):
            yield pairs, np.maximum(self._share(bound), self._share(np.maximum(bound - ROUNDED_UP, 0.0)))

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> WeighedAppearance:
        """Return itself: what looks are worth is learned elsewhere."""
        return self

    def _share(self, external: NDArray[np.float64]) -> NDArray[np.float64]:
        share: NDArray[np.float64] = self.evidence.of(external)[:, 0] / self.evidence.ratios[:, 0].max()
        return share
