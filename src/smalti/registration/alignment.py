"""Align the features of two frames by robust Gauss-Newton steps from an approximate start, tile by tile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled_sums
from smalti.geometry.homographies import BASIS, PERSPECTIVE_X, STRETCH_1, Family, exponential, normalise
from smalti.geometry.linear_maps import apply, homogeneous, square
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Points
from smalti.registration.feature_pyramid import Level, Planes, pixels_of, planes_of, tangent_at, warp

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


TILES = 8
"""A side: the frame is divided into so many tiles each way, whose evidence is kept apart."""

LEAST_SPREAD = 0.05
"""Of the residuals, in units of the features: where two frames agree better, rounding is left."""

MEDIAN_OF_CHI2 = 2.366
"""Of the sum of three squares, one for each feature."""

TOLERANCE = 12.0
"""The sum of a pixel's squared residuals, in units of their spread, at which it has a quarter of its weight."""

SUMS = 49
"""Of a tile: eight products by six, and the number of pixels."""

ROWS = np.array([[3, 4, 1], [4, 5, 2], [1, 2, 0]])
"""Where the products of (u, v, 1) with itself stand among the sums by 1, u, v, uu, uv, vv."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The normal equations of an increment M (2, 3) of the map, row by row, of each tile of j.

    A point x of j moves by M ũ(x) pixels, where u(x) is x in units of the frame about its centre.
    """

    information: NDArray[np.float64]  # (tiles, 6, 6), by the slopes that both frames have
    steepness: NDArray[np.float64]  # (tiles, 6, 6), by the mean of their slopes: noise adds to it
    scores: NDArray[np.float64]  # (tiles, 6): the gradient of half the squared residuals
    shared: NDArray[np.float64]  # (tiles,): pixels that both frames show
    spread: float  # of the residuals of one feature


def gather_evidence(template: Planes, warped: Planes) -> Evidence:
    """Compare what j shows with what i shows as j would see it; pixels that disagree much count little."""
    height, width = template.shape[1:]
    spread = _spread(template, warped)
    sums = np.zeros((TILES * TILES, SUMS))
    unit = Outline.of_pixels(width, height).unit
    _sum_tiles(template, warped, 1.0 / (TOLERANCE * spread**2), 1.0 / unit, sums)
    products = sums[:, :48].reshape(-1, 8, 6)
    quadratic = np.empty((2, len(sums), 2, 3, 2, 3))
    for kind in (0, 1):
        for p, q in ((0, 0), (0, 1), (1, 0), (1, 1)):
            quadratic[kind, :, p, :, q, :] = products[:, 3 * kind + p + q][:, ROWS]
    information, steepness = quadratic.reshape(2, -1, 6, 6)
    scores = products[:, 6:, [1, 2, 0]].reshape(-1, 6)
    return Evidence(information, steepness, scores, sums[:, 48], spread)


def tile_centres(outline: Outline) -> Points:
    """Return the centres (tiles, 2) of the tiles in units of the frame."""
    middles = (np.arange(TILES) + 0.5) / TILES
    y, x = np.meshgrid(outline.top + middles * outline.height, outline.left + middles * outline.width, indexing="ij")
    return apply(outline.unit_from_pixels, np.column_stack([x.ravel(), y.ravel()]))


def moves_of_points(at: Points) -> NDArray[np.float64]:
    """Return how points (n, 2), in units of the frame, move along each direction of the basis: (n, 8, 2)."""
    moved = homogeneous(at) @ np.swapaxes(BASIS, 1, 2)
    moves: NDArray[np.float64] = moved[..., :2] - moved[..., 2:] * at
    return np.swapaxes(moves, 0, 1)


@lru_cache(maxsize=32)
def moves_of_tiles(outline: Outline) -> NDArray[np.float64]:
    """Return the increment M, row by row, that each direction of the basis is to each tile: (tiles, 8, 6).

    Within a tile perspective is an affine map: its tangent at the tile's centre.
    """
    centres = tile_centres(outline)
    horizon = BASIS[:, 2, :2]
    bent = np.einsum("na,kb->nkab", centres, horizon) + np.einsum("nc,kc,ab->nkab", centres, horizon, np.eye(2))
    linear = BASIS[:, :2, :2] - bent
    shift = moves_of_points(centres) - np.einsum("nkab,nb->nka", linear, centres)
    moves = np.concatenate([linear, shift[..., None]], axis=-1).reshape(len(centres), len(BASIS), 6)
    moves.setflags(write=False)
    return moves


