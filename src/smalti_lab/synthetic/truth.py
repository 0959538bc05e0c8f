"""Errors against the truth between frames that overlap, and which frames overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UsageError
from smalti.geometry.homographies import apply_map, project_points
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import apply, compose, invert, square
from smalti.geometry.outline import Outline
from smalti.records import Homographies, PairNumbers, Points

LEAST_OVERLAP = 0.1
POINTS_A_SIDE = 9
PAIRS_AT_ONCE = 8192


@dataclass(frozen=True, slots=True, eq=False)
class PairErrors:
    """Distances, in pixels of frame i, between the estimated and the true position of points of j.

    They cover all overlapping pairs i < j and a grid of points of j that i sees too. They depend only on the maps
    between frames: shifting, turning or distorting the mosaic as a whole changes nothing.
    """

    pairs: PairNumbers  # (n, 2)
    rms_of_pair: NDArray[np.float64]  # (n,)
    max_of_pair: NDArray[np.float64]  # (n,)
    rms: float  # over all points of all pairs
    max: float
    worst_of_frame: NDArray[np.float64]  # (N,), the largest max of the frame's pairs; nan for a frame without pairs
    median_of_frame: NDArray[np.float64]  # (N,), the median rms of the frame's pairs; nan likewise


@dataclass(frozen=True, slots=True, eq=False)
class CommonPoints:
    """Points that pairs of frames share in truth."""

    pairs: PairNumbers  # (n, 2)
    points_i: Points  # (n, m, 2), the positions in i of the points of j
    points_j: Points  # (n, m, 2), or (m, 2) if they are the same for all pairs
    is_common: NDArray[np.bool_]  # (n, m), which of them both frames see


def measure_errors(
    estimated: NDArray[np.float64],
    truth: NDArray[np.float64],
    outline: Outline,
    frames: Iterable[int] | None = None,
    lens: Lens | None = None,
) -> PairErrors:
    """Compare `mosaic_from_frame`, (n, 2, 3) or (n, 3, 3), with the truth, (N, 2, 3) or (N, 3, 3).

    `frames` are the numbers of the placed frames, in the order of `estimated`; all by default. With a lens the
    estimated maps take undistorted pixels, and so do the errors. In truth there is no lens.
    """
    numbers, maps = _placed(estimated, len(truth), frames)
    exact = truth[numbers]
    pairs = find_overlaps(exact, outline, LEAST_OVERLAP)
    common_points = (_map_grid(exact, pairs[rows], outline, lens) for rows in _parts(len(pairs)))
    return _collect(maps, numbers, len(truth), common_points)


def measure_common_points(
    estimated: NDArray[np.float64], common_points: CommonPoints, total: int, frames: Iterable[int] | None = None
) -> PairErrors:
    """Compare `mosaic_from_frame` as `measure_errors` does, with the true common points of pairs of `total` frames."""
    numbers, maps = _placed(estimated, total, frames)
    index_of_number = np.full(total, -1)
    index_of_number[numbers] = np.arange(len(numbers))
    pairs = index_of_number[common_points.pairs]
    chosen = np.flatnonzero((pairs >= 0).all(axis=1))
    parts = (
        CommonPoints(
            pairs[rows], common_points.points_i[rows], common_points.points_j[rows], common_points.is_common[rows]
        )
        for rows in (chosen[part] for part in _parts(len(chosen)))
    )
    return _collect(maps, numbers, total, parts)


def _parts(pairs: int) -> list[slice]:
    return [slice(start, start + PAIRS_AT_ONCE) for start in range(0, max(pairs, 1), PAIRS_AT_ONCE)]


def _placed(
    estimated: NDArray[np.float64], total: int, frames: Iterable[int] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the numbers (n,) of the placed frames, ascending, and their maps (n, 3, 3)."""
    numbers = np.arange(total) if frames is None else np.array(list(frames), dtype=np.int64)
    maps = _check(np.asarray(estimated, np.float64), numbers, total)
    order = np.argsort(numbers)
    return numbers[order], maps[order]


