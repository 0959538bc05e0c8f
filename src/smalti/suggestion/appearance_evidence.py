"""Turn appearance into evidence of overlap.

1. `pooled` pools an external model over neighbouring frames. Keypoints that are found in one frame are missed in the
next, so that two frames of the same place may look less alike than two of different places. Neighbours in time show
nearly the same, and together they describe the place better.
2. `Evidence` learns likelihood ratios. P^ext of the external model is only a score here. The ratio of each score is
learned with the mosaic as reference: an uninformative model gets a ratio of one everywhere, and a model that is often
wrong when it is sure gets a smaller ratio there. Frames that share only a rim, and neighbours, look alike too. Against
them appearance decides little. So each of these kinds has a ratio of its own, against frames that are far apart.
3. `WeighedAppearance` gives these ratios to the pair search in place of P^ext.
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
"""Neighbours are pooled until the camera has moved by this share of a frame's size: half of what they show is new."""

MOST_NEIGHBOURS = 4
"""Most neighbours on either side. Where the camera is slow, they are spread evenly over those in reach."""

STEPS = 12
"""Steps of the score, each with a ratio of its own."""

PSEUDO_COUNT = 2.0
"""Prior pseudo-count of pairs of each kind, spread evenly over all steps."""

LARGEST_COUNT = 2000.0
"""The effective number of pairs of a kind is limited to this."""

STRONGEST = 1000.0
"""Largest likelihood ratio."""

ROUNDS = 10
"""Rounds of expectation and maximisation."""

CLOSEST_TO_CERTAIN = 1e-6
"""P^ext is clipped to this distance from 0 and 1."""

ROUNDED_UP = 1e-4
"""A bound of P^ext exceeds P^ext by at most this."""

TINY = float(np.finfo(np.float64).tiny)


def pooled(external: ExternalModel, first: Estimate, chain: PairNumbers) -> ExternalModel:
    """Return an external model pooled over neighbouring frames of the chain; the same model if it cannot pool."""
    if not isinstance(external, PoolableModel):
        return external
    reach = frames_in_reach(first)
    return external.pooled(neighbours(first.frames, chain, reach)) if reach else external


def frames_in_reach(first: Estimate) -> int:
    """Return how many frames the camera takes to move by `REACH`, by the chain's links; 0 if less than one."""
    system, outline = first.system, first.outline
    offset = np.abs(system.offsets[system.steps]) * outline.unit
    step = np.minimum((offset / (outline.width, outline.height)).max(axis=1), 1.0)
    if not len(step) or float(step.mean()) > REACH:
        return 0
    return round(REACH / max(float(step.mean()), 1.0 / first.frames))


def neighbours(frames: int, chain: PairNumbers, reach: int) -> csr_array:
    """Return a matrix (N, N): 1 where two frames are at most `reach` frames apart and joined by the chain.

    Each frame has as many neighbours before it as after it, so that the pooled appearance is centred on the frame.
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


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Likelihood ratios of every step of the score: of each kind of pair against the last kind."""

    edges: NDArray[np.float64]  # (n - 1,) of log odds, ascending
    ratios: NDArray[np.float64]  # (n, kinds); the last kind's is 1

    @classmethod
    def nothing(cls, kinds: int) -> Evidence:
        """Return evidence that has learned nothing: every ratio is 1."""
        return cls(np.empty(0), np.ones((1, kinds)))

    @classmethod
    def learn(
        cls,
        external: NDArray[np.float64],
        weight: NDArray[np.float64],
        prior: NDArray[np.float64],
    ) -> Evidence:
        """Learn the ratios from P^ext (n,) of pairs, how many pairs each stands for (n,), and its kinds' probability
        (n, k).

        This is expectation and maximisation: the ratios of this round give the probability of each pair's kind, and
        these probabilities give the ratios of the next round.
        """
        kinds = prior.shape[1]
        if not prior.any(axis=0).all():
            return cls.nothing(kinds)
        score = _score(external)
        order = np.argsort(score, kind="stable")
        # The steps divide the first and the last kind evenly.
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
    """Return the ratios (steps, k) after some rounds that start from these; the array is overwritten."""
    steps, kinds = ratios.shape
    joint = np.empty(kinds)
    for _ in range(ROUNDS):
        shares, squares = np.zeros((steps, kinds)), np.zeros(kinds)
        for n in range(len(step)):
            total_joint = 0.0
            for kind in range(kinds):
                joint[kind] = prior[n, kind] * ratios[step[n], kind]
                total_joint += joint[kind]
            for kind in range(kinds):
                counted = weight[n] * joint[kind] / max(total_joint, TINY)
                shares[step[n], kind] += counted
                squares[kind] += counted * counted
        for kind in range(kinds):
            total = shares[:, kind].sum()
            # Effective number of pairs: as many of equal weight would give the same variance.
            effective = min(total * total / max(squares[kind], TINY), LARGEST_COUNT)
            for n in range(steps):
                share = effective * shares[n, kind] / max(total, TINY)
                shares[n, kind] = (share + PSEUDO_COUNT / steps) / (effective + PSEUDO_COUNT)
        for n in range(steps):
            for kind in range(kinds):
                ratios[n, kind] = min(max(shares[n, kind] / shares[n, kinds - 1], 1.0 / STRONGEST), STRONGEST)
    return ratios


@dataclass(frozen=True, slots=True)
class WeighedAppearance:
    """The likelihood ratio of overlapping pairs as a share of the largest ratio; the pair search uses it for P^ext."""

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
        # The first step that reaches a level. Later steps may fall below it again.
        reached = np.maximum.accumulate(shares)
        lowest = np.append(0.0, expit(self.evidence.edges))
        step = np.searchsorted(reached, least)
        needed = np.where(step < len(shares), lowest[np.minimum(step, len(shares) - 1)], np.inf)
        for pairs, bound in self.appearance.pairs_above(needed, starts):
            yield pairs, np.maximum(self._share(bound), self._share(np.maximum(bound - ROUNDED_UP, 0.0)))

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> WeighedAppearance:
        """Return itself: `Evidence` learns the ratios."""
        return self

    def _share(self, external: NDArray[np.float64]) -> NDArray[np.float64]:
        share: NDArray[np.float64] = self.evidence.of(external)[:, 0] / self.evidence.ratios[:, 0].max()
        return share