def _spread(template: Planes, warped: Planes) -> float:
    """Return the typical residual of one feature, by the median over every fourth pixel each way."""
    shown, seen = template[:, 1::4, 1::4], warped[:, 1::4, 1::4]
    off = shown[:3] - seen[:3]
    squared = np.einsum("cyx,cyx->yx", off, off)[(shown[3] * seen[3]) > 0]
    if len(squared) == 0:
        return 1.0
    return max(LEAST_SPREAD, math.sqrt(float(np.median(squared)) / MEDIAN_OF_CHI2))


@compiled_sums
def _sum_tiles(template: Planes, warped: Planes, tightness: float, per_unit: float, sums: NDArray[np.float64]) -> None:
    """Add up, by 1, u, v, uu, uv and vv, the products of the slopes of both (xx, xy, yy), of their mean, and residuals.

    The score takes the mean of the two frames' slopes (Malis' efficient second-order minimisation).
    """
    height, width = template.shape[1:]
    inner = width - 2
    sharp, step = np.float32(tightness), np.float32(per_unit)
    half, third, quarter = np.float32(1 / 2), np.float32(1 / 3), np.float32(1 / 4)
    products = np.empty((8, inner), np.float32)
    xx, xy, yy, mean_xx, mean_xy, mean_yy, off_x, off_y = products
    weights, responses, both = np.empty((3, inner), np.float32)
    for y in range(1, height - 1):
        in_field, in_sight = template[3, y, 1:-1], warped[3, y, 1:-1]
        for x in range(inner):
            both[x] = in_field[x] * in_sight[x]
        if both.max() == 0:
            continue
        products[:] = 0
        weights[:] = 0
        for c in range(3):
            shown, seen = template[c, y], warped[c, y]
            shown_above, shown_below = template[c, y - 1, 1:-1], template[c, y + 1, 1:-1]
            seen_above, seen_below = warped[c, y - 1, 1:-1], warped[c, y + 1, 1:-1]
            # Two loops: of too many arrays at once the compiler cannot tell that they are apart, and goes one by one.
            for x in range(inner):
                shown_x, shown_y = half * (shown[x + 2] - shown[x]), half * (shown_below[x] - shown_above[x])
                seen_x, seen_y = half * (seen[x + 2] - seen[x]), half * (seen_below[x] - seen_above[x])
                xx[x] += shown_x * seen_x
                xy[x] += half * (shown_x * seen_y + shown_y * seen_x)
                yy[x] += shown_y * seen_y
            for x in range(inner):
                off = seen[x + 1] - shown[x + 1]
                slope_x = quarter * (shown[x + 2] - shown[x] + seen[x + 2] - seen[x])
                slope_y = quarter * (shown_below[x] - shown_above[x] + seen_below[x] - seen_above[x])
                mean_xx[x] += slope_x * slope_x
                mean_xy[x] += slope_x * slope_y
                mean_yy[x] += slope_y * slope_y
                off_x[x] += slope_x * off
                off_y[x] += slope_y * off
                weights[x] += off * off
        for x in range(inner):
            weight = np.float32(1) / (np.float32(1) + sharp * weights[x])
            # How a score changes with its residuals: less than by its weight, which falls as they grow.
            responses[x] = both[x] * weight**3 * (np.float32(1) - sharp * weights[x] * third)
            weights[x] = both[x] * weight * weight
        v = (y - (height - 1) / 2) * per_unit
        for column in range(TILES):
            first, last = inner * column // TILES, inner * (column + 1) // TILES
            tile = sums[y * TILES // height * TILES + column]
            tile[48] += both[first:last].sum()
            for k in range(8):
                counted = responses if k < 3 else weights
                s0 = s1 = s2 = np.float32(0)
                for x in range(first, last):
                    u = step * (np.float32(x + 1) - half * np.float32(width - 1))
                    value = counted[x] * products[k, x]
                    s0 += value
                    s1 += u * value
                    s2 += u * u * value
                tile[6 * k] += s0
                tile[6 * k + 1] += s1
                tile[6 * k + 2] += v * s0
                tile[6 * k + 3] += s2
                tile[6 * k + 4] += v * s1
                tile[6 * k + 5] += v * v * s0
