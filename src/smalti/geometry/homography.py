"""Homographies as 3×3 matrices, stacked along leading axes; names read `target_from_source`."""

from __future__ import annotations

import numpy as np

from smalti.geometry.affine import homogeneous
from smalti.records import Homographies, Points


def project(b_from_a: Homographies, points: Points) -> Points:
    """Map points (..., n, 2) by homographies (..., 3, 3)."""
    mapped = homogeneous(points) @ np.swapaxes(b_from_a, -1, -2)
    projected: Points = mapped[..., :2] / mapped[..., 2:]
    return projected


def invert_homographies(b_from_a: Homographies) -> Homographies:
    """Return `a_from_b`."""
    return np.asarray(np.linalg.inv(b_from_a), dtype=np.float64)
