"""Fit a map robustly to matches with outliers, or return the reason why there is none (`fit_matches`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.records import Answer, Homographies, Landmarks, Pair, Points
from smalti.registration.feature_pyramid import tangent_at

EXTRA_INLIERS = 3
"""Inliers that a homography must have beyond those of the affine map.

By chance it has one more, as it starts from four matches instead of three, and at most two: measured on 679 pairs of
frames from different places."""

Estimate: TypeAlias = tuple[Homographies | None, NDArray[np.bool_]]
"""The map (3, 3) that most matches agree on, None if there is none, and the inliers."""


@dataclass(frozen=True, slots=True)
class FitSettings:
    """Thresholds for accepting matches as an overlap."""

    threshold_px: float = 3.0
    least_inliers: int = 10
    least_share: float = 0.1  # share of the matches that must agree, beyond `least_inliers`
    least_share_in_common: float = 0.0  # of the matches in the common field, as the map has it, that must agree
    largest_scale: float = 4.0  # of one frame in the other
    largest_stretch: float = 2.0  # the longer axis over the shorter
    largest_perspective: float = 2.0  # the farthest landmark's distance over the nearest's
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Consensus:
    """The map that most matches agree on."""

    i_from_j: Homographies  # (3, 3)
    j_from_i: Homographies  # (3, 3), estimated separately
    inliers: NDArray[np.bool_]


def fit_matches(pair: Pair, points_i: Points, points_j: Points, outline: Outline, settings: FitSettings) -> Answer:
    """Answer yes with the matches (n, 2) that agree on a map, or "cannot tell" with the reason.

    The map is affine, or a homography if that has clearly more inliers. It is estimated robustly in each direction. The
    two estimates must agree, and be plausible for a camera over a flat scene.
    """
    if len(points_i) < settings.least_inliers:
        return Answer.unsure(pair, f"{len(points_i)} matches, {settings.least_inliers} needed")
    affine = _estimate_both_ways(_robust_affine, points_i, points_j, settings)
    affine_inliers = 0 if affine is None else int(affine.inliers.sum())
    found, rejection = affine, _rejection(affine, points_i, points_j, outline, settings)
    if len(points_i) >= affine_inliers + EXTRA_INLIERS:
        homography = _estimate_both_ways(_robust_homography, points_i, points_j, settings)
        if homography is not None and homography.inliers.sum() >= affine_inliers + EXTRA_INLIERS:
            homography_rejection = _rejection(homography, points_i, points_j, outline, settings)
            if rejection or not homography_rejection:
                found, rejection = homography, homography_rejection
    if rejection or found is None:
        return Answer.unsure(pair, rejection)
    inliers = found.inliers
    landmarks = Landmarks(pair, points_i[inliers], points_j[inliers])
    if not landmarks.determine_affine:
        return Answer.unsure(pair, f"{inliers.sum()} matches agree, but lie on one line")
    return Answer.yes(landmarks, f"{inliers.sum()} of {len(points_i)} matches agree")


def _rejection(
    found: _Consensus | None, points_i: Points, points_j: Points, outline: Outline, settings: FitSettings
) -> str:
    """Return why a consensus is not accepted; empty if it is."""
    if found is None:
        return f"no map fits any of the {len(points_i)} matches"
    needed = settings.least_inliers + round(settings.least_share * len(points_i))
    count, agreed = found.inliers.sum(), points_j[found.inliers]
    if count < needed:
        return f"{count} of {len(points_i)} matches agree, {needed} needed"
    needed = round(settings.least_share_in_common * _in_common(found, points_i, points_j, outline))
    if count < needed:
        return f"{count} matches agree, {needed} needed in so large a common field"
    fault = find_fault(found.i_from_j, agreed, settings) or find_horizon(found.i_from_j, outline.corners)
    if fault:
        return f"{count} matches agree on a map that {fault}"
    there_and_back = apply_map(found.j_from_i @ found.i_from_j, agreed) - agreed
    disagreement = float(np.sqrt(np.mean(np.sum(there_and_back**2, axis=1))))
    allowed = max(settings.threshold_px, 0.01 * 2 * outline.outer_half_side)
    if not disagreement <= allowed:
        return f"the maps in the two directions disagree by {disagreement:.1f} px, {allowed:.1f} allowed"
    return ""


def _in_common(found: _Consensus, points_i: Points, points_j: Points, outline: Outline) -> int:
    """Return how many matches are of points that both frames show if the map is right."""
    with np.errstate(divide="ignore", invalid="ignore"):
        in_i = outline.contains(apply_map(found.i_from_j, points_j))
        in_j = outline.contains(apply_map(found.j_from_i, points_i))
    return int(min(in_i.sum(), in_j.sum()))


def find_fault(i_from_j: Homographies, points_j: Points, settings: FitSettings) -> str:
    """Return what is wrong with a map (3, 3) over points (n, 2); empty if it is plausible for a flat scene."""
    horizon = find_horizon(i_from_j, points_j)
    if horizon:
        return horizon
    nearest, farthest = np.sort(np.abs(_depths(i_from_j, points_j)))[[0, -1]]
    if farthest > settings.largest_perspective * nearest:
        return f"brings one side {farthest / nearest:.2g} times as near as the other"
    linear = tangent_at(i_from_j, points_j.mean(axis=0))[:2, :2]
    if not np.linalg.det(linear) > 0:
        return "mirrors the frame"
    longer, shorter = np.linalg.svd(linear, compute_uv=False)
    if longer > settings.largest_scale or shorter < 1.0 / settings.largest_scale:
        return f"scales by {longer:.2g} and {shorter:.2g}"
    if longer > settings.largest_stretch * shorter:
        return f"stretches one side {longer / shorter:.2g} times"
    return ""


def find_horizon(i_from_j: Homographies, points_j: Points) -> str:
    """Return a fault if points (n, 2) lie on both sides of a map's horizon: some would be behind the camera of i."""
    depths = _depths(i_from_j, points_j)
    return "" if depths.min() * depths.max() > 0 else "has its horizon in the frame"


