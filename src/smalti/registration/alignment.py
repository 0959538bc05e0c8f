"""Align the features of two frames by robust Gauss-Newton steps from an approximate start.

`align` iterates. `gather_evidence` computes the normal equations, tile by tile.
"""

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
"""Pixels of a level, at the corners of the frame: a smaller step ends the iteration."""

LONGEST_STEP = 1.0
"""Pixels of a level, at the corners of the frame: a longer step is shortened, because slopes are only local."""

SHEAR_SIGMA = 0.05
"""Standard deviation of shear and stretch. This prior keeps frames with little texture from shearing."""

PERSPECTIVE_SIGMA = 0.05
"""Standard deviation of the relative difference in distance between the centre and one side of a frame.

It is what a camera with a view of 60° causes by a tilt of 5°. Texture determines perspective to a few hundredths of
that. This prior keeps frames with little texture from tilting."""

SAME_NOISE = 12.0
"""Pixels of a level that share their noise: against the prior, n pixels count as n/12."""

LEAST_OF_SCENE = 0.25
"""Smallest share of the squared slopes that counts as the scene's: before frames coincide, they have none in common."""

TILES = 8
"""Tiles of the frame each way. Each tile has its own normal equations."""

LEAST_SPREAD = 0.05
"""Smallest spread of residuals, in units of the features: a better agreement is rounding."""

MEDIAN_OF_CHI2 = 2.366
"""Of the sum of three squares, one for each feature."""

TOLERANCE = 12.0
"""A pixel has a quarter of its weight where the sum of its squared residuals, over their variance, is this."""

SUMS = 49
"""Sums of a tile: eight products by six, and the number of pixels."""

ROWS = np.array([[3, 4, 1], [4, 5, 2], [1, 2, 0]])
"""Positions of the products of (u, v, 1) with itself among the sums by 1, u, v, uu, uv, vv."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The result of an alignment, and the two frames' features under it."""

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
        information, score = _normal_equations(evidence, moves)
        expected, pull = _similarity_prior(evidence, i_from_j, outline)
        information += np.diag(expected[: family.freedom])
        information += 1e-6 * (np.trace(information) + 1e-6) * np.eye(family.freedom)
        step = -np.asarray(np.linalg.solve(information, score + pull[: family.freedom]), dtype=np.float64)
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-9))
        moved = pixels_from_unit @ exponential(step[None] / outline.unit)[0] @ unit_from_pixels
        i_from_j = normalise(i_from_j @ moved)
        rounds = rounds - 1 if np.abs(step).max() > SETTLED else 0


