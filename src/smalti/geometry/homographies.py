"""Homographies as 3×3 matrices, and the five families of maps in one local basis; names read `target_from_source`.

A map H moves by H ← H exp(Σ δ_k B_k). The basis has the order translation (2), rotation, scale, stretch (2),
perspective (2). Translation, rigid, similarity, affine and projective maps use its first 2, 3, 4, 6 and 8 directions.
Each family is a group.

Points and inverses come first, then the basis and `Family`, then exponentials and moves, then compiled kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UnknownNameError
from smalti.geometry.linear_maps import homogeneous
from smalti.records import Homographies, Points


def project_points(b_from_a: Homographies, points: Points) -> Points:
    """Map points (..., n, 2) by homographies (..., 3, 3)."""
    mapped = homogeneous(points) @ np.swapaxes(b_from_a, -1, -2)
    projected: Points = mapped[..., :2] / mapped[..., 2:]
    return projected


def invert_homographies(b_from_a: Homographies) -> Homographies:
    """Return `a_from_b`."""
    return np.asarray(np.linalg.inv(b_from_a), dtype=np.float64)


ENTRIES = 8
"""The number of entries of an increment Δ = Σ δ_k B_k, row by row; the ninth, in the corner, is always 0."""

BASIS: NDArray[np.float64] = np.array(
    [
        [[0, 0, 1], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 1], [0, 0, 0]],
        [[0, -1, 0], [1, 0, 0], [0, 0, 0]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
        [[1, 0, 0], [0, -1, 0], [0, 0, 0]],
        [[0, 1, 0], [1, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [1, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 1, 0]],
    ],
    dtype=np.float64,
)
"""(8, 3, 3): the directions B_k in which a map can move."""

TRANSLATION_X, TRANSLATION_Y, ROTATION, SCALE, STRETCH_1, STRETCH_2, PERSPECTIVE_X, PERSPECTIVE_Y = range(8)


@dataclass(frozen=True, slots=True)
class Family:
    """The group of maps that the first `freedom` directions of the basis generate."""

    name: str
    freedom: int

    @property
    def tangent(self) -> NDArray[np.float64]:
        """(freedom, 3, 3): the directions in which a map of the family can move."""
        return BASIS[: self.freedom]

    @property
    def by_entry(self) -> NDArray[np.float64]:
        """(freedom, 8): the same directions as entries of Δ, row by row."""
        return np.ascontiguousarray(self.tangent.reshape(self.freedom, 9)[:, :ENTRIES])


TRANSLATION, RIGID, SIMILARITY, AFFINE, PROJECTIVE = (
    Family(name, freedom)
    for name, freedom in (("translation", 2), ("rigid", 3), ("similarity", 4), ("affine", 6), ("projective", 8))
)
FAMILIES = {family.name: family for family in (TRANSLATION, RIGID, SIMILARITY, AFFINE, PROJECTIVE)}


FamilyName = Literal["translation", "rigid", "similarity", "affine", "projective"]


def family_named(name: str) -> Family:
    """Return the family of this name."""
    if name not in FAMILIES:
        raise UnknownNameError("family", name, FAMILIES)
    return FAMILIES[name]


def exponential(increments: NDArray[np.float64]) -> Homographies:
    """Return exp(Σ δ_k B_k) (n, 3, 3) for increments δ (n, k) in the first k directions of the basis."""
    directions = np.einsum("nk,kab->nab", increments, BASIS[: increments.shape[1]])
    return _exponential(np.ascontiguousarray(directions))


def move(maps: Homographies, increments: NDArray[np.float64]) -> Homographies:
    """Return H exp(Σ δ_k B_k) for maps (n, 3, 3) and increments (n, k), with a 1 in the corner."""
    return _composed(maps, exponential(increments))


def normalise(maps: Homographies) -> Homographies:
    """Return the same maps (..., 3, 3) with a 1 in the corner."""
    scaled: Homographies = maps / maps[..., 2:, 2:]
    return scaled


@compiled
def _composed(maps: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the products of maps (n, 3, 3), with a 1 in the corner."""
    result = np.empty_like(maps)
    for n in range(len(maps)):
        for a in range(3):
            for b in range(3):
                total = maps[n, a, 0] * steps[n, 0, b] + maps[n, a, 1] * steps[n, 1, b]
                result[n, a, b] = total + maps[n, a, 2] * steps[n, 2, b]
        corner = result[n, 2, 2]
        for a in range(3):
            for b in range(3):
                result[n, a, b] /= corner
    return result


