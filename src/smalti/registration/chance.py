"""How much more alike two frames are than chance would have them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft2, next_fast_len, rfft2

from smalti.registration.warp import Planes

NEAREST, FARTHEST = 5, 0.35
"""Shifted copies: pixels of the level that they are away at least, and share of its shorter side at most."""

LEAST_SHARE = 0.5  # of the overlap that a copy has to show
FEWEST = 100


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two frames are where they coincide."""

    correlation: float  # of their features, -1 to 1
    excess: float  # over that of shifted copies, in standard deviations


NONE = Likeness(0.0, 0.0)


def compare_with_chance(template: Planes, warped: Planes) -> Likeness:
    """Compare what j shows with what it would see of i, and with copies of the latter that are shifted.

    Copies of the same overlap that are shifted by more than the detail in it show what likeness is worth in frames
    like these: with stripes, or with little detail, much less than with fine grain.
    """
    height, width = template.shape[1:]
    farthest = int(FARTHEST * min(height, width))
    overlap = template[3] * warped[3]
    energy = float((template[:3] ** 2 * overlap).sum()) * float((warped[:3] ** 2 * overlap).sum())
    if energy == 0:
        return NONE
    # Of j only the overlap is compared, so that all copies are compared with the same part of it.
    sides = (next_fast_len(height + farthest, True), next_fast_len(width + farthest, True))
    product = rfft2(warped * warped[3], sides) * np.conj(rfft2(template * overlap, sides))
    common, shared = irfft2(np.stack([product[:3].sum(axis=0), product[3]]), sides)
    rows, columns = (_circular(side) for side in sides)
    away = np.hypot(rows[:, None], columns)
    copies = (away >= NEAREST) & (away <= farthest) & (shared > LEAST_SHARE * shared[0, 0])
    if copies.sum() < FEWEST:
        return NONE
    # A sum over fewer pixels scatters less.
    chance = common[copies] / np.sqrt(shared[copies])
    excess = (common[0, 0] / np.sqrt(shared[0, 0]) - chance.mean()) / chance.std()
    return Likeness(float(common[0, 0]) / math.sqrt(energy), float(excess))


def _circular(side: int) -> NDArray[np.int64]:
    return (np.arange(side) + side // 2) % side - side // 2
