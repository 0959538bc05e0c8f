"""What else is known about overlap than the mosaic: one interface, four models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.errors import ModelError
from smalti.geometry.outline import Outline
from smalti.overlap.rectangle import rectangle_probability
from smalti.records import PairNumbers


class ExternalModel(Protocol):
    """Predicts overlap from something other than registration (P^ext)."""

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability of overlap of all pairs (N, N), symmetric."""
        ...

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> ExternalModel:
        """Return the model trained on these pairs; a model that cannot learn returns itself."""
        ...


@dataclass(frozen=True, slots=True)
class NoExternalModel:
    """Knows nothing: every pair may overlap."""

    frames: int

    def probabilities(self) -> NDArray[np.float64]:
        """Return one for every pair."""
        return np.ones((self.frames, self.frames))

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> NoExternalModel:
        """Return itself."""
        return self


@dataclass(frozen=True, slots=True, eq=False)
class FixedProbabilities:
    """A matrix given from outside."""

    matrix: NDArray[np.float64]

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ModelError(f"overlap probabilities have shape {matrix.shape}, expected (N, N)")
        if not ((matrix >= 0) & (matrix <= 1)).all():
            raise ModelError("overlap probabilities must lie between 0 and 1")
        if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-9):
            raise ModelError("overlap probabilities must be symmetric: entry (i, j) and (j, i) are one pair")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the matrix."""
        return self.matrix

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> FixedProbabilities:
        """Return itself."""
        return self


class PositionSensor:
    """A sensor that gives every frame's position with its own covariance, such as GPS or a tracker.

    `positions` (N, 2) and `covariances` (N, 2, 2) are in the sensor's unit; `footprint` is the size of a frame
    there, and `headings` (N,) the angle from the sensor's first axis to each frame's x axis, in radians.
    """

    def __init__(
        self,
        positions: NDArray[np.float64],
        covariances: NDArray[np.float64],
        footprint: tuple[float, float],
        headings: NDArray[np.float64] | None = None,
    ) -> None:
        positions = np.asarray(positions, dtype=np.float64)
        covariances = np.asarray(covariances, dtype=np.float64)
        if positions.ndim != 2 or positions.shape[1] != 2 or not np.isfinite(positions).all():
            raise ModelError(f"sensor positions must be finite and of shape (N, 2), got {positions.shape}")
        if covariances.shape not in ((2, 2), (len(positions), 2, 2)) or not np.isfinite(covariances).all():
            raise ModelError(
                f"sensor covariances must be finite and of shape (2, 2) or ({len(positions)}, 2, 2), "
                f"got {covariances.shape}"
            )
        covariances = np.broadcast_to(covariances, (len(positions), 2, 2))
        angles = np.zeros(len(positions)) if headings is None else np.asarray(headings, dtype=np.float64)
        if angles.shape != (len(positions),):
            raise ModelError(f"headings have shape {angles.shape}, expected ({len(positions)},)")
        self._probabilities = _sensor_probabilities(positions, covariances, footprint, angles)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability that the centre of one frame lies in the other, mean of both directions."""
        return self._probabilities

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> PositionSensor:
        """Return itself."""
        return self


def _sensor_probabilities(
    positions: NDArray[np.float64],
    covariances: NDArray[np.float64],
    footprint: tuple[float, float],
    headings: NDArray[np.float64],
) -> NDArray[np.float64]:
    width, height = footprint
    outline = Outline(-width / 2, -height / 2, width / 2, height / 2)
    cosine, sine = np.cos(headings), np.sin(headings)
    frame_from_sensor = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], -2)
    offset = positions[:, None] - positions[None]  # [i, j]: from j to i
    in_j = np.einsum("jab,ijb->ija", frame_from_sensor, offset)
    cov = np.einsum(
        "jab,ijbc,jdc->ijad", frame_from_sensor, covariances[:, None] + covariances[None], frame_from_sensor
    )
    packed = np.stack([cov[..., 0, 0], cov[..., 0, 1], cov[..., 1, 1]], axis=-1)
    directed = rectangle_probability(in_j, packed, outline)
    return (directed + directed.T) / 2
