"""Register two frames by all of their pixels: landmarks with a realistic σ, or the reason why not.

`register` does all of it. `descend` searches from the coarsest level to the finest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.homographies import PROJECTIVE, SIMILARITY, apply_map
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.records import Answer, Expectation, Homographies, Landmarks, Pair, Points
from smalti.registration.alignment import Fit, align
from smalti.registration.feature_pyramid import Prepared, prepare, tangent_at
from smalti.registration.pose_search import find_poses
from smalti.registration.precision import Likeness, compare_with_chance, estimate_sigmas, share_information
from smalti.registration.robust_fit import FitSettings, find_fault

__all__ = ["DenseSettings", "Prepared", "prepare", "register"]

GRID = 9
"""Landmarks a side, before those outside the common field are left out."""

ANYWHERE = Expectation(np.eye(3), math.inf)

FEWEST = 12
"""Fewest landmarks: 12 points of the grid never all lie on one line."""

NUDGE = np.array([[1.0, 0.0, 4.0], [0.0, 1.0, -3.0], [0.0, 0.0, 1.0]])
"""Offset of the backward alignment's start, in pixels: at the right pose the alignment converges all the same."""

SMALLEST_SEARCHED = 40
"""Pixels a side of the searched level: a coarser one does not distinguish poses."""

SMALLEST_COMPARED = 150
"""Pixels a side of the level at which likeness is measured: it has enough pixels, and less noise than a finer one."""

POSES = 8
"""Poses that are refined, unless one of the first is clear."""

CLEAR, HOPELESS = 8.0, 6.0
"""Standard deviations above chance, one level below the searched one.

Above the first, no other pose is refined. Below the second, no finer level is used. Hardly any wrong pose reaches the
second; few right ones miss the first."""

SAME_POSE = 1.0
"""Pixels of the searched level, at the corners: nearer poses would converge to the same map."""

COARSE_ROUNDS, FINE_ROUNDS = 10, 8


@dataclass(frozen=True, slots=True)
class DenseSettings:
    """Thresholds for accepting an alignment."""

    least_shared: float = 0.15  # share of the smaller field of view
    least_excess: float = 9.0  # likeness over chance, in standard deviations: frames of two places reach 6
    least_likeness: float = 0.3  # a correlation: frames of two places reach 0.22, a map that is half right 0.26
    largest_disagreement_px: float = 1.5  # between the maps forth and back
    largest_sigma_px: float = 3.0  # of a coordinate of a mapped point
    plausible: FitSettings = field(default_factory=FitSettings)


def register(
    pair: Pair,
    in_i: Prepared,
    in_j: Prepared,
    expected: Sequence[Expectation],
    settings: DenseSettings | None = None,
) -> Answer:
    """Answer yes with landmarks of a map near one of the expected ones, or "cannot tell" with the reason.

    Implausible expectations are skipped: between parts that only a guess joins, any map may come out. If none is left,
    all relative positions are searched.
    """
    settings = settings or DenseSettings()
    if not expected:
        raise UsageError(f"pair {pair}: give at least one expectation, with an infinite sigma_px if nothing is known")
    height, width = in_j.levels[0].shape[:2]
    possible = _plausible(expected, Outline.of_pixels(width, height), settings.plausible) or [ANYWHERE]
    needed = f"{settings.least_shared:.0%} of a field of view"
    found = descend(in_i, in_j, possible, settings.least_shared)
    if found is None:
        return Answer.unsure(pair, f"near the expected place the frames share less than {needed}")
    excess = found.likeness.excess
    if found.level > 0 or not excess >= settings.least_excess:
        return Answer.unsure(pair, "the frames are hardly more similar than by chance")
    likeness = found.likeness.correlation
    if not likeness >= settings.least_likeness:
        return Answer.unsure(pair, f"the similarity is only {likeness:.2f}, {settings.least_likeness:.2f} needed")
    fit = found.fit
    overlap = (fit.template[3] * fit.warped[3]) > 0
    shared = overlap.sum() / min(np.count_nonzero(frame.levels[0][..., 3]) for frame in (in_i, in_j))
    if shared < settings.least_shared:
        return Answer.unsure(pair, f"the frames share {shared:.0%}, less than {needed}")
    points_j = _spread_points(overlap)
    if len(points_j) < FEWEST:
        return Answer.unsure(pair, f"the frames share {shared:.0%} of a field of view, in a strip too narrow for a map")
    fault = find_fault(fit.i_from_j, points_j, settings.plausible)
    if fault:
        return Answer.unsure(pair, f"the most similar position needs a map that {fault}")
    sigmas = estimate_sigmas(fit, points_j)
    sigma = math.sqrt(float(np.mean(sigmas**2)))
    if not sigma <= settings.largest_sigma_px:
        return Answer.unsure(pair, f"the map is known only to {sigma:.1f} px, {settings.largest_sigma_px:.1f} needed")
    disagreement = _disagree(in_i, in_j, fit.i_from_j, points_j)
    if not disagreement <= settings.largest_disagreement_px:
        allowed = f"{settings.largest_disagreement_px:.1f} allowed"
        return Answer.unsure(pair, f"the maps in the two directions disagree by {disagreement:.1f} px, {allowed}")
    shares = share_information(fit, points_j, sigmas)
    landmarks = Landmarks(pair, apply_map(fit.i_from_j, points_j), points_j, shares)
    return Answer.yes(landmarks, f"similarity {likeness:.2f} of at most 1")