def _collect(
    maps: NDArray[np.float64], numbers: NDArray[np.int64], total: int, common_points: Iterable[CommonPoints]
) -> PairErrors:
    """Measure the maps (n, 3, 3) of frames `numbers` by pairs whose indices count those frames only."""
    parts = [(one.pairs, *_measure(maps, one)) for one in common_points]
    pairs, squares, counts, largest = (np.concatenate(column) for column in zip(*parts, strict=True))
    shared = counts > 0
    if not shared.any():
        raise UsageError(
            f"of the {len(numbers)} frames given no two overlap by {LEAST_OVERLAP:.0%}: nothing to measure"
        )
    pairs, squares, counts, largest = numbers[pairs[shared]], squares[shared], counts[shared], largest[shared]
    rms_of_pair = np.sqrt(squares / counts)
    return PairErrors(
        pairs,
        rms_of_pair,
        largest,
        float(np.sqrt(squares.sum() / counts.sum())),
        float(largest.max()),
        _by_frame(pairs, largest, total, np.max),
        _by_frame(pairs, rms_of_pair, total, np.median),
    )


def _check(estimated: NDArray[np.float64], numbers: NDArray[np.int64], frames: int) -> NDArray[np.float64]:
    """Return the estimated maps as (n, 3, 3), or say what is wrong with them."""
    if len(set(numbers.tolist())) < len(numbers) or not ((numbers >= 0) & (numbers < frames)).all():
        raise UsageError(f"the frames to measure must be different numbers from 0 to {frames - 1}")
    if estimated.shape not in ((len(numbers), 2, 3), (len(numbers), 3, 3)):
        n = len(numbers)
        raise UsageError(f"mosaic_from_frame has shape {estimated.shape}, expected ({n}, 2, 3) or ({n}, 3, 3)")
    maps = square(estimated) if estimated.shape[1] == 2 else estimated
    bad = [int(n) for n, one in zip(numbers, maps, strict=True) if not np.isfinite(one).all() or not np.linalg.det(one)]
    if bad:
        raise UsageError(f"the map of frame {bad[0]} is singular or not finite; name the frames that were placed")
    return maps


def _map_grid(exact: NDArray[np.float64], pairs: PairNumbers, outline: Outline, lens: Lens | None) -> CommonPoints:
    """Map a grid of points of j to i."""
    i, j = pairs.T
    grid = _grid(outline)
    if exact.shape[1] == 2:
        true_points = apply(compose(invert(exact[i]), exact[j]), grid)
    else:
        true_points = project_points(np.linalg.inv(exact[i]) @ exact[j], grid)
    is_common = outline.contains(true_points)
    if lens is None:
        return CommonPoints(pairs, true_points, grid, is_common)
    return CommonPoints(pairs, lens.undistort(true_points), lens.undistort(grid), is_common)


def _measure(
    maps: NDArray[np.float64], common_points: CommonPoints
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the sum of squares, the number and the largest of each pair's distances: three times (n,)."""
    i, j = common_points.pairs.T
    points = project_points(np.linalg.inv(maps[i]) @ maps[j], common_points.points_j)
    distances = np.where(common_points.is_common, np.linalg.norm(points - common_points.points_i, axis=2), 0.0)
    return (distances**2).sum(axis=1), common_points.is_common.sum(axis=1), distances.max(axis=1)


def _grid(outline: Outline) -> Points:
    """Return points (n, 2) from border to border of a frame."""
    x = np.linspace(outline.left, outline.right, POINTS_A_SIDE)
    y = np.linspace(outline.top, outline.bottom, POINTS_A_SIDE)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _by_frame(
    pairs: PairNumbers,
    values: NDArray[np.float64],
    frames: int,
    reduce: Callable[[NDArray[np.float64]], np.float64],
) -> NDArray[np.float64]:
    """Reduce the values of all pairs of each frame: (frames,)."""
    frame = pairs.T.reshape(-1)
    order = np.argsort(frame, kind="stable")
    groups = np.split(np.tile(values, 2)[order], np.searchsorted(frame[order], np.arange(1, frames)))
    return np.array([reduce(group) if len(group) else np.nan for group in groups])


MOST_CORNERS = 8


def find_overlaps(mosaic_from_frame: NDArray[np.float64], outline: Outline, least: float) -> PairNumbers:
    """Return the pairs (n, 2), i < j, whose intersection covers at least this fraction of the smaller frame.

    The maps are (N, 2, 3) or (N, 3, 3).
    """
    is_affine = mosaic_from_frame.shape[1] == 2
    corners = (apply if is_affine else project_points)(mosaic_from_frame, outline.corners)
    x, y = np.moveaxis(corners, 2, 0)
    areas = np.abs(np.sum(x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1), axis=1)) / 2
    # Only frames whose bounding boxes meet can overlap.
    low, high = corners.min(axis=1), corners.max(axis=1)
    meets = (low[:, None] <= high[None]).all(axis=2)
    pairs = np.argwhere(np.triu(meets & meets.T, k=1))
    covered = _intersect(_oriented(corners), pairs) / np.minimum(areas[pairs[:, 0]], areas[pairs[:, 1]])
    return np.asarray(pairs[covered >= least], np.int64)


