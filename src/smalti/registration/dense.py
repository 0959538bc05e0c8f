"""Register two frames by all of their pixels: landmarks with an honest σ, or the reason why not."""

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
from smalti.registration.pose_search import find_places
from smalti.registration.precision import Likeness, compare_with_chance, estimate_sigmas, share_information
from smalti.registration.robust_fit import FitSettings, find_fault

__all__ = ["DenseSettings", "Prepared", "prepare", "register"]

GRID = 9
"""Landmarks a side, before those outside the common field are left out."""

ANYWHERE = Expectation(np.eye(3), math.inf)

FEWEST = 12
"""Landmarks: of so many on the grid, never all lie on one line."""

NUDGE = np.array([[1.0, 0.0, 4.0], [0.0, 1.0, -3.0], [0.0, 0.0, 1.0]])
"""By which the way back starts beside the way forth, in pixels: a place that is right draws it in."""


@dataclass(frozen=True, slots=True)
class DenseSettings:
    """When an alignment is accepted."""

    least_shared: float = 0.15  # of the smaller field of view
    least_excess: float = 9.0  # of likeness over chance, in standard deviations: frames of two places reach 6
    least_likeness: float = 0.3  # a correlation: frames of two places reach 0.22, a map that is half right 0.26
    largest_disagreement_px: float = 1.5  # of the maps forth and back
    largest_sigma_px: float = 3.0  # of a coordinate of a mapped point
    plausible: FitSettings = field(default_factory=FitSettings)


def register(
    pair: Pair,
    in_i: Prepared,
    in_j: Prepared,
    expected: Sequence[Expectation],
    settings: DenseSettings | None = None,
) -> Answer:
    """Say yes with landmarks of the map found near one of the expected ones, or no and why.

    Expectations that no camera makes are passed over: between parts that only a guess joins, anything may come out.
    Where none is left, the frames are looked for anywhere.
    """
    settings = settings or DenseSettings()
    if not expected:
        raise UsageError(f"pair {pair}: give at least one expectation, with an infinite sigma_px if nothing is known")
    height, width = in_j.levels[0].shape[:2]
    possible = _plausible(expected, Outline.of_pixels(width, height), settings.plausible) or [ANYWHERE]
    needed = f"{settings.least_shared:.0%} of a field of view"
    found = descend(in_i, in_j, possible, settings.least_shared)
    if found is None:
        return Answer.no(pair, f"near the expected place the frames share less than {needed}")
    excess = found.likeness.excess
    if found.level > 0 or not excess >= settings.least_excess:
        return Answer.no(pair, f"the frames are hardly more similar than by chance ({excess:.1f} standard deviations)")
    likeness = found.likeness.correlation
    if not likeness >= settings.least_likeness:
        return Answer.no(pair, f"the similarity is only {likeness:.2f}, {settings.least_likeness:.2f} needed")
    fit = found.fit
    overlap = (fit.template[3] * fit.warped[3]) > 0
    shared = overlap.sum() / min(np.count_nonzero(frame.levels[0][..., 3]) for frame in (in_i, in_j))
    if shared < settings.least_shared:
        return Answer.no(pair, f"the frames share {shared:.0%}, less than {needed}")
    points_j = _spread_points(overlap)
    if len(points_j) < FEWEST:
        return Answer.no(pair, f"the frames share {shared:.0%} of a field of view, in a strip too narrow for a map")
    fault = find_fault(fit.i_from_j, points_j, settings.plausible)
    if fault:
        return Answer.no(pair, f"the most similar position needs a map that {fault}")
    sigmas = estimate_sigmas(fit, points_j)
    sigma = math.sqrt(float(np.mean(sigmas**2)))
    if not sigma <= settings.largest_sigma_px:
        return Answer.no(pair, f"the map is known only to {sigma:.1f} px, {settings.largest_sigma_px:.1f} needed")
    disagreement = _disagree(in_i, in_j, fit.i_from_j, points_j)
    if not disagreement <= settings.largest_disagreement_px:
        allowed = f"{settings.largest_disagreement_px:.1f} allowed"
        return Answer.no(pair, f"the maps in the two directions disagree by {disagreement:.1f} px, {allowed}")
    shares = share_information(fit, points_j, sigmas)
    landmarks = Landmarks(pair, apply_map(fit.i_from_j, points_j), points_j, shares)
    return Answer.yes(landmarks, f"similarity {likeness:.2f}, {excess:.0f} standard deviations above chance")


def _plausible(expected: Sequence[Expectation], outline: Outline, settings: FitSettings) -> list[Expectation]:
    """Return the expectations that a camera may make, (3, 3), without their perspective where only that is at fault."""
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


SMALLEST_SEARCHED = 40
"""Pixels a side of the level that is searched: a coarser one no longer tells places apart."""

SMALLEST_JUDGED = 150
"""The same of the level at which likeness is judged: it has enough pixels, and less noise than a finer one."""

PLACES = 8
"""Looked at closely, unless one of the first is clear."""

CLEAR, HOPELESS = 8.0, 6.0
"""Standard deviations above chance, one level below the searched one: no other place is looked at; no finer level is.
Of places where the frames do not coincide hardly one reaches the second, of those where they do few miss the first."""

SAME_PLACE = 1.0
"""Pixels of the searched level, at the corners: nearer ones would end at the same map."""

COARSE_ROUNDS, FINE_ROUNDS = 10, 8


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Where the search ended: at the finest level, or where it became hopeless."""

    fit: Fit
    level: int  # of the fit
    likeness: Likeness


def descend(in_i: Prepared, in_j: Prepared, expected: Sequence[Expectation], least_shared: float) -> Descent | None:
    """Find the best map near the expected ones; None where the frames cannot share `least_shared` of a field."""
    coarse = _coarsest_level(in_i, in_j, SMALLEST_SEARCHED)
    finer = max(coarse - 1, 0)
    judged = min(_coarsest_level(in_i, in_j, SMALLEST_JUDGED), max(finer - 1, 0))
    at_level = [Expectation(scale_map(known.i_from_j, -coarse), known.sigma_px / 2**coarse) for known in expected]
    height, width = in_j.levels[coarse].shape[:2]
    corners = Outline.of_pixels(width, height).corners
    best: Descent | None = None
    tried: list[Points] = []
    for place in find_places(in_i.levels[coarse], in_j.levels[coarse], at_level, PLACES, least_shared):
        rough = align(in_i.levels[coarse], in_j.levels[coarse], place.i_from_j, SIMILARITY, COARSE_ROUNDS)
        ends = apply_map(rough.i_from_j, corners)
        if any(np.abs(ends - other).max() < SAME_PLACE for other in tried):
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
        if level == judged:
            likeness = compare_with_chance(fit.template, fit.warped)
    return Descent(fit, 0, likeness)


def scale_map(i_from_j: Homographies, levels: int) -> Homographies:
    """Return a map (3, 3) in the pixels of so many finer levels."""
    scaled = np.array(i_from_j, dtype=np.float64)
    scaled[:2, 2] *= math.pow(2.0, levels)
    scaled[2, :2] *= math.pow(2.0, -levels)
    return scaled


def _coarsest_level(in_i: Prepared, in_j: Prepared, side: int) -> int:
    """Return the coarsest level whose sides are that long; if none are, the finest."""
    sides = [min(*a.shape[:2], *b.shape[:2]) for a, b in zip(in_i.levels, in_j.levels, strict=False)]
    return max((level for level, shortest in enumerate(sides) if shortest >= side), default=0)
