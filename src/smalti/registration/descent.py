"""From the places that a coarse level offers down to the map that the finest one settles on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smalti.geometry.maps import PROJECTIVE, SIMILARITY, apply_map
from smalti.geometry.outline import Outline
from smalti.records import Expectation, Homographies, Points
from smalti.registration.alignment import Fit, align
from smalti.registration.chance import Likeness, compare_with_chance
from smalti.registration.pyramid import Prepared
from smalti.registration.search import find_places

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