def _normal_equations(
    evidence: Evidence, moves: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return information (k, k) and score (k,) of all tiles, for k directions that move tiles by (tiles, k, 6)."""
    # Noise makes slopes steeper than the scene's and steps too short. The two frames tell by how much.
    of_both, of_mean = evidence.information.sum(axis=0), evidence.steepness.sum(axis=0)
    of_scene = float(np.clip(np.trace(of_both) / max(np.trace(of_mean), 1e-12), LEAST_OF_SCENE, 1.0))
    information = of_scene * (moves @ evidence.steepness @ np.swapaxes(moves, 1, 2)).sum(axis=0)
    return information, np.einsum("nka,na->k", moves, evidence.scores)


def _similarity_prior(
    evidence: Evidence, i_from_j: Homographies, outline: Outline
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return information (8,) and score (8,) of the prior: a similarity, within the two sigmas."""
    linear = tangent_at(i_from_j, outline.centre)[:2, :2]
    squared = linear.T @ linear
    shears = np.array([(squared[0, 0] - squared[1, 1]) / 2, squared[0, 1]]) / np.trace(squared)
    tilts = outline.unit * i_from_j[2, :2] / (i_from_j[2] @ np.array([*outline.centre, 1.0]))
    information, score = np.zeros(8), np.zeros(8)
    for first, deviations, sigma in ((STRETCH_1, shears, SHEAR_SIGMA), (PERSPECTIVE_X, tilts, PERSPECTIVE_SIGMA)):
        weight = SAME_NOISE * (evidence.spread / sigma) ** 2
        information[first : first + 2] = weight / outline.unit**2
        score[first : first + 2] = weight * deviations / outline.unit
    return information, score


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The normal equations of an increment M (2, 3) of the map, row by row, for each tile of j.

    A point x of j moves by M ũ(x) pixels. u(x) is x in units of the frame about its centre.
    """

    information: NDArray[np.float64]  # (tiles, 6, 6), from the slopes that both frames share
    steepness: NDArray[np.float64]  # (tiles, 6, 6), from the mean of their slopes; noise increases it
    scores: NDArray[np.float64]  # (tiles, 6): the gradient of half the squared residuals
    shared: NDArray[np.float64]  # (tiles,): pixels that both frames show
    spread: float  # of the residuals of one feature


def gather_evidence(template: Planes, warped: Planes) -> Evidence:
    """Compare j with i warped to j; pixels with large residuals get small weights."""
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
    """Return the increment M, row by row, of each tile for each direction of the basis: (tiles, 8, 6).

    Within a tile, perspective is approximated by its tangent at the tile's centre.
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
    """Return the typical residual of one feature, from the median over every fourth pixel each way."""
    of_template, of_warped = template[:, 1::4, 1::4], warped[:, 1::4, 1::4]
    residual = of_template[:3] - of_warped[:3]
    squared = np.einsum("cyx,cyx->yx", residual, residual)[(of_template[3] * of_warped[3]) > 0]
    if len(squared) == 0:
        return 1.0
    return max(LEAST_SPREAD, math.sqrt(float(np.median(squared)) / MEDIAN_OF_CHI2))


@compiled_sums
def _sum_tiles(template: Planes, warped: Planes, tightness: float, per_unit: float, sums: NDArray[np.float64]) -> None:
    """Sum, by 1, u, v, uu, uv and vv, the products of both slopes (xx, xy, yy), of their mean, and with the residuals.

    The score takes the mean of the two frames' slopes (Malis' efficient second-order minimisation).
    """
    height, width = template.shape[1:]
    inner = width - 2
    sharp, step = np.float32(tightness), np.float32(per_unit)
    half, third, quarter = np.float32(1 / 2), np.float32(1 / 3), np.float32(1 / 4)
    products = np.empty((8, inner), np.float32)
    xx, xy, yy, mean_xx, mean_xy, mean_yy, residual_x, residual_y = products
    weights, responses, both = np.empty((3, inner), np.float32)
    for y in range(1, height - 1):
        in_template, in_warped = template[3, y, 1:-1], warped[3, y, 1:-1]
        seen = np.float32(0)
        for x in range(inner):
            both[x] = in_template[x] * in_warped[x]
            seen += both[x]
        if seen == 0:
            continue
        products[:] = 0
        weights[:] = 0
        for c in range(3):
            of_template, of_warped = template[c, y], warped[c, y]
            template_above, template_below = template[c, y - 1, 1:-1], template[c, y + 1, 1:-1]
            warped_above, warped_below = warped[c, y - 1, 1:-1], warped[c, y + 1, 1:-1]
            # Two loops: with too many arrays at once the compiler cannot exclude aliasing, and does not vectorise.
            for x in range(inner):
                template_x, template_y = (
                    half * (of_template[x + 2] - of_template[x]),
                    half * (template_below[x] - template_above[x]),
                )
                warped_x, warped_y = (
                    half * (of_warped[x + 2] - of_warped[x]),
                    half * (warped_below[x] - warped_above[x]),
                )
                xx[x] += template_x * warped_x
                xy[x] += half * (template_x * warped_y + template_y * warped_x)
                yy[x] += template_y * warped_y
            for x in range(inner):
                residual = of_warped[x + 1] - of_template[x + 1]
                slope_x = quarter * (of_template[x + 2] - of_template[x] + of_warped[x + 2] - of_warped[x])
                slope_y = quarter * (template_below[x] - template_above[x] + warped_below[x] - warped_above[x])
                mean_xx[x] += slope_x * slope_x
                mean_xy[x] += slope_x * slope_y
                mean_yy[x] += slope_y * slope_y
                residual_x[x] += slope_x * residual
                residual_y[x] += slope_y * residual
                weights[x] += residual * residual
        for x in range(inner):
            weight = np.float32(1) / (np.float32(1) + sharp * weights[x])
            # The derivative of a weighted residual is below the weight, because the weight falls as residuals grow.
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
