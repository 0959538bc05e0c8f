"""How far a mosaic is from the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.experiments.worlds import CONTROL_POINTS, OUTLINE, World
from smalti.geometry.affine import apply, compose, invert
from smalti.records import Points, Transforms


def relative_rmsd(world: World, mosaic_from_frame: Transforms) -> float:
    """Return the paper's error: RMS distance, in frame i, of T_ij x_j to the true x_i over all control points."""
    pairs, point = world.shown_in_both
    i, j = pairs[:, 0], pairs[:, 1]
    i_from_j = compose(invert(mosaic_from_frame)[i], mosaic_from_frame[j])
    shown = CONTROL_POINTS[point]
    estimated = apply(i_from_j, shown[:, None])[:, 0]
    exact = shown + world.positions[j] - world.positions[i]
    return float(np.sqrt(np.mean(np.sum((estimated - exact) ** 2, axis=1))))


def shape_rmsd(world: World, mosaic_from_frame: Transforms) -> float:
    """Return the RMS distance of the frame centres to the truth after the best similarity; it sees shrinking."""
    centres = apply(mosaic_from_frame, OUTLINE.centre[None])[:, 0]
    true_centres = apply(world.mosaic_from_frame, OUTLINE.centre[None])[:, 0]
    residual = fit_similarity(centres, true_centres) - true_centres
    return float(np.sqrt(np.mean(np.sum(residual**2, axis=1))))


def fit_similarity(points: Points, targets: Points) -> Points:
    """Return the points moved onto the targets by the similarity (no reflection) that fits best."""
    source = (points - points.mean(axis=0)) @ np.array([1.0, 1.0j])
    target = (targets - targets.mean(axis=0)) @ np.array([1.0, 1.0j])
    moved = source * (np.vdot(source, target) / np.vdot(source, source).real)
    fitted: Points = np.column_stack([moved.real, moved.imag]) + targets.mean(axis=0)
    return fitted


def smallest_area(mosaic_from_frame: Transforms) -> float:
    """Return the area of the smallest frame on the mosaic, as a fraction of the reference frame's."""
    areas: NDArray[np.float64] = np.linalg.det(mosaic_from_frame[:, :, :2])
    return float(areas.min())
