"""The paper's external model: weighted visual words, trained on the agent's answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from smalti.errors import ModelError
from smalti.records import PairNumbers

SHARPNESS = 3.0
"""β of the logistic function."""


class WeightedSignatures:
    """P^ext = h_β(1 - Σ_d w_d (s_d^i - s_d^j)²) with weights w ≥ 1 (Eq. bow_probability)."""

    def __init__(
        self,
        signatures: NDArray[np.float64],
        *,
        sharpness: float = SHARPNESS,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        signatures = np.array(signatures, dtype=np.float64)
        if signatures.ndim != 2 or not np.isfinite(signatures).all():
            raise ModelError(f"signatures must be finite and of shape (N, D), got {signatures.shape}")
        lengths = np.linalg.norm(signatures, axis=1)
        if not np.allclose(lengths, 1.0, atol=1e-6):
            frame = int(np.argmax(np.abs(lengths - 1.0)))
            raise ModelError(f"signature of frame {frame} has length {lengths[frame]:.3g}, expected 1")
        self.signatures = signatures
        self.sharpness = sharpness
        self.weights = np.ones(signatures.shape[1]) if weights is None else weights

    def probabilities(self) -> NDArray[np.float64]:
        """Return P^ext of all pairs (N, N)."""
        scaled = self.signatures * np.sqrt(self.weights)
        squared = np.sum(scaled**2, axis=1)
        distance = np.maximum(squared[:, None] + squared[None] - 2.0 * (scaled @ scaled.T), 0.0)
        probability: NDArray[np.float64] = expit(self.sharpness * (1.0 - distance))
        return probability

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> WeightedSignatures:
        """Return the model whose weights fit these answers best.

        Differs from the paper: L-BFGS-B takes the bounds w ≥ 1 as they are, no logarithm of w is needed.
        Without a negative answer the weights stay at one. The search starts from one every time, so the
        weights depend on the answers alone and not on their order.
        """
        if not len(apart):
            return WeightedSignatures(self.signatures, sharpness=self.sharpness)
        differences, labels, importance = self._training_set(overlapping, apart)

        def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            return weighted_log_loss(weights, differences, labels, importance, self.sharpness)

        size = self.signatures.shape[1]
        found = minimize(
            loss,
            np.ones(size),
            jac=True,
            method="L-BFGS-B",
            bounds=[(1.0, None)] * size,
            options={"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9},
        )
        return WeightedSignatures(self.signatures, sharpness=self.sharpness, weights=found.x)

    def _training_set(
        self, overlapping: PairNumbers, apart: PairNumbers
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        pairs = np.concatenate([overlapping.reshape(-1, 2), apart.reshape(-1, 2)])
        differences = (self.signatures[pairs[:, 0]] - self.signatures[pairs[:, 1]]) ** 2
        labels = np.concatenate([np.ones(len(overlapping)), -np.ones(len(apart))])
        # Inverse class frequency: few refusals weigh as much as the many consecutive pairs.
        importance = np.where(labels > 0, 0.5 / max(len(overlapping), 1), 0.5 / len(apart))
        return differences, labels, importance


def weighted_log_loss(
    weights: NDArray[np.float64],
    differences: NDArray[np.float64],
    labels: NDArray[np.float64],
    importance: NDArray[np.float64],
    sharpness: float,
) -> tuple[float, NDArray[np.float64]]:
    """Return the log loss (Eq. log_loss_2) and its gradient.

    Differs from the paper: its gradient lacks the label o_ij in front of the logistic function.
    """
    margin = sharpness * labels * (differences @ weights - 1.0)
    value = float(np.sum(importance * np.logaddexp(0.0, margin)))
    slope = importance * sharpness * labels * expit(margin)
    return value, differences.T @ slope
