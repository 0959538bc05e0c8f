"""What the errors of mosaics are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.maps import apply_map
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Points


def fit_similarity(points: Points, targets: Points) -> Points:
    """Return the points moved onto the targets by the similarity (no reflection) that fits best."""
    source = (points - points.mean(axis=0)) @ np.array([1.0, 1.0j])
    target = (targets - targets.mean(axis=0)) @ np.array([1.0, 1.0j])
    moved = source * (np.vdot(source, target) / np.vdot(source, source).real)
    fitted: Points = np.column_stack([moved.real, moved.imag]) + targets.mean(axis=0)
    return fitted


def smallest_area(mosaic_from_frame: Homographies, outline: Outline) -> float:
    """Return the area of the smallest frame on the mosaic, as a fraction of the reference frame's."""
    x, y = np.moveaxis(apply_map(mosaic_from_frame, outline.corners), -1, 0)  # (N, 4)
    areas: NDArray[np.float64] = np.sum(x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1), axis=1) / 2.0
    return float(areas.min() / outline.area)
