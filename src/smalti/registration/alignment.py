"""Two frames' features brought to coincide, from a start that is nearly right, by robust Gauss-Newton steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.affine import square
from smalti.geometry.maps import PERSPECTIVE_X, STRETCH_1, Family, exponential, normalise
from smalti.geometry.outline import Outline
from smalti.records import Homographies
from smalti.registration.evidence import Evidence, gather_evidence, moves_of_tiles
from smalti.registration.pyramid import Level
from smalti.registration.warp import Planes, pixels_of, planes_of, tangent_at, warp

SETTLED = 0.03
"""Pixels of a level, at the corners of the frame: smaller steps end the search."""

LONGEST_STEP = 1.0
"""Pixels of a level, at the same place: beyond that, slopes say nothing."""

SHEAR_SIGMA = 0.05
"""How much a map is expected to shear or to stretch one side: keeps frames with little texture from doing so."""

PERSPECTIVE_SIGMA = 0.05
"""How much nearer than its centre one side of a frame is expected to come, relatively: as a camera that sees 60° makes
it when it tilts by 5°. Texture tells perspective to a few hundredths of that; frames with little of it must not
tilt."""

SAME_NOISE = 12.0
"""Pixels of a level that share their noise: against the expected shear, n pixels count as n/12."""

LEAST_OF_SCENE = 0.25
"""Of the slopes, squared, that is taken to be the scene's: before frames coincide, they have nothing in common."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Where an alignment ended, and what was seen there."""

    i_from_j: Homographies  # (3, 3), pixels of the level
    template: Planes
    warped: Planes
    evidence: Evidence


def align(in_i: Level, in_j: Level, start: Homographies, family: Family, rounds: int) -> Fit:
    """Improve a map i_from_j (3, 3), in pixels of the level, by increments of the family."""
    height, width = in_j.shape[:2]
    outline = Outline.of_pixels(width, height)
    unit_from_pixels = square(outline.unit_from_pixels)
    pixels_from_unit = np.linalg.inv(unit_from_pixels)
    moves = moves_of_tiles(outline)[:, : family.freedom]
    template, source = planes_of(in_j), pixels_of(in_i)
    i_from_j = np.array(start, dtype=np.float64)
    while True:
        warped = warp(source, i_from_j, height, width)
        evidence = gather_evidence(template, warped)
        if rounds <= 0 or not evidence.shared.any():
            return Fit(i_from_j, template, warped, evidence)
        information, score = _weigh(evidence, moves)
        expected, pull = _expect_a_plain_view(evidence, i_from_j, outline)
        information += np.diag(expected[: family.freedom])
        information += 1e-6 * (np.trace(information) + 1e-6) * np.eye(family.freedom)
        step = -np.asarray(np.linalg.solve(information, score + pull[: family.freedom]), dtype=np.float64)
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-9))
        moved = pixels_from_unit @ exponential(step[None] / outline.unit)[0] @ unit_from_pixels
        i_from_j = normalise(i_from_j @ moved)
        rounds = rounds - 1 if np.abs(step).max() > SETTLED else 0


def _weigh(evidence: Evidence, moves: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return information (k, k) and score (k,) of all tiles, for k directions that move tiles by (tiles, k, 6)."""
    # Noise makes slopes steeper than the scene has them, and steps too short: by how much, the two frames tell.
    of_both, of_mean = evidence.information.sum(axis=0), evidence.steepness.sum(axis=0)
    of_scene = float(np.clip(np.trace(of_both) / max(np.trace(of_mean), 1e-12), LEAST_OF_SCENE, 1.0))
    information = of_scene * (moves @ evidence.steepness @ np.swapaxes(moves, 1, 2)).sum(axis=0)
    return information, np.einsum("nka,na->k", moves, evidence.scores)


def _expect_a_plain_view(
    evidence: Evidence, i_from_j: Homographies, outline: Outline
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return information (8,) and score (8,) of a map that is a similarity but for what the two sigmas allow."""
    linear = tangent_at(i_from_j, outline.centre)[:2, :2]
    squared = linear.T @ linear
    shears = np.array([(squared[0, 0] - squared[1, 1]) / 2, squared[0, 1]]) / np.trace(squared)
    tilts = outline.unit * i_from_j[2, :2] / (i_from_j[2] @ np.array([*outline.centre, 1.0]))
    information, score = np.zeros(8), np.zeros(8)
    for first, offs, sigma in ((STRETCH_1, shears, SHEAR_SIGMA), (PERSPECTIVE_X, tilts, PERSPECTIVE_SIGMA)):
        weight = SAME_NOISE * (evidence.spread / sigma) ** 2
        information[first : first + 2] = weight / outline.unit**2
        score[first : first + 2] = weight * offs / outline.unit
    return information, score