def _plausible(expected: Sequence[Expectation], outline: Outline, settings: FitSettings) -> list[Expectation]:
    """Return the plausible expectations, (3, 3); without their perspective if only that is implausible."""
    found = []
    for known in expected:
        whole = square(known.i_from_j) if known.i_from_j.shape == (2, 3) else known.i_from_j
        if not find_fault(whole, outline.corners, settings):
            found.append(Expectation(whole, known.sigma_px))
        elif not find_fault(whole, outline.centre[None], settings):
            found.append(Expectation(tangent_at(whole, outline.centre), known.sigma_px))
    return found


def _disagree(in_i: Prepared, in_j: Prepared, i_from_j: Homographies, points_j: Points) -> float:
    """Return how far points (n, 2) end from where they began when they are mapped there and back, RMS."""
    coarsest = min(len(in_i.levels), len(in_j.levels)) - 1
    back = NUDGE @ np.linalg.inv(i_from_j)
    for wanted, family, rounds in ((2, SIMILARITY, COARSE_ROUNDS), (1, PROJECTIVE, FINE_ROUNDS)):
        level = min(wanted, coarsest)
        fit = align(in_j.levels[level], in_i.levels[level], scale_map(back, -level), family, rounds)
        back = scale_map(fit.i_from_j, level)
    off = apply_map(back @ i_from_j, points_j) - points_j
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


def _spread_points(overlap: NDArray[np.bool_]) -> Points:
    """Return points (n, 2) on a grid over the common field (h, w)."""
    rows, columns = np.flatnonzero(overlap.any(axis=1)), np.flatnonzero(overlap.any(axis=0))
    y = np.rint(np.linspace(rows[0], rows[-1], GRID + 2)[1:-1]).astype(int)
    x = np.rint(np.linspace(columns[0], columns[-1], GRID + 2)[1:-1]).astype(int)
    inside = overlap[np.ix_(y, x)]
    return np.column_stack([np.broadcast_to(axis, inside.shape)[inside] for axis in (x, y[:, None])]).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """The result of the search: at the finest level, or at the level where it became hopeless."""

    fit: Fit
    level: int  # of the fit
    likeness: Likeness


def descend(in_i: Prepared, in_j: Prepared, expected: Sequence[Expectation], least_shared: float) -> Descent | None:
    """Find the best map near the expected ones; None if the frames cannot share `least_shared` of a field."""
    coarse = _coarsest_level(in_i, in_j, SMALLEST_SEARCHED)
    finer = max(coarse - 1, 0)
    compared = min(_coarsest_level(in_i, in_j, SMALLEST_COMPARED), max(finer - 1, 0))
    at_level = [Expectation(scale_map(known.i_from_j, -coarse), known.sigma_px / 2**coarse) for known in expected]
    height, width = in_j.levels[coarse].shape[:2]
    corners = Outline.of_pixels(width, height).corners
    best: Descent | None = None
    tried: list[Points] = []
    for pose in find_poses(in_i.levels[coarse], in_j.levels[coarse], at_level, POSES, least_shared):
        rough = align(in_i.levels[coarse], in_j.levels[coarse], pose.i_from_j, SIMILARITY, COARSE_ROUNDS)
        ends = apply_map(rough.i_from_j, corners)
        if any(np.abs(ends - other).max() < SAME_POSE for other in tried):
            continue
        tried.append(ends)
        start = scale_map(rough.i_from_j, coarse - finer)
        fit = align(in_i.levels[finer], in_j.levels[finer], start, SIMILARITY, COARSE_ROUNDS)
        likeness = compare_with_chance(fit.template, fit.warped)
        if best is None or likeness.excess > best.likeness.excess:
            best = Descent(fit, finer, likeness)
        if likeness.excess > CLEAR:
            break
    if best is None or not best.likeness.excess >= HOPELESS:
        return best
    fit, likeness = best.fit, best.likeness
    for level in range(finer, -1, -1):
        start = scale_map(fit.i_from_j, 0 if level == finer else 1)
        fit = align(in_i.levels[level], in_j.levels[level], start, PROJECTIVE, FINE_ROUNDS)
        if level == compared:
            likeness = compare_with_chance(fit.template, fit.warped)
    return Descent(fit, 0, likeness)


def scale_map(i_from_j: Homographies, levels: int) -> Homographies:
    """Convert a map (3, 3) to the pixels of a level that is finer by `levels`."""
    scaled = np.array(i_from_j, dtype=np.float64)
    scaled[:2, 2] *= math.pow(2.0, levels)
    scaled[2, :2] *= math.pow(2.0, -levels)
    return scaled


def _coarsest_level(in_i: Prepared, in_j: Prepared, side: int) -> int:
    """Return the coarsest level with sides of at least this length; if there is none, the finest."""
    sides = [min(*a.shape[:2], *b.shape[:2]) for a, b in zip(in_i.levels, in_j.levels, strict=False)]
    return max((level for level, shortest in enumerate(sides) if shortest >= side), default=0)
