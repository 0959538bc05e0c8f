"""Two frames registered by all of their pixels: landmarks with an honest σ, or the reason why not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.affine import square
from smalti.geometry.maps import PROJECTIVE, SIMILARITY, apply_map
from smalti.geometry.outline import Outline
from smalti.records import Answer, Expectation, Homographies, Landmarks, Pair, Points
from smalti.registration.alignment import align
from smalti.registration.descent import COARSE_ROUNDS, FINE_ROUNDS, descend, scale_map
from smalti.registration.fitting import FitSettings, find_fault
from smalti.registration.precision import estimate_sigmas, share_information
from smalti.registration.pyramid import Prepared, prepare
from smalti.registration.warp import tangent_at

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
    """When an alignment is believed."""

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
        return Answer.no(pair, f"nowhere near the expected place do the frames share {needed}")
    excess = found.likeness.excess
    if found.level > 0 or not excess >= settings.least_excess:
        return Answer.no(pair, f"the frames are hardly more alike than by chance ({excess:.1f} standard deviations)")
    likeness = found.likeness.correlation
    if not likeness >= settings.least_likeness:
        return Answer.no(pair, f"the frames are alike by {likeness:.2f} only, {settings.least_likeness:.2f} needed")
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
        return Answer.no(pair, f"the frames are most alike under a map that {fault}")
    sigmas = estimate_sigmas(fit, points_j)
    sigma = math.sqrt(float(np.mean(sigmas**2)))
    if not sigma <= settings.largest_sigma_px:
        return Answer.no(pair, f"the map is known to {sigma:.1f} px only, {settings.largest_sigma_px:.1f} needed")
    disagreement = _disagree(in_i, in_j, fit.i_from_j, points_j)
    if not disagreement <= settings.largest_disagreement_px:
        allowed = f"{settings.largest_disagreement_px:.1f} allowed"
        return Answer.no(pair, f"the maps forth and back disagree by {disagreement:.1f} px, {allowed}")
    shares = share_information(fit, points_j, sigmas)
    landmarks = Landmarks(pair, apply_map(fit.i_from_j, points_j), points_j, shares)
    return Answer.yes(landmarks, f"alike by {likeness:.2f}, {excess:.0f} standard deviations over chance")


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
