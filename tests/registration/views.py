"""Frames as an endoscope shows them: round, dark at the rim, lit from the side, with noise and particles."""

from __future__ import annotations

from functools import cache

import numpy as np

from smalti.registration.feature_pyramid import Prepared, prepare
from tests.registration.scenes import FRAME_SIZE, gray

X, Y = np.meshgrid(*(np.arange(side, dtype=np.float64) for side in FRAME_SIZE))
RADIUS = np.hypot(X - X.mean(), Y - Y.mean()) / 90


@cache
def field() -> np.ndarray:
    return RADIUS < 0.97


@cache
def dim(n: int, noise: float = 2.0, draw: int = 0) -> np.ndarray:
    """A frame of little contrast, whose light comes from another side each time."""
    rng = np.random.default_rng([n, draw])
    side = rng.uniform(-0.3, 0.3, 2)
    light = (1.0 - 0.4 * RADIUS**2) * (1.0 + side[0] * (X - X.mean()) / 120 + side[1] * (Y - Y.mean()) / 90)
    shown = (70 + 0.4 * gray(n)) * light
    for x, y in rng.uniform(0, FRAME_SIZE, (4, 2)):
        shown[np.hypot(X - x, Y - y) < 4] = 230
    shown[~field()] = 4
    return np.clip(shown + rng.normal(0, noise, shown.shape), 0, 255).astype(np.uint8)


@cache
def prepared(n: int, noise: float = 2.0, draw: int = 0) -> Prepared:
    return prepare(dim(n, noise, draw), field())
