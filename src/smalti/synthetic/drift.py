"""Slow change, as of a heading, a zoom or the light."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d


def draw_drift(frames: int, slowness_frames: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a smooth random function of time, (frames,), between -1 and 1, that changes over `slowness_frames`."""
    margin = int(4 * slowness_frames)
    smooth = gaussian_filter1d(rng.standard_normal(frames + 2 * margin), slowness_frames)[margin : margin + frames]
    deviation = (2 * math.sqrt(math.pi) * slowness_frames) ** -0.5
    return np.asarray(np.tanh(smooth / deviation), np.float64)
