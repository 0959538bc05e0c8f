"""From matches, some of them wrong, to the map that the right ones agree on, or to the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.link import check_landmarks
from smalti.errors import LandmarkError
from smalti.geometry.affine import apply
from smalti.geometry.outline import Outline
from smalti.records import Answer, Landmarks, Pair, Points, Transforms


@dataclass(frozen=True, slots=True)
class FitSettings:
    """When matches are believed to show an overlap."""

    threshold_px: float = 3.0
    least_inliers: int = 10
    least_share: float = 0.1  # of the matches must agree, beyond `least_inliers`
    largest_scale: float = 4.0  # one frame enlarged in the other
    largest_stretch: float = 2.0  # of the longer axis over the shorter
    seed: int = 0


def fit_matches(pair: Pair, points_i: Points, points_j: Points, outline: Outline, settings: FitSettings) -> Answer:
    """Say yes with the matches (n, 2) that agree on a map, or no and why.

    An affine map is estimated robustly in each direction: the two must agree, and be plausible for a camera over a flat
    scene. The landmarks are then all matches that fit one homography near it, so that perspective does not cost the
    frame's rim.
    """
    needed = settings.least_inliers + round(settings.least_share * len(points_i))
    if len(points_i) < settings.least_inliers:
        return Answer.no(pair, f"{len(points_i)} matches, {settings.least_inliers} needed")
    forth, agreeing = _robust_affine(points_j, points_i, settings)
    back, _ = _robust_affine(points_i, points_j, settings)
    if forth is None or back is None:
        return Answer.no(pair, f"no map fits any of the {len(points_i)} matches")
    if agreeing.sum() < needed:
        return Answer.no(pair, f"{agreeing.sum()} of {len(points_i)} matches agree, {needed} needed")
    fault = find_fault(forth, settings)
    if fault:
        return Answer.no(pair, f"{agreeing.sum()} matches agree on a map that {fault}")
    there_and_back = apply(back, apply(forth, points_j[agreeing])) - points_j[agreeing]
    disagreement = float(np.sqrt(np.mean(np.sum(there_and_back**2, axis=1))))
    allowed = max(settings.threshold_px, 0.01 * 2 * outline.outer_half_side)
    if not disagreement <= allowed:
        return Answer.no(pair, f"the maps forth and back disagree by {disagreement:.1f} px, {allowed:.1f} allowed")
    chosen = _near_homography(points_i, points_j, agreeing, settings)
    landmarks = Landmarks(pair, points_i[chosen], points_j[chosen])
    try:
        check_landmarks(landmarks)
    except LandmarkError:
        return Answer.no(pair, f"{agreeing.sum()} matches agree, but lie on one line")
    return Answer.yes(landmarks, f"{chosen.sum()} of {len(points_i)} matches agree")


def _robust_affine(
    source: Points, target: Points, settings: FitSettings
) -> tuple[Transforms | None, NDArray[np.bool_]]:
    """Return the map (2, 3) most matches agree on by MAGSAC, None where there is none, and which ones agree."""
    parameters = cv2.UsacParams()
    parameters.threshold = settings.threshold_px
    parameters.confidence = 0.9999
    parameters.maxIterations = 5000
    parameters.score = cv2.SCORE_METHOD_MAGSAC
    parameters.loMethod = cv2.LOCAL_OPTIM_SIGMA
    parameters.final_polisher = cv2.MAGSAC
    parameters.final_polisher_iterations = 3
    parameters.randomGeneratorState = settings.seed
    found, inliers = cv2.estimateAffine2D(source.astype(np.float32), target.astype(np.float32), parameters)
    if found is None or inliers is None or not np.isfinite(found).all():
        return None, np.zeros(len(source), dtype=bool)
    return np.asarray(found, dtype=np.float64), np.asarray(inliers, dtype=bool).ravel()


def find_fault(i_from_j: Transforms, settings: FitSettings) -> str:
    """Say what is wrong with a map, nothing if it may be a camera's."""
    linear = i_from_j[:, :2]
    if np.linalg.det(linear) <= 0:
        return "mirrors the frame"
    longer, shorter = np.linalg.svd(linear, compute_uv=False)
    if longer > settings.largest_scale or shorter < 1.0 / settings.largest_scale:
        return f"scales by {longer:.2g} and {shorter:.2g}"
    if longer > settings.largest_stretch * shorter:
        return f"stretches one side {longer / shorter:.2g} times"
    return ""


def _near_homography(
    points_i: Points, points_j: Points, agreeing: NDArray[np.bool_], settings: FitSettings
) -> NDArray[np.bool_]:
    """Return which matches fit the homography that grows from those of the affine map; these, if none is better."""
    chosen = agreeing
    for _ in range(5):
        homography, _ = cv2.findHomography(points_j[chosen], points_i[chosen], 0)
        if homography is None:
            return agreeing
        mapped = cv2.perspectiveTransform(points_j[:, None].astype(np.float64), homography)[:, 0]
        grown = np.linalg.norm(mapped - points_i, axis=1) <= settings.threshold_px
        if (grown == chosen).all():
            break
        if grown.sum() < chosen.sum():
            return agreeing
        chosen = grown
    return chosen
