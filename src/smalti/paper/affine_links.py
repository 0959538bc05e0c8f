"""A pair's landmarks, condensed to what the linear adjustment needs of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import LandmarkError
from smalti.geometry.affine import homogeneous, square
from smalti.geometry.family import AFFINE, Family
from smalti.records import Landmarks, Pair, Transforms, are_collinear

MIN_LANDMARKS = 3


@dataclass(frozen=True, slots=True, eq=False)
class AffineLink:
    """The sufficient statistic of a pair: its fitted map and a square root of its points' second moments.

    Differs from the paper: minimising its bundle adjustment on the raw landmarks shrinks the mosaic to nothing, because
    their residuals of the fit cost less in a smaller mosaic. With T̂ fitted first and R Rᵀ = Σ x̃_j x̃_jᵀ/σ², the pair
    costs |(Θ_j - Θ_i T̂) R|², as if it had three landmarks: the columns of R in j and of T̂ R in i, each with noise of
    variance one. σ is what the landmarks say.
    """

    pair: Pair
    i_from_j: Transforms  # (2, 3)
    root: NDArray[np.float64]  # (3, 3)
    residual_px: float  # RMS distance between the landmarks in i and those of j mapped there
    landmarks: int


def fit_affine_link(landmarks: Landmarks, family: Family = AFFINE) -> AffineLink:
    """Fit the pair's map in `family`, weighted by 1/σ, and condense the landmarks."""
    check_landmarks(landmarks)
    points_i, points_j = landmarks.points_i, landmarks.points_j
    weights = landmarks.weights

    # Both sides share one scale, so that a translation or similarity stays one; the centres are their own.
    centre_i, centre_j = points_i.mean(axis=0), points_j.mean(axis=0)
    scale = float(np.sqrt(np.mean((points_j - centre_j) ** 2)))
    local = family.fit((points_i - centre_i) / scale, (points_j - centre_j) / scale, weights)
    linear = local[:, :2]
    shift = scale * local[:, 2] + centre_i - linear @ centre_j
    i_from_j = np.column_stack([linear, shift])
    if np.linalg.det(linear) <= 0:
        raise LandmarkError(
            f"pair {landmarks.pair}: the landmarks show frame {landmarks.pair.j} mirrored in frame "
            f"{landmarks.pair.i}, check whether two of them are exchanged"
        )

    # A QR factor of the points themselves keeps the digits that their second moments would lose.
    _, upper = np.linalg.qr(homogeneous(points_j) * weights[:, None])
    residuals = homogeneous(points_j) @ i_from_j.T - points_i
    return AffineLink(
        pair=landmarks.pair,
        i_from_j=i_from_j,
        root=upper.T,
        residual_px=float(np.sqrt(np.mean(np.sum(residuals**2, axis=1)))),
        landmarks=len(landmarks),
    )


def check_landmarks(landmarks: Landmarks) -> None:
    """Refuse landmarks that determine no affine map, and say why."""
    if len(landmarks) < MIN_LANDMARKS:
        raise LandmarkError(
            f"pair {landmarks.pair}: {len(landmarks)} landmarks are too few for the paper's method, "
            f"give at least {MIN_LANDMARKS} that are not on one line"
        )
    for frame, points in ((landmarks.pair.i, landmarks.points_i), (landmarks.pair.j, landmarks.points_j)):
        if are_collinear(points):
            raise LandmarkError(
                f"pair {landmarks.pair}: the landmarks in frame {frame} are collinear and leave the map free "
                "to shear, add one away from their line"
            )


def pseudo_points(
    i_from_j: Transforms, root: NDArray[np.float64], unit_from_pixels: Transforms
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pseudo-points (..., 3, 3) of links in i and in j, a column each, in the adjustment's units."""
    to_unit = square(unit_from_pixels)
    return to_unit @ square(i_from_j) @ root, to_unit @ root
