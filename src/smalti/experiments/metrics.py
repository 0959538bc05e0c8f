"""How far a mosaic is from the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.experiments.worlds import OUTLINE, World
from smalti.geometry.affine import IDENTITY, apply, compose, invert
from smalti.records import Points, Transforms


def relative_rmsd(world: World, mosaic_from_frame: Transforms) -> float:
    """Return the paper's error: RMS distance, in frame i, of T_ij x_j to the true x_i over all control points."""
    pairs, moments = world.moments
    i, j = pairs[:, 0], pairs[:, 1]
    # T_ij less the true shift: what it makes of a point is the point's error.
    error = compose(invert(mosaic_from_frame)[i], mosaic_from_frame[j]) - IDENTITY
    error[:, :, 2] -= world.positions[j] - world.positions[i]
    # Σ |E x̃|² over the points of a pair is tr(E M Eᵀ), M being their moments; M's last entry counts them.
    squares = np.sum((error @ moments) * error)
    return float(np.sqrt(squares / np.sum(moments[:, 2, 2])))


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
