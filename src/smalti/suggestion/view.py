"""What a strategy sees of the state it is asked about."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.centres import Centres
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.overlap.external import ExternalModel
from smalti.records import Pair, Transforms

CLOSEST_ASKED = 2
"""Candidates lie at least this many frames apart: consecutive ones are the chain's business."""


class View:
    """An adjustment, what else is known, and the pairs that may still be asked.

    Everything is computed when first looked at: a strategy pays for what it uses.
    """

    def __init__(
        self,
        covariance: LocalCovariance,
        external: ExternalModel,
        settled: frozenset[Pair],
        hopeless: NDArray[np.bool_] | None = None,
    ) -> None:
        """`settled` are the pairs that were answered, however; `hopeless` (N, N) are not to be asked."""
        self.hopeless = hopeless
        self.covariance = covariance
        self.external = external
        self.settled = settled

    @property
    def adjustment(self) -> Adjustment:
        """The links and the mosaic."""
        return self.covariance.adjustment

    @property
    def frames(self) -> int:
        """N."""
        return self.adjustment.frames

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """(N, N): the pairs i < j that may be asked."""
        numbers = np.arange(self.frames)
        allowed: NDArray[np.bool_] = numbers[None] - numbers[:, None] >= CLOSEST_ASKED
        for pair in (*self.adjustment.links, *self.settled):
            allowed[pair.i, pair.j] = False
        return allowed if self.hopeless is None else allowed & ~self.hopeless

    @property
    def mosaic_from_frame(self) -> Transforms:
        """(N, 2, 3): the mosaic that asks: the linear one, or the one that judges new links."""
        return self.covariance.mosaic_from_frame

    @property
    def centres(self) -> Centres:
        """The distribution of every frame's centre in every other frame."""
        return self.covariance.centres

    @cached_property
    def external_probabilities(self) -> NDArray[np.float64]:
        """P^ext (N, N)."""
        return self.external.probabilities()
