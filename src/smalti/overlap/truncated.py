"""A normal variable that is known to lie within bounds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

FAINTEST = 1e-12
"""Probability below which a variable is taken to be at the bound."""


def mean_between(
    mean: NDArray[np.float64], deviation: NDArray[np.float64], bound: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean of N(mean, deviation²) within ± bound."""
    deviation = np.maximum(deviation, FAINTEST * bound)
    below, above = (-bound - mean) / deviation, (bound - mean) / deviation
    inside = ndtr(above) - ndtr(below)
    pull = (np.exp(-0.5 * below**2) - np.exp(-0.5 * above**2)) / math.sqrt(2.0 * math.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        shifted = mean + deviation * pull / inside
    result: NDArray[np.float64] = np.clip(np.where(inside > FAINTEST, shifted, mean), -bound, bound)
    return result
