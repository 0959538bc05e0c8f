"""Estimate how precise an alignment is, and how much more alike the two frames are than by chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft2, next_fast_len, rfft2

from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import apply
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Points
from smalti.registration.alignment import Fit, moves_of_points, moves_of_tiles, tile_centres
from smalti.registration.feature_pyramid import Planes

FLOOR = 0.02
"""Pixels of the level: the error of interpolation alone."""

COMMON = 1.4
"""Factor on the standard deviation, for what the scatter of tiles does not show.

Tiles have errors in common: light that moves with the scope, deformation of higher degree. And noise flattens the peak
of likeness by more than the slopes tell. This number was measured on the synthetic endoscope (`benchmarks/dense.py`).
The other ones here were not."""

TILES_TO_BEND = 24
"""Fewest shared tiles that separate the scene's bending, which has twelve parameters, from noise."""

SHIFT = np.array([2, 5])
"""The shift of x and that of y among the increments of a map."""

SHARING_ROUNDS = 50
"""Rounds until the map fitted to the landmarks has the wanted uncertainty at each of them, to about a tenth."""

NEAREST, FARTHEST = 5, 0.35
"""Range of the shifted copies' distance: from pixels of the level, to a share of its shorter side."""

LEAST_SHARE = 0.5  # of the overlap that a copy has to show
FEWEST = 100  # shifted copies


def estimate_sigmas(fit: Fit, points_j: Points) -> NDArray[np.float64]:
    """Return the standard deviation of each coordinate of mapped points (n, 2): (n,), pixels of the level.

    It has two parts. The first is the spread of an M-estimate: the sandwich of information and scores, summed over
    tiles. So residuals may be correlated within a tile, and larger in one tile than in another. This part is larger
    where the frames have little texture. The second part is what no map of a plane can follow, relief and deformation:
    the part of second degree that the tiles agree on, beyond its own noise.
    """
    height, width = fit.template.shape[1:]
    outline = Outline.of_pixels(width, height)
    at = apply(outline.unit_from_pixels, points_j)
    evidence = fit.evidence
    shared = evidence.shared > 0
    moves = moves_of_tiles(outline)[shared]
    information = moves @ evidence.information[shared] @ np.swapaxes(moves, 1, 2)
    noise = _covariance(information, np.einsum("nka,na->nk", moves, evidence.scores[shared]))
    variances = _variances(_moves_in_i(fit.i_from_j, points_j, outline), noise)
    if shared.sum() >= TILES_TO_BEND:
        bases = _bends(tile_centres(outline)[shared])
        # Use the mean slopes: by the common slopes, a tile whose frames disagree has no positive information.
        of_scene = np.trace(evidence.information.sum(axis=0)) / np.trace(evidence.steepness.sum(axis=0))
        of_shift = of_scene * evidence.steepness[shared][:, SHIFT[:, None], SHIFT]
        information = np.einsum("npa,npq,nqb->nab", bases, of_shift, bases)
        scores = np.einsum("npa,np->na", bases, evidence.scores[shared][:, SHIFT])
        bend = np.linalg.lstsq(information.sum(axis=0), scores.sum(axis=0), rcond=1e-9)[0]
        bending = np.mean(_variances(_bends(at), np.outer(bend, bend) - _covariance(information, scores)))
        variances += max(0.0, float(bending)) * np.linalg.det(_slopes(fit.i_from_j, points_j))
    return np.asarray(np.sqrt(COMMON**2 * variances + FLOOR**2), dtype=np.float64)


