"""Smooth random fields, from which everything in a procedural scene is made."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray


def fractal_noise(
    width: int, height: int, largest: int, smallest: int, rng: np.random.Generator, roughness: float = 0.6
) -> NDArray[np.float32]:
    """Sum smooth noise of cells from `largest` down to `smallest` pixels: (height, width), mean 0, deviation near 1.

    Both are powers of two; every octave is half as large as the one before, and `roughness` times as strong.
    """
    cell, strength, power = largest, 1.0, 0.0
    total = np.zeros((math.ceil(height / cell), math.ceil(width / cell)), np.float32)
    while True:
        total += np.float32(strength) * rng.standard_normal(total.shape, dtype=np.float32)
        power += strength**2
        if cell <= smallest:
            break
        # A coarse octave is magnified while it is small, step by step, so that all of them cost little more than
        # the finest one.
        cell, strength = cell // 2, strength * roughness
        total = _magnify(total, 2)[: math.ceil(height / cell), : math.ceil(width / cell)]
    return (_magnify(total, cell) * np.float32(power**-0.5))[:height, :width]


def _magnify(field: NDArray[np.float32], times: int) -> NDArray[np.float32]:
    if times == 1:
        return field
    size = (field.shape[1] * times, field.shape[0] * times)
    return np.asarray(cv2.resize(field, size, interpolation=cv2.INTER_CUBIC), np.float32)
