"""Two frames' features brought to coincide, from a start that is nearly right, by robust Gauss-Newton steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.affine import compose, square
from smalti.geometry.family import Family
from smalti.geometry.outline import Outline
from smalti.records import Transforms
from smalti.registration.evidence import Evidence, gather_evidence
from smalti.registration.pyramid import Level
from smalti.registration.warp import Planes, pixels_of, planes_of, warp

SETTLED = 0.03
"""Pixels of a level, at the corners of the frame: smaller steps end the search."""

LONGEST_STEP = 1.0
"""Pixels of a level, at the same place: beyond that, slopes say nothing."""

SHEAR_SIGMA = 0.05
"""How much a map is expected to shear or to stretch one side: keeps frames with little texture from doing so."""

SAME_NOISE = 12.0
"""Pixels of a level that share their noise: against the expected shear, n pixels count as n/12."""

LEAST_OF_SCENE = 0.25
"""Of the slopes, squared, that is taken to be the scene's: before frames coincide, they have nothing in common."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Where an alignment ended, and what was seen there."""

    i_from_j: Transforms  # (2, 3), pixels of the level
    template: Planes
    warped: Planes
    evidence: Evidence


def align(in_i: Level, in_j: Level, start: Transforms, family: Family, rounds: int) -> Fit:
    """Improve a map i_from_j (2, 3), in pixels of the level, by increments of the family."""
    height, width = in_j.shape[:2]
    outline = Outline.of_pixels(width, height)
    unit_from_pixels = square(outline.unit_from_pixels)
    directions = family.tangent.reshape(family.freedom, 6)
    template, source = planes_of(in_j), pixels_of(in_i)
    i_from_j = np.array(start, dtype=np.float64)
    while True:
        warped = warp(source, i_from_j, height, width)
        evidence = gather_evidence(template, warped)
        if rounds <= 0 or not evidence.shared.any():
            return Fit(i_from_j, template, warped, evidence)
        information, score = _expect_no_shear(evidence, i_from_j, outline.unit)
        small = directions @ information @ directions.T
        small += 1e-6 * (np.trace(small) + 1e-6) * np.eye(family.freedom)
        step = -directions.T @ np.linalg.solve(small, directions @ score)
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-9))
        i_from_j = compose(i_from_j, np.eye(2, 3) + step.reshape(2, 3) @ unit_from_pixels)
        rounds = rounds - 1 if np.abs(step).max() > SETTLED else 0


def _expect_no_shear(
    evidence: Evidence, i_from_j: Transforms, unit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return information (6, 6) and score (6,) of all tiles, and of the map being a similarity to SHEAR_SIGMA."""
    squared = i_from_j[:, :2].T @ i_from_j[:, :2]
    shears = np.array([(squared[0, 0] - squared[1, 1]) / 2, squared[0, 1]]) / np.trace(squared)
    slopes = np.array([[1.0, 0, 0, 0, -1, 0], [0, 1, 0, 1, 0, 0]]) / (2 * unit)
    weight = SAME_NOISE * (evidence.spread / SHEAR_SIGMA) ** 2
    # Noise makes slopes steeper than the scene has them, and steps too short: by how much, the two frames tell.
    of_both, of_mean = evidence.information.sum(axis=0), evidence.steepness.sum(axis=0)
    of_scene = float(np.clip(np.trace(of_both) / max(np.trace(of_mean), 1e-12), LEAST_OF_SCENE, 1.0))
    information = of_scene * of_mean + weight * slopes.T @ slopes
    return information, evidence.scores.sum(axis=0) + weight * slopes.T @ shears
