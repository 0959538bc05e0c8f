"""Monte Carlo estimates of the overlap probability, to compare with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.outline import Outline
from smalti.records import Transforms


def sampled_probability(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    outline: Outline,
    samples: int,
    rng: np.random.Generator,
) -> float:
    """Estimate P(γ_ij ∈ Ω) from the linearised distribution, mean (2,) and cov (2, 2)."""
    points = rng.multivariate_normal(mean, cov, size=samples)
    return float(np.mean(outline.contains(points)))


def sampled_probability_of_maps(
    mosaic_from_i: Transforms,
    mosaic_from_j: Transforms,
    joint: NDArray[np.float64],
    outline: Outline,
    samples: int,
    rng: np.random.Generator,
) -> float:
    """Estimate P(γ_ij ∈ Ω) without linearising: sample Θ_i, Θ_j from their joint covariance (12, 12)."""
    centre = np.concatenate([mosaic_from_i.ravel(), mosaic_from_j.ravel()])
    drawn = rng.multivariate_normal(centre, joint, size=samples, method="eigh").reshape(samples, 2, 2, 3)
    on_mosaic = drawn[:, 0] @ np.append(outline.centre, 1.0)
    in_j = np.linalg.solve(drawn[:, 1, :, :2], (on_mosaic - drawn[:, 1, :, 2])[..., None])[..., 0]
    return float(np.mean(outline.contains(in_j)))
