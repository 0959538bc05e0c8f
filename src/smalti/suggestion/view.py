"""What a strategy sees of the state it is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.centres import Centres
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.overlap.external import ExternalModel, PairwiseModel, pairwise
from smalti.records import PairNumbers, Transforms, pair_key

CLOSEST_ASKED = 2
"""Candidates lie at least this many frames apart: consecutive ones are the chain's business."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenUp:
    """Parts of the mosaic that only guesses join and that were refused often enough."""

    part: NDArray[np.int64]  # (N,): the part of every frame
    given_up: NDArray[np.bool_]  # of every part

    def concerns(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell of pairs whether they would join such a part to another."""
        first, second = self.part[i], self.part[j]
        concerned: NDArray[np.bool_] = (first != second) & (self.given_up[first] | self.given_up[second])
        return concerned


class View:
    """An adjustment, what else is known, and the pairs that may still be asked.

    Everything is computed when first looked at: a strategy pays for what it uses.
    """

    def __init__(
        self,
        covariance: LocalCovariance,
        external: ExternalModel,
        settled: PairNumbers,
        given_up: GivenUp | None = None,
    ) -> None:
        """`settled` (n, 2) are the pairs that were answered, however."""
        self.covariance = covariance
        self.external = external
        self.settled = settled
        self.given_up = given_up

    @property
    def adjustment(self) -> Adjustment:
        """The links and the mosaic."""
        return self.covariance.adjustment

    @property
    def frames(self) -> int:
        """N."""
        return self.adjustment.frames

    def may_be_asked(self, pairs: PairNumbers) -> NDArray[np.bool_]:
        """Tell of pairs (n, 2), i < j, whether each is a candidate."""
        i, j = pairs.T
        key = pair_key(i, j)
        at = np.minimum(np.searchsorted(self._known, key), len(self._known) - 1)
        allowed: NDArray[np.bool_] = (j - i >= CLOSEST_ASKED) & (self._known[at] != key)
        return allowed if self.given_up is None else allowed & ~self.given_up.concerns(i, j)

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """(N, N): the pairs i < j that may be asked, for those who look at all pairs."""
        allowed = np.zeros((self.frames, self.frames), dtype=np.bool_)
        i, j = np.triu_indices(self.frames, CLOSEST_ASKED)
        allowed[i, j] = self.may_be_asked(np.column_stack([i, j]))
        return allowed

    @property
    def mosaic_from_frame(self) -> Transforms:
        """(N, 2, 3): the mosaic that asks: the linear one, or the one that judges new links."""
        return self.covariance.mosaic_from_frame

    @property
    def centres(self) -> Centres:
        """The distribution of every frame's centre in every other frame, for those who look at all pairs."""
        return self.covariance.centres

    @cached_property
    def looks(self) -> PairwiseModel:
        """P^ext, pair by pair."""
        return pairwise(self.external)

    @cached_property
    def external_probabilities(self) -> NDArray[np.float64]:
        """P^ext (N, N), for those who look at all pairs."""
        return self.external.probabilities()

    @cached_property
    def _known(self) -> NDArray[np.int64]:
        """The pairs that are linked or settled, as sorted numbers."""
        return np.unique(pair_key(*np.concatenate([self.adjustment.ends, self.settled]).T))