@compiled
def invert(maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverses of regular maps (n, 3, 3)."""
    result = np.empty_like(maps)
    for n in range(len(maps)):
        a, b, c = maps[n, 0, 0], maps[n, 0, 1], maps[n, 0, 2]
        d, e, f = maps[n, 1, 0], maps[n, 1, 1], maps[n, 1, 2]
        g, h, i = maps[n, 2, 0], maps[n, 2, 1], maps[n, 2, 2]
        one, two, three = e * i - f * h, f * g - d * i, d * h - e * g
        scale = 1.0 / (a * one + b * two + c * three)
        result[n, 0, 0], result[n, 0, 1], result[n, 0, 2] = (
            scale * one,
            scale * (c * h - b * i),
            scale * (b * f - c * e),
        )
        result[n, 1, 0], result[n, 1, 1], result[n, 1, 2] = (
            scale * two,
            scale * (a * i - c * g),
            scale * (c * d - a * f),
        )
        result[n, 2, 0], result[n, 2, 1], result[n, 2, 2] = (
            scale * three,
            scale * (b * g - a * h),
            scale * (a * e - b * d),
        )
    return result


def apply_map(b_from_a: Homographies, points: Points) -> Points:
    """Map points (..., n, 2) by homographies (..., 3, 3), without building homogeneous points."""
    mapped = points @ np.swapaxes(b_from_a[..., :2], -1, -2) + b_from_a[..., None, :, 2]
    projected: Points = mapped[..., :2] / mapped[..., 2:]
    return projected


def similarity_part(b_from_a: Homographies) -> Homographies:
    """Return the shift, turn and scale of a map (3, 3) at the centre of the frame, as a map (3, 3)."""
    scaled = b_from_a / b_from_a[2, 2]
    linear = scaled[:2, :2] - np.outer(scaled[:2, 2], scaled[2, :2])
    across, along = linear[1, 0] - linear[0, 1], linear[0, 0] + linear[1, 1]
    scale = np.sqrt(max(abs(float(np.linalg.det(linear))), 1e-9))
    angle = np.arctan2(across, along)
    result = np.eye(3)
    result[:2, :2] = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    result[:2, 2] = scaled[:2, 2]
    return result


TAYLOR_TERMS = 10
"""Terms of the series of an exponential whose argument has entries of at most 0.0625: the next term is below 1e-15."""


@compiled
def _exponential(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exponentials of matrices (n, 3, 3), by scaling and squaring."""
    result = np.empty_like(directions)
    work, product = np.empty((3, 3)), np.empty((3, 3))
    for n in range(len(directions)):
        largest = 0.0
        for a in range(3):
            for b in range(3):
                largest = max(largest, abs(directions[n, a, b]))
        squarings = 0
        while largest > 0.0625 and squarings < 60:
            largest *= 0.5
            squarings += 1
        scale = 0.5**squarings
        # Horner: exp(X) = I + X (I + X/2 (I + X/3 (…)))
        for a in range(3):
            for b in range(3):
                work[a, b] = 1.0 if a == b else 0.0
        for term in range(TAYLOR_TERMS, 0, -1):
            for a in range(3):
                for b in range(3):
                    total = 0.0
                    for c in range(3):
                        total += directions[n, a, c] * scale * work[c, b]
                    product[a, b] = total / term
            for a in range(3):
                for b in range(3):
                    work[a, b] = product[a, b] + (1.0 if a == b else 0.0)
        for _ in range(squarings):
            for a in range(3):
                for b in range(3):
                    total = 0.0
                    for c in range(3):
                        total += work[a, c] * work[c, b]
                    product[a, b] = total
            for a in range(3):
                for b in range(3):
                    work[a, b] = product[a, b]
        for a in range(3):
            for b in range(3):
                result[n, a, b] = work[a, b]
    return result
