"""Affine maps as 2×3 matrices, and the linear families of maps; names read `target_from_source`.

Row p of a frame's map (p = 0 for x, 1 for y) is `basis[p] @ φ + offset[p]`. In a family of two planes (translation,
affine), x and y have parameters of their own and the same basis. So every system splits into two halves with one
matrix. The two rows of a similarity share their parameters, so it has one plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UnknownNameError
from smalti.records import Points, Transforms

IDENTITY: Transforms = np.eye(2, 3)


def compose(c_from_b: Transforms, b_from_a: Transforms) -> Transforms:
    """Return `c_from_a`."""
    linear = c_from_b[..., :2]
    c_from_a = linear @ b_from_a
    c_from_a[..., 2] += c_from_b[..., 2]
    return c_from_a


def invert(b_from_a: Transforms) -> Transforms:
    """Return `a_from_b`."""
    linear = np.linalg.inv(b_from_a[..., :2])
    shift = -linear @ b_from_a[..., 2:]
    return np.concatenate([linear, shift], axis=-1)


def apply(b_from_a: Transforms, points: Points) -> Points:
    """Map points (..., n, 2) by affine maps (..., 2, 3)."""
    mapped: Points = points @ np.swapaxes(b_from_a[..., :2], -1, -2) + b_from_a[..., None, :, 2]
    return mapped


def homogeneous(points: Points) -> Points:
    """Append a 1 to every point: (..., 2) to (..., 3)."""
    return np.concatenate([points, np.ones((*points.shape[:-1], 1))], axis=-1)


def square(b_from_a: Transforms) -> Transforms:
    """Append the row (0, 0, 1): (..., 2, 3) to (..., 3, 3)."""
    last = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (*b_from_a.shape[:-2], 1, 3))
    return np.concatenate([b_from_a, last], axis=-2)


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A linear space of maps that is closed under composition."""

    name: str
    planes: int
    basis: NDArray[np.float64]  # (2, 3, k)
    offset: Transforms  # (2, 3)

    @property
    def size(self) -> int:
        """k: parameters of a frame in one plane."""
        return int(self.basis.shape[2])

    @property
    def freedom(self) -> int:
        """Parameters of a frame in all planes."""
        return self.planes * self.size

    @property
    def rows_of_plane(self) -> tuple[tuple[int, ...], ...]:
        """The rows of a map that each plane's parameters determine."""
        return ((0,), (1,)) if self.planes == 2 else ((0, 1),)

    def shift(self, row: int) -> int:
        """Return which parameter of its plane shifts this row of a map."""
        return int(np.flatnonzero(self.basis[row, 2])[0])

    def shift_direction(self, row: int) -> int:
        """Return which direction of `tangent` shifts this row of a map."""
        return min(row, self.planes - 1) * self.size + self.shift(row)

    @property
    def tangent(self) -> NDArray[np.float64]:
        """(freedom, 2, 3): the directions in which a map of the family can move."""
        directions = np.zeros((self.freedom, 2, 3))
        for plane, rows in enumerate(self.rows_of_plane):
            for row in rows:
                for c in range(self.size):
                    directions[plane * self.size + c, row] = self.basis[row, :, c]
        return directions

    def maps(self, parameters: NDArray[np.float64]) -> Transforms:
        """Turn parameters (n, planes, k) into maps (n, 2, 3)."""
        plane_of_row = [0, self.planes - 1]
        rows = [parameters[:, plane_of_row[p]] @ self.basis[p].T + self.offset[p] for p in (0, 1)]
        return np.stack(rows, axis=1)

    def fit(self, points_i: Points, points_j: Points, weights: NDArray[np.float64]) -> Transforms:
        """Return the map of the family that takes `points_j` nearest to `points_i`, weighted least squares.

        The caller scales points to order one about the origin.
        """
        source = homogeneous(points_j)
        columns = np.einsum("cpa,na->npc", self.tangent, source).reshape(-1, self.freedom)
        target = (points_i - source @ self.offset.T).reshape(-1)
        row_weights = np.repeat(weights, 2)
        solution, *_ = np.linalg.lstsq(columns * row_weights[:, None], target * row_weights, rcond=None)
        fitted: Transforms = self.offset + np.einsum("c,cpa->pa", solution, self.tangent)
        return fitted


def _translation() -> Family:
    row = np.array([[0.0], [0.0], [1.0]])
    return Family("translation", 2, np.stack([row, row]), np.eye(2, 3))


def _similarity() -> Family:
    x_row = np.array([[1.0, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]])
    y_row = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
    return Family("similarity", 1, np.stack([x_row, y_row]), np.zeros((2, 3)))


def _affine() -> Family:
    return Family("affine", 2, np.stack([np.eye(3), np.eye(3)]), np.zeros((2, 3)))


TRANSLATION, SIMILARITY, AFFINE = _translation(), _similarity(), _affine()
FAMILIES = {family.name: family for family in (TRANSLATION, SIMILARITY, AFFINE)}


def linear_family_named(name: str) -> Family:
    """Return the linear family of this name."""
    if name not in FAMILIES:
        raise UnknownNameError("family", name, FAMILIES)
    return FAMILIES[name]