def share_information(fit: Fit, points_j: Points, sigmas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a σ (n,) for each of n independent landmarks, so that together they determine the map as well as it is
    known.

    A map fitted to the landmarks is then uncertain by `sigmas` (n,) at them. Their information w = 1/σ² is found like
    that of a D-optimal design. It starts at 4/n of the known information, as a coordinate has four of the eight
    parameters. Each round multiplies it by the ratio of the fitted map's variance to the wanted one.
    """
    height, width = fit.template.shape[1:]
    moves = _moves_in_i(fit.i_from_j, points_j, Outline.of_pixels(width, height))
    known = sigmas**-2
    weights = 4 / len(points_j) * known
    for _ in range(SHARING_ROUNDS):
        rows = (moves * np.sqrt(weights)[:, None, None]).reshape(-1, moves.shape[2])
        covariance = np.asarray(np.linalg.inv(rows.T @ rows), dtype=np.float64)
        weights = weights * _variances(moves, covariance) * known
    return np.asarray(1 / np.sqrt(weights), dtype=np.float64)


def _moves_in_i(i_from_j: Homographies, points_j: Points, outline: Outline) -> NDArray[np.float64]:
    """Return how the images of points (n, 2) move along each direction of the basis: (n, 2, 8)."""
    moves = moves_of_points(apply(outline.unit_from_pixels, points_j))
    return np.asarray(_slopes(i_from_j, points_j) @ np.swapaxes(moves, 1, 2), dtype=np.float64)


def _slopes(i_from_j: Homographies, points_j: Points) -> NDArray[np.float64]:
    """Return the derivatives (n, 2, 2) of a map at points (n, 2)."""
    depths = points_j @ i_from_j[2, :2] + i_from_j[2, 2]
    bent = apply_map(i_from_j, points_j)[:, :, None] * i_from_j[2, :2]
    return np.asarray((i_from_j[:2, :2] - bent) / depths[:, None, None], dtype=np.float64)


def _covariance(information: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance (k, k) of increments from the information (n, k, k) and the scores (n, k) of tiles."""
    inverse = np.linalg.pinv(information.sum(axis=0), rcond=1e-9, hermitian=True)
    count, k = scores.shape
    scattered = scores.T @ scores * (count / max(count - k / 2, 1))
    return np.asarray(inverse @ scattered @ inverse, dtype=np.float64)


def _variances(moves: NDArray[np.float64], covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance (n,) of a coordinate, averaged over both coordinates; moves (n, 2, k)."""
    return np.asarray(np.sum((moves @ covariance) * moves, axis=(1, 2)) / 2, dtype=np.float64)


def _bends(at: Points) -> NDArray[np.float64]:
    """Return how points (n, 2) move with the parameters of a map of second degree: (n, 2, 12)."""
    u, v = at.T
    moves = np.zeros((len(at), 2, 2, 6))
    moves[:, 0, 0] = moves[:, 1, 1] = np.stack([u, v, np.ones_like(u), u * u, u * v, v * v], axis=1)
    return moves.reshape(len(at), 2, -1)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two frames are under a map."""

    correlation: float  # of their features, -1 to 1
    excess: float  # over the correlation of shifted copies, in standard deviations


NO_LIKENESS = Likeness(0.0, 0.0)


def compare_with_chance(template: Planes, warped: Planes) -> Likeness:
    """Compare j with i warped to j, and with shifted copies of the latter.

    Copies that are shifted by more than the size of the detail show what likeness arises by chance in such frames: much
    more with stripes or little detail than with fine grain.
    """
    height, width = template.shape[1:]
    farthest = int(FARTHEST * min(height, width))
    overlap = template[3] * warped[3]
    energy = float((template[:3] ** 2 * overlap).sum()) * float((warped[:3] ** 2 * overlap).sum())
    if energy == 0:
        return NO_LIKENESS
    # Mask j to the overlap, so that all copies are compared with the same part of it.
    sides = (next_fast_len(height + farthest, True), next_fast_len(width + farthest, True))
    product = rfft2(warped * warped[3], sides) * np.conj(rfft2(template * overlap, sides))
    common, shared = irfft2(np.stack([product[:3].sum(axis=0), product[3]]), sides)
    rows, columns = (_circular(side) for side in sides)
    away = np.hypot(rows[:, None], columns)
    copies = (away >= NEAREST) & (away <= farthest) & (shared > LEAST_SHARE * shared[0, 0])
    if copies.sum() < FEWEST:
        return NO_LIKENESS
    # A sum over fewer pixels scatters less, so normalise it.
    chance = common[copies] / np.sqrt(shared[copies])
    excess = (common[0, 0] / np.sqrt(shared[0, 0]) - chance.mean()) / chance.std()
    return Likeness(float(common[0, 0]) / math.sqrt(energy), float(excess))


def _circular(side: int) -> NDArray[np.int64]:
    return (np.arange(side) + side // 2) % side - side // 2
