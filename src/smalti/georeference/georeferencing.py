"""Fit the position of the mosaic in the world: the similarity that maps frames to where they were taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import TableError, UsageError
from smalti.geometry.linear_maps import SIMILARITY, apply, compose
from smalti.georeference.positions import FEWEST_FRAMES, Positions
from smalti.records import Points, Transforms

# y of the mosaic points down, north points up.
_UP_FROM_DOWN: Transforms = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
# Of distances in the plane whose coordinates have noise σ, half are below this many σ ...
_MEDIAN_SIGMAS = math.sqrt(2 * math.log(2))
# ... and one in a thousand is above this many.
_LARGEST_SIGMAS = math.sqrt(2 * math.log(1000))
# If direction and scale are less certain than this, relatively, the positions are not those of the mosaic.
_WORST_PRECISION = 0.2
_ROUNDING = 1e-12
_MOST_ITERATIONS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Georeference:
    """A similarity that maps the mosaic to the world, and how well the positions agree."""

    world_from_mosaic: Transforms  # (2, 3): pixels, y down, to metres east and north; it reflects
    epsg: int | None
    metres_per_pixel: float
    rotation_deg: float  # of the mosaic's up direction from north, clockwise, -180 to 180
    residual_m: float  # RMS distance of the frames that agree
    residuals_m: dict[int, float]  # by frame, also of those that do not agree
    outliers: tuple[int, ...]  # frames whose position does not agree; the fit ignores them

    def world_from(self, mosaic_from_pixel: Transforms) -> Transforms:
        """Return the map (2, 3) to the world from pixels that an affine map, (2, 3) or (3, 3), maps to the mosaic."""
        if mosaic_from_pixel.shape == (3, 3):
            *_, last = mosaic_from_pixel
            if last[:2].any():
                raise UsageError("a map with perspective leads to no grid in the world; give an affine one")
            mosaic_from_pixel = mosaic_from_pixel[:2] / last[2]
        return compose(self.world_from_mosaic, mosaic_from_pixel)


def fit_georeference(positions: Positions, centres: Mapping[int, Points]) -> Georeference:
    """Fit the similarity from the centres of frames, (2,) on the mosaic, to where the frames were taken.

    The camera is assumed to look straight down. Positions that contradict the others are reported as outliers and
    ignored. The fit starts at the similarity with the least sum of distances. Least squares over the frames that agree
    follow.
    """
    frames = sorted(positions.metres.keys() & centres.keys())
    if len(frames) < FEWEST_FRAMES:
        raise TableError(
            f"{positions.origin}: {len(frames)} of the mosaic's {len(centres)} frames have a position; "
            f"give positions of {FEWEST_FRAMES} or more"
        )
    mosaic = np.array([centres[frame] for frame in frames])
    world = np.array([positions.metres[frame] for frame in frames])
    _check_spread(positions, mosaic, world)
    # Centre and scale both, so that the fit is exact also millions of metres from the equator.
    middle, place = mosaic.mean(axis=0), np.median(world, axis=0)
    unit = float(np.sqrt(np.mean((mosaic - middle) ** 2)))
    unit_from_mosaic = compose(_UP_FROM_DOWN, np.array([[1.0, 0.0, -middle[0]], [0.0, 1.0, -middle[1]]])) / unit
    source, target = apply(unit_from_mosaic, mosaic), world - place

    smallest = _ROUNDING * float(np.abs(world).max())
    start = _fit_least_distances(source, target, smallest)
    fitted, agrees = _fit_those_that_agree(source, target, start, smallest)
    residuals = _distances(fitted, source, target)
    _check_precision(positions, fitted, source[agrees], residuals[agrees])

    world_from_mosaic = compose(fitted, unit_from_mosaic)
    world_from_mosaic[:, 2] += place
    (along_x, _, _), (across_x, _, _) = world_from_mosaic
    return Georeference(
        world_from_mosaic,
        positions.epsg,
        metres_per_pixel=math.hypot(along_x, across_x),
        # The mosaic's x and up directions turn together; bearings count clockwise.
        rotation_deg=-math.degrees(math.atan2(across_x, along_x)),
        residual_m=float(np.sqrt(np.mean(residuals[agrees] ** 2))),
        residuals_m=dict(zip(frames, residuals.tolist(), strict=True)),
        outliers=tuple(frame for frame, good in zip(frames, agrees, strict=True) if not good),
    )


def _check_spread(positions: Positions, mosaic: Points, world: Points) -> None:
    for points, where in ((mosaic, "lie at one place of the mosaic"), (world, "were taken at one position")):
        if np.ptp(points, axis=0).max() <= _ROUNDING * np.abs(points).max():
            raise TableError(
                f"{positions.origin}: all {len(points)} frames {where}, so that nothing tells north; "
                "give positions of frames that lie apart"
            )


def _fit_least_distances(source: Points, target: Points, smallest: float) -> Transforms:
    """Return the similarity with the least sum of distances, by iteratively reweighted least squares.

    The sum is convex: it needs no start and no random sampling, and a wild position pulls no more than any other.
    """
    fitted = SIMILARITY.fit(target, source, np.ones(len(source)))
    for _ in range(_MOST_ITERATIONS):
        distances = _distances(fitted, source, target)
        # A frame that fits exactly by chance must not get all the weight.
        floor = max(1e-3 * float(np.median(distances)), smallest)
        previous, fitted = fitted, SIMILARITY.fit(target, source, np.maximum(distances, floor) ** -0.5)
        if np.abs(fitted - previous).max() <= 1e-3 * floor:
            break
    return fitted


def _fit_those_that_agree(
    source: Points, target: Points, start: Transforms, smallest: float
) -> tuple[Transforms, NDArray[np.bool_]]:
    """Return the least-squares fit over the frames that agree with it, and which frames agree (n,)."""
    frames = len(source)
    # A fit to few positions is closer to them than their noise.
    inflation = 1 + 5 / (frames - 2)
    # Fewer frames could agree with anything: two always do.
    fewest = (frames + 3) // 2
    fitted, agrees = start, np.zeros(frames, dtype=np.bool_)
    for _ in range(_MOST_ITERATIONS):
        distances = _distances(fitted, source, target)
        sigma = inflation * float(np.median(distances)) / _MEDIAN_SIGMAS
        largest = max(_LARGEST_SIGMAS * sigma, float(np.sort(distances)[fewest - 1]), smallest)
        before, agrees = agrees, distances <= largest
        if (agrees == before).all():
            break
        fitted = SIMILARITY.fit(target[agrees], source[agrees], np.ones(int(agrees.sum())))
    return fitted, agrees


def _check_precision(positions: Positions, fitted: Transforms, source: Points, residuals: NDArray[np.float64]) -> None:
    """Refuse a fit that leaves direction and scale open."""
    sigma = math.sqrt(float(np.sum(residuals**2)) / (2 * len(residuals) - SIMILARITY.freedom))
    reach = math.hypot(*fitted[:, 0]) * math.sqrt(float(np.sum((source - source.mean(axis=0)) ** 2)))
    if sigma > _WORST_PRECISION * reach:
        raise TableError(
            f"{positions.origin}: the positions do not resemble the mosaic ({sigma:.2g} m off at a typical frame); "
            "give the table of these frames, with north growing northwards and positions farther apart than their noise"
        )


def _distances(fitted: Transforms, source: Points, target: Points) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = np.linalg.norm(apply(fitted, source) - target, axis=1)
    return distances
