"""External models of overlap: the interfaces, a model without information, and a given matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from smalti.errors import ModelError
from smalti.overlap.position_sensor import PositionSensor
from smalti.overlap.threshold_scan import Batches, UpperMatrix, rounded_up, take
from smalti.records import PairNumbers

__all__ = [
    "ExternalModel",
    "FixedProbabilities",
    "NoExternalModel",
    "PairwiseModel",
    "PoolableModel",
    "PositionSensor",
    "combine",
    "pairwise",
]

ROWS_AT_ONCE = 256


class ExternalModel(Protocol):
    """Predicts overlap from something other than registration (P^ext)."""

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability of overlap of all pairs (N, N), symmetric."""
        ...

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> ExternalModel:
        """Return the model trained on these pairs; a model that cannot learn returns itself."""
        ...


@runtime_checkable
class PairwiseModel(ExternalModel, Protocol):
    """An external model that computes single pairs without computing all."""

    @property
    def frames(self) -> int:
        """N."""
        ...

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return P^ext of the given pairs (n, 2), in double precision."""
        ...

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield every pair i < j whose P^ext reaches least[I, J], with an upper bound of its P^ext.

        `starts` (M + 1,) cuts the frames into M blocks of consecutive frames; I ≤ J are the blocks of i and j. `least`
        (M, M) ranges from 0, for all pairs, to inf, for none. The bound is at most 1e-4 above the exact value. Pairs
        that miss their level by no more than that may be yielded too. The order is by pair of blocks, then i, then j. A
        batch has at most `PAIRS_AT_ONCE` pairs.
        """
        ...


@runtime_checkable
class PoolableModel(ExternalModel, Protocol):
    """An external model whose evidence can be pooled over neighbouring frames."""

    def pooled(self, neighbours: csr_array) -> ExternalModel:
        """Return the model pooled over each frame and its neighbours; `neighbours` (N, N) is 1 where they are."""
        ...


def pairwise(model: ExternalModel) -> PairwiseModel:
    """Return the model itself if it computes single pairs, else a wrapper around its matrix."""
    return model if isinstance(model, PairwiseModel) else _MatrixModel(model)


def combine(position: NDArray[np.float64], external: NDArray[np.float64], base_rate: float) -> NDArray[np.float64]:
    """Return the probability of overlap (n,) of pairs: P^pos is the prior, P^ext the evidence against the base rate."""
    apart = (1.0 - position) * (1.0 - external) * base_rate
    together = position * external * (1.0 - base_rate)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(together / (together + apart))


@dataclass(frozen=True, slots=True)
class NoExternalModel:
    """No information: P^ext is 1 for every pair."""

    frames: int

    def probabilities(self) -> NDArray[np.float64]:
        """Return 1 for every pair."""
        return np.ones((self.frames, self.frames))

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return 1 for every pair."""
        return np.ones(len(pairs))

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield all pairs of the blocks whose level is at most 1."""
        first, second = np.nonzero(np.triu(least <= 1.0))
        # A matrix view of one number.
        ones = np.broadcast_to(np.float32(1.0), (self.frames, self.frames))
        return take(ones, np.zeros(least.shape, dtype=np.float32), starts, first, second)

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> NoExternalModel:
        """Return itself."""
        return self


@dataclass(frozen=True, eq=False)
class FixedProbabilities:
    """A given matrix of probabilities."""

    matrix: NDArray[np.float64]

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ModelError(f"overlap probabilities have shape {matrix.shape}, expected (N, N)")
        rows = [slice(n, n + ROWS_AT_ONCE) for n in range(0, len(matrix), ROWS_AT_ONCE)]
        if not all(((matrix[some] >= 0) & (matrix[some] <= 1)).all() for some in rows):
            raise ModelError("overlap probabilities must lie between 0 and 1")
        if not all(np.allclose(matrix[some], matrix[:, some].T, rtol=0, atol=1e-9) for some in rows):
            raise ModelError("overlap probabilities must be symmetric: entry (i, j) and (j, i) are one pair")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    @property
    def frames(self) -> int:
        """N."""
        return len(self.matrix)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the matrix."""
        return self.matrix

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the entries of the matrix."""
        return self.matrix[pairs[:, 0], pairs[:, 1]]

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs whose P^ext reaches least[I, J], by pair of blocks, then i, then j."""
        return self._upper.reaching(least, starts)

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> FixedProbabilities:
        """Return itself."""
        return self

    @cached_property
    def _upper(self) -> UpperMatrix:
        return _upper_matrix(self.matrix)


class _MatrixModel:
    """Wraps a user's model: its matrix is computed once and read pair by pair."""

    def __init__(self, model: ExternalModel) -> None:
        matrix = np.asarray(model.probabilities(), dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ModelError(f"overlap probabilities have shape {matrix.shape}, expected (N, N)")
        self._model = model
        self._matrix = matrix

    @property
    def frames(self) -> int:
        return len(self._matrix)

    def probabilities(self) -> NDArray[np.float64]:
        return self._matrix

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        return self._matrix[pairs[:, 0], pairs[:, 1]]

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        return self._upper.reaching(least, starts)

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> PairwiseModel:
        return pairwise(self._model.learn(overlapping, apart))

    @cached_property
    def _upper(self) -> UpperMatrix:
        return _upper_matrix(self._matrix)


def _upper_matrix(matrix: NDArray[np.float64]) -> UpperMatrix:
    upper = np.empty(matrix.shape, dtype=np.float32)
    for n in range(0, len(matrix), ROWS_AT_ONCE):
        upper[n : n + ROWS_AT_ONCE] = rounded_up(matrix[n : n + ROWS_AT_ONCE])
    return UpperMatrix(upper)
