"""The loss of the word weights as the paper writes it, and its optimum by a slow, general solver."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def log_loss(
    weights: np.ndarray, differences: np.ndarray, labels: np.ndarray, importance: np.ndarray, sharpness: float
) -> tuple[float, np.ndarray]:
    """Return the log loss (Eq. log_loss_2) and its gradient; differences are (n, D)."""
    margin = sharpness * labels * (differences @ weights - 1.0)
    value = float(np.sum(importance * np.logaddexp(0.0, margin)))
    slope = importance * sharpness * labels * expit(margin)
    return value, differences.T @ slope


def best_weights(signatures: np.ndarray, overlapping: np.ndarray, apart: np.ndarray, sharpness: float) -> np.ndarray:
    """Return the optimum under w ≥ 1 as exactly as L-BFGS-B gets there, from all words at once.

    It stops where the loss no longer changes in double precision; started again from there it goes on a little.
    """
    pairs = np.concatenate([overlapping, apart])
    differences = (signatures[pairs[:, 0]] - signatures[pairs[:, 1]]) ** 2
    labels = np.repeat([1.0, -1.0], [len(overlapping), len(apart)])
    importance = np.repeat([0.5 / max(len(overlapping), 1), 0.5 / len(apart)], [len(overlapping), len(apart)])
    weights = np.ones(signatures.shape[1])
    for _ in range(10):
        weights = minimize(
            log_loss,
            weights,
            args=(differences, labels, importance, sharpness),
            jac=True,
            method="L-BFGS-B",
            bounds=[(1.0, None)] * len(weights),
            options={"maxiter": 20_000, "maxfun": 50_000, "ftol": 0.0, "gtol": 1e-14, "maxcor": 30},
        ).x
    return weights
