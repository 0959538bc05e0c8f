"""Affine maps as 2×3 matrices, stacked along leading axes; names read `target_from_source`."""

from __future__ import annotations

import numpy as np

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
    """Map points (..., n, 2)."""
    mapped: Points = points @ np.swapaxes(b_from_a[..., :2], -1, -2) + b_from_a[..., None, :, 2]
    return mapped


def homogeneous(points: Points) -> Points:
    """Append a 1 to every point: (..., 2) to (..., 3)."""
    return np.concatenate([points, np.ones((*points.shape[:-1], 1))], axis=-1)


def square(b_from_a: Transforms) -> Transforms:
    """Append the row (0, 0, 1): (..., 2, 3) to (..., 3, 3)."""
    last = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (*b_from_a.shape[:-2], 1, 3))
    return np.concatenate([b_from_a, last], axis=-2)
