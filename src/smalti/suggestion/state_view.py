"""The state as a strategy sees it: mosaic, answers, external model, and the pairs that may still be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from smalti.engine.covariance import Covariance
from smalti.engine.estimate import Estimate
from smalti.engine.relative_position import Centres
from smalti.geometry.outline import Outline
from smalti.overlap.external_model import ExternalModel, PairwiseModel, pairwise
from smalti.records import Homographies, PairNumbers, pair_key

T = TypeVar("T")

NO_PAIRS: PairNumbers = np.empty((0, 2), dtype=np.int64)

CLOSEST_ASKED = 2
"""Candidates are at least this many frames apart: consecutive frames belong to the chain."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenUp:
    """The parts of the sequence, and which of them are given up: too small, or refused often enough."""

    part: NDArray[np.int64]  # (N,): the part of every frame
    given_up: NDArray[np.bool_]  # of every part

    def concerns(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether pairs would join a part that is given up to another part."""
        first, second = self.part[i], self.part[j]
        concerned: NDArray[np.bool_] = (first != second) & (self.given_up[first] | self.given_up[second])
        return concerned


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """The answers so far, as pairs (n, 2)."""

    settled: PairNumbers = field(default_factory=NO_PAIRS.copy)  # the chain and all pairs not to be asked again
    refused: PairNumbers = field(default_factory=NO_PAIRS.copy)  # of these: asked, but not answered yes
    overlapping: PairNumbers = field(default_factory=NO_PAIRS.copy)  # for the external model to learn from
    apart: PairNumbers = field(default_factory=NO_PAIRS.copy)  # answered no
    failed: PairNumbers = field(default_factory=NO_PAIRS.copy)  # about which the matcher could not tell
    decided: PairNumbers = field(default_factory=NO_PAIRS.copy)  # the chain and all pairs answered yes or no
    matched: int = 0  # pairs that the matcher was asked about and matched


class View:
    """A mosaic, the answers, and the pairs that may still be asked.

    Properties are computed on first use, so that a strategy pays only for what it uses.
    """

    def __init__(
        self,
        estimate: Estimate,
        untrained: ExternalModel,
        answered: Answered,
        given_up: GivenUp | None = None,
        only: PairNumbers | None = None,
        pooled: ExternalModel | None = None,
        *,
        conservative: bool = False,
    ) -> None:
        """Take the external model before any answer, `untrained`, and the same pooled over neighbouring frames,
        `pooled`.

        Only pairs in `only` (n, 2) may be asked. A `conservative` view uses the covariance that doubts unconfirmed
        links.
        """
        self.estimate = estimate
        self._conservative = conservative
        self._untrained = untrained
        self._pooled = untrained if pooled is None else pooled
        self.answered = answered
        self.given_up = given_up
        self.only = only
        self._kept: dict[Callable[[View], object], object] = {}

    def once(self, compute: Callable[[View], T]) -> T:
        """Return what a function computes of this state. It is computed once."""
        if compute not in self._kept:
            self._kept[compute] = compute(self)
        return cast(T, self._kept[compute])

    @property
    def settled(self) -> PairNumbers:
        """The answered pairs (n, 2), whatever the answer, and the chain."""
        return self.answered.settled

    @cached_property
    def external(self) -> ExternalModel:
        """The external model, trained on the answers."""
        return self._untrained.learn(self.answered.overlapping, self.answered.apart)

    @cached_property
    def pooled(self) -> PairwiseModel:
        """The external model before any answer, pooled over neighbouring frames, pair by pair."""
        return pairwise(self._pooled)

    @property
    def covariance(self) -> Covariance:
        """The covariance of the frames' relative positions."""
        return self.estimate.conservative_covariance if self._conservative else self.estimate.covariance

    @property
    def linked(self) -> PairNumbers:
        """(L, 2): the pairs whose links are accepted, in their order."""
        return self.estimate.system.ends

    @property
    def part(self) -> NDArray[np.int64]:
        """(N,): the mosaic of every frame."""
        return self.estimate.part

    @property
    def frames(self) -> int:
        """N."""
        return self.estimate.frames

    @property
    def outline(self) -> Outline:
        """The outline of every frame."""
        return self.estimate.outline

    def are_joined(self, pairs: PairNumbers) -> NDArray[np.bool_]:
        """Return whether the frames of pairs (n, 2) are on one mosaic."""
        joined: NDArray[np.bool_] = self.part[pairs[:, 0]] == self.part[pairs[:, 1]]
        return joined

    @cached_property
    def extent(self) -> float:
        """The area that the mosaics cover at least, in frames."""
        return self.estimate.extent

    def is_linked(self, pairs: PairNumbers) -> NDArray[np.bool_]:
        """Return whether pairs (n, 2) have a link."""
        return _among(pair_key(*pairs.T), pair_key(*self.linked.T))

    def is_settled(self, pairs: PairNumbers) -> NDArray[np.bool_]:
        """Return whether pairs (n, 2) were answered, whatever the answer."""
        return _among(pair_key(*pairs.T), np.sort(pair_key(*self.settled.T)))

    def is_decided(self, pairs: PairNumbers) -> NDArray[np.bool_]:
        """Return whether pairs (n, 2) were answered yes or no, or belong to the chain."""
        return _among(pair_key(*pairs.T), np.sort(pair_key(*self.answered.decided.T)))

    def may_be_asked(self, pairs: PairNumbers) -> NDArray[np.bool_]:
        """Return whether pairs (n, 2), i < j, may be asked."""
        i, j = pairs.T
        key = pair_key(i, j)
        allowed: NDArray[np.bool_] = (j - i >= CLOSEST_ASKED) & ~_among(key, self._known)
        if self.only is not None:
            allowed &= np.isin(key, pair_key(*self.only.T))
        return allowed if self.given_up is None else allowed & ~self.given_up.concerns(i, j)

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """(N, N): the pairs i < j that may be asked, for strategies that evaluate all pairs."""
        allowed = np.zeros((self.frames, self.frames), dtype=np.bool_)
        i, j = np.triu_indices(self.frames, CLOSEST_ASKED)
        allowed[i, j] = self.may_be_asked(np.column_stack([i, j]))
        return allowed

    @property
    def mosaic_from_frame(self) -> Homographies:
        """(N, 3, 3): the maps of the mosaic, the same that are exported and rendered."""
        return self.estimate.mosaic_from_frame

    @property
    def centres(self) -> Centres:
        """The distribution of every frame's centre in every other frame, for strategies that evaluate all pairs."""
        return self.covariance.centres

    @cached_property
    def appearance(self) -> PairwiseModel:
        """P^ext, pair by pair."""
        return pairwise(self.external)

    @cached_property
    def external_probabilities(self) -> NDArray[np.float64]:
        """P^ext (N, N), for strategies that evaluate all pairs."""
        return self.external.probabilities()

    @cached_property
    def _known(self) -> NDArray[np.int64]:
        """The pairs that are linked or settled, as sorted numbers."""
        return np.unique(pair_key(*np.concatenate([self.linked, self.settled]).T))


def _among(keys: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether keys (n,) are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(keys), dtype=np.bool_)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    return found