def _depths(i_from_j: Homographies, points_j: Points) -> NDArray[np.float64]:
    return np.asarray(points_j @ i_from_j[2, :2] + i_from_j[2, 2], dtype=np.float64)


def _estimate_both_ways(
    estimate: Callable[[Points, Points, FitSettings], Estimate],
    points_i: Points,
    points_j: Points,
    settings: FitSettings,
) -> _Consensus | None:
    forth, inliers = estimate(points_j, points_i, settings)
    back, _ = estimate(points_i, points_j, settings)
    return None if forth is None or back is None else _Consensus(forth, back, inliers)


def _robust_affine(source: Points, target: Points, settings: FitSettings) -> Estimate:
    found, inliers = cv2.estimateAffine2D(source.astype(np.float32), target.astype(np.float32), _magsac(settings))
    return _checked(None if found is None else square(np.asarray(found, dtype=np.float64)), inliers, len(source))


def _robust_homography(source: Points, target: Points, settings: FitSettings) -> Estimate:
    found, inliers = cv2.findHomography(source.astype(np.float32), target.astype(np.float32), _magsac(settings))
    return _checked(found, inliers, len(source))


def _checked(found: NDArray[Any] | None, inliers: NDArray[Any] | None, count: int) -> Estimate:
    if found is None or inliers is None or not np.isfinite(found).all():
        return None, np.zeros(count, dtype=bool)
    return np.asarray(found, dtype=np.float64), np.asarray(inliers, dtype=bool).ravel()


def _magsac(settings: FitSettings) -> cv2.UsacParams:
    parameters = cv2.UsacParams()
    parameters.threshold = settings.threshold_px
    parameters.confidence = 0.9999
    parameters.maxIterations = 5000
    parameters.score = cv2.SCORE_METHOD_MAGSAC
    parameters.loMethod = cv2.LOCAL_OPTIM_SIGMA
    parameters.final_polisher = cv2.MAGSAC
    parameters.final_polisher_iterations = 3
    parameters.randomGeneratorState = settings.seed
    return parameters
