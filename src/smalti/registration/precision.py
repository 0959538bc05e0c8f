"""How exact an alignment is, from what its tiles say apart from each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.affine import apply
from smalti.geometry.outline import Outline
from smalti.records import Points
from smalti.registration.alignment import Fit
from smalti.registration.evidence import TILES

FLOOR = 0.02
"""Pixels of the level: what interpolation alone gets wrong."""

COMMON = 1.4
"""What the scatter of tiles does not show: errors that they have in common (light that moves with the scope, bends of
higher degree), and that noise flattens the peak on which the map sits by more than the slopes tell. Measured on the
synthetic endoscope (`benchmarks/dense.py`), the only number here that was."""

TILES_TO_BEND = 24
"""Tiles that both frames show, from which on the scene's bending can be told from noise: it has twelve parameters."""

SHIFT = np.array([2, 5])
"""The shift of x and that of y among the increments of a map."""


def estimate_sigma(fit: Fit, points_j: Points) -> float:
    """Return the standard deviation of each coordinate of mapped points, RMS over points (n, 2); pixels of the level.

    Two parts. The spread of an M-estimate: the sandwich of information and scores, summed over tiles, so that residuals
    may be related as they please within a tile, and larger in one than in another. And what an affine map cannot
    follow, relief, perspective and deformation: the part of second degree that tiles agree on, beyond its own noise.
    """
    height, width = fit.template.shape[1:]
    outline = Outline.of_pixels(width, height)
    at = apply(outline.unit_from_pixels, points_j)
    evidence = fit.evidence
    seen = evidence.shared > 0
    noise = _covariance(evidence.information[seen], evidence.scores[seen])
    variance = _mean_square(_basis(at, 1), noise)
    if seen.sum() >= TILES_TO_BEND:
        bases = _basis(_tile_centres(outline)[seen], 2)
        # By the mean slopes, as a tile whose frames disagree has no positive information by the common ones.
        of_scene = np.trace(evidence.information.sum(axis=0)) / np.trace(evidence.steepness.sum(axis=0))
        of_shift = of_scene * evidence.steepness[seen][:, SHIFT[:, None], SHIFT]
        information = np.einsum("npa,npq,nqb->nab", bases, of_shift, bases)
        scores = np.einsum("npa,np->na", bases, evidence.scores[seen][:, SHIFT])
        bend = np.linalg.lstsq(information.sum(axis=0), scores.sum(axis=0), rcond=1e-9)[0]
        here = _basis(at, 2)
        bending = _mean_square(here, np.outer(bend, bend)) - _mean_square(here, _covariance(information, scores))
        variance += max(0.0, bending)
    zoom = abs(float(np.linalg.det(fit.i_from_j[:, :2])))
    return math.sqrt(zoom * COMMON**2 * variance + FLOOR**2)


def _covariance(information: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance (k, k) of increments from the information (n, k, k) and the scores (n, k) of tiles."""
    inverse = np.linalg.pinv(information.sum(axis=0), rcond=1e-9, hermitian=True)
    count, k = scores.shape
    scattered = scores.T @ scores * (count / max(count - k / 2, 1))
    return np.asarray(inverse @ scattered @ inverse, dtype=np.float64)


def _mean_square(bases: NDArray[np.float64], covariance: NDArray[np.float64]) -> float:
    """Return the variance of a coordinate, averaged over points and both coordinates; bases (n, 2, k)."""
    return float(np.einsum("npa,ab,npb->", bases, covariance, bases)) / (2 * len(bases))


def _basis(at: Points, degree: int) -> NDArray[np.float64]:
    """Return how points (n, 2) move with the increments of a map of that degree: (n, 2, 6 or 12)."""
    u, v = at.T
    terms = [u, v, np.ones_like(u)] + ([u * u, u * v, v * v] if degree == 2 else [])
    moves = np.zeros((len(at), 2, 2, len(terms)))
    moves[:, 0, 0] = moves[:, 1, 1] = np.stack(terms, axis=1)
    return moves.reshape(len(at), 2, -1)


def _tile_centres(outline: Outline) -> Points:
    """Return the centres (tiles, 2) of the tiles in units of the frame."""
    middles = (np.arange(TILES) + 0.5) / TILES
    y, x = np.meshgrid(outline.top + middles * outline.height, outline.left + middles * outline.width, indexing="ij")
    return apply(outline.unit_from_pixels, np.column_stack([x.ravel(), y.ravel()]))