def _oriented(corners: Points) -> Points:
    """Make all footprints run clockwise on the screen, also those of mirrored frames."""
    side, next_side = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 1]
    mirrored = side[:, 0] * next_side[:, 1] < side[:, 1] * next_side[:, 0]
    oriented: Points = np.where(mirrored[:, None, None], corners[:, ::-1], corners)
    return np.ascontiguousarray(oriented)


@compiled
def _intersect(corners: Points, pairs: PairNumbers) -> NDArray[np.float64]:
    """Return the areas (n,) of the intersections of the quadrangles of each pair."""
    areas = np.zeros(len(pairs))
    polygon, cut = np.empty((MOST_CORNERS, 2)), np.empty((MOST_CORNERS, 2))
    for n in range(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        for k in range(4):
            polygon[k, 0], polygon[k, 1] = corners[j, k, 0], corners[j, k, 1]
        count = 4
        for side in range(4):
            count = _cut(polygon, count, corners[i, side], corners[i, (side + 1) % 4], cut)
            polygon, cut = cut, polygon
        for k in range(count):
            after = (k + 1) % count
            areas[n] += (polygon[k, 0] * polygon[after, 1] - polygon[after, 0] * polygon[k, 1]) / 2
    return areas


@compiled
def _cut(polygon: Points, count: int, start: Points, end: Points, cut: Points) -> int:
    """Keep the part of a convex polygon on the right-hand side of a line. Return its number of corners."""
    kept = 0
    for k in range(count):
        x0, y0 = polygon[k, 0], polygon[k, 1]
        x1, y1 = polygon[(k + 1) % count, 0], polygon[(k + 1) % count, 1]
        right_0 = (end[0] - start[0]) * (y0 - start[1]) - (end[1] - start[1]) * (x0 - start[0])
        right_1 = (end[0] - start[0]) * (y1 - start[1]) - (end[1] - start[1]) * (x1 - start[0])
        if right_0 >= 0:
            cut[kept, 0], cut[kept, 1] = x0, y0
            kept += 1
        if (right_0 > 0 > right_1) or (right_0 < 0 < right_1):
            t = right_0 / (right_0 - right_1)
            cut[kept, 0], cut[kept, 1] = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
            kept += 1
    return kept


def fit_similarity(points: Points, targets: Points) -> Points:
    """Return the points moved onto the targets by the best similarity (no reflection)."""
    source = (points - points.mean(axis=0)) @ np.array([1.0, 1.0j])
    target = (targets - targets.mean(axis=0)) @ np.array([1.0, 1.0j])
    moved = source * (np.vdot(source, target) / np.vdot(source, source).real)
    fitted: Points = np.column_stack([moved.real, moved.imag]) + targets.mean(axis=0)
    return fitted


def smallest_area(mosaic_from_frame: Homographies, outline: Outline) -> float:
    """Return the area of the smallest frame on the mosaic, as a fraction of the reference frame's."""
    x, y = np.moveaxis(apply_map(mosaic_from_frame, outline.corners), -1, 0)  # (N, 4)
    areas: NDArray[np.float64] = np.sum(x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1), axis=1) / 2.0
    return float(areas.min() / outline.area)
