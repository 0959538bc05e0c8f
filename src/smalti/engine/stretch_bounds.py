"""Bounds on the relative positions of all pairs between two stretches of consecutive frames, with perspective.

A *stretch* is a run of consecutive frames, represented by its middle frame. The position of the centre of i in j is
mapped from i to the middle frame a of its stretch, from there to b, the middle frame of the other stretch, and then to
j. Every step has a box that encloses all positions, and deviations that no pair exceeds:

- In a, the positions of all centres are known exactly, and so are their deviations.
- From a to b, M = H_b⁻¹ H_a maps a box in front of the camera into the convex hull of its corners. A position y = π(s),
  s = M x̃, moves by (ds - y ds_w) / s_w with ds = (M Δ_a - Δ_b M) x̃. About the middle g of the box, ds - g ds_w is
  linear in x. Its standard deviation is convex, so the largest is at a corner. The remainder is (y - g) ds_w.
- From b to j, the eight entries of all maps of the stretch, with a 1 in their corner, lie in intervals.

The standard deviation of a sum is at most the sum of the standard deviations, whatever their correlation. Where a box
may reach behind a camera, or frames belong to different parts, the bounds are trivial: distance 0 and an infinite
deviation. For maps without perspective the bounds are at least as tight as those of affine maps.

`Stretches` holds the bounds, `cut_into_stretches` chooses the stretches, `summarise_stretches` and `normalised_maps`
prepare each one, and `bound_stretches` bounds all pairs of stretches. Kernels come last, in the order of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange, threads_for
from smalti.engine.elimination_paths import EliminationPaths, PathArrays
from smalti.engine.link_prediction import PredictedLinks, add_covariance
from smalti.engine.relative_position import FAR, MOST_VARIANCE
from smalti.geometry.homographies import ENTRIES
from smalti.records import Homographies
from smalti.sparse.pattern import Indices

SHORTEST, USUAL, FEWEST = 4, 32, 20
"""The smallest and the usual number of frames of a stretch, and how many stretches there must be for the usual one."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """For every two stretches I, J, bounds on all γ_ij with i in I and j in J; [I, J] and [J, I] differ."""

    starts: Indices  # (M + 1,): frames starts[I] to starts[I + 1] are stretch I
    deviation: NDArray[np.float64]  # (M, M, 2), [I, J]: upper bounds on the deviations of γ_ij in x and y, px
    distance: NDArray[np.float64]  # (M, M, 2): lower bounds on the distances of γ_ij from j's centre in x and y, px

    def of_frames(self, frames: Indices) -> Indices:
        """Return the stretch of each of these frames."""
        return np.searchsorted(self.starts, frames, side="right") - 1


def cut_into_stretches(frames: int) -> Indices:
    """Return the first frames of stretches, and the end (M + 1,).

    Pairs of stretches are at most a few times the frames. Longer stretches are bounded faster after every yes. Shorter
    ones have tighter bounds and leave fewer pairs to compute after every answer.
    """
    length = max(SHORTEST, min(USUAL, round(frames / FEWEST)), round(np.sqrt(frames) / 2))
    count = max(1, round(frames / length))
    return np.linspace(0, frames, count + 1).round().astype(np.int64)


def middles(starts: Indices) -> Indices:
    """Return the middle frame of each stretch (M,)."""
    return (starts[:-1] + starts[1:] - 1) // 2


@dataclass(frozen=True, slots=True, eq=False)
class StretchSummaries:
    """The frames of every stretch relative to its middle frame, in units."""

    known: NDArray[np.bool_]  # (M,): whether the other fields are valid
    box: NDArray[np.float64]  # (M, 2): the middle of the box of all centres, in the middle frame
    box_half: NDArray[np.float64]  # (M, 2): half the sides of this box
    centre_deviation: NDArray[np.float64]  # (M, 2): the largest deviation of a centre there
    map_middle: Homographies  # (M, 3, 3): middle of the maps to the stretch's frames, 1 in their corner
    map_half: Homographies  # (M, 3, 3): half the ranges of their entries
    map_deviation: Homographies  # (M, 3, 3): the largest deviations of their entries


def summarise_stretches(
    starts: Indices,
    centres: NDArray[np.float64],
    centre_variances: NDArray[np.float64],
    frame_from_middle: Homographies,
    variances: NDArray[np.float64],
    part: Indices,
) -> StretchSummaries:
    """Summarise every stretch relative to its middle frame.

    `centres` (N, 2) are the positions of all frames' centres in their middle frame, units, and `centre_variances`
    (N, 2) their variances, units². `frame_from_middle` (N, 3, 3) are the maps from the middle frame, with a 1 in their
    corner, and `variances` (N, 8) those of their entries. `part` (N,) are the connected parts.
    """
    first, counts = starts[:-1], np.diff(starts)
    valid = (np.abs(centres) < FAR).all(axis=1) & (centre_variances < MOST_VARIANCE).all(axis=1)
    valid &= np.isfinite(frame_from_middle).all(axis=(1, 2)) & np.isfinite(variances).all(axis=1)
    valid &= part == np.repeat(part[middles(starts)], counts)
    frame_from_middle = np.where(valid[:, None, None], frame_from_middle, 0.0)
    deviations = np.zeros((len(centres), 9))
    deviations[:, :ENTRIES] = np.sqrt(np.where(valid[:, None], variances, 0.0))
    low, high = np.minimum.reduceat(centres, first), np.maximum.reduceat(centres, first)
    least, most = np.minimum.reduceat(frame_from_middle, first), np.maximum.reduceat(frame_from_middle, first)
    return StretchSummaries(
        known=np.logical_and.reduceat(valid, first),
        box=(low + high) / 2,
        box_half=(high - low) / 2,
        centre_deviation=np.sqrt(np.maximum.reduceat(centre_variances, first)),
        map_middle=(least + most) / 2,
        map_half=(most - least) / 2,
        map_deviation=np.maximum.reduceat(deviations, first).reshape(-1, 3, 3),
    )


def normalised_maps(
    sources: Indices, targets: Indices, paths: EliminationPaths, maps: Homographies, inverses: Homographies
) -> tuple[Homographies, NDArray[np.float64]]:
    """Return the maps (n, 3, 3) from source to target frames, a 1 in their corner, and their entries' variances (n, 8).

    A map is NaN if it takes the centre of the source behind the camera of the target.
    """
    target_from_source = inverses[targets] @ maps[sources]
    target_from_source[sources == targets] = np.eye(3)
    corner = target_from_source[:, 2:, 2:]
    with np.errstate(all="ignore"):
        normalised = target_from_source / np.where(corner > 0.0, corner, np.nan)
        valid = np.asarray(np.isfinite(normalised).all(axis=(1, 2)))
        there = np.where(valid[:, None, None], normalised, np.eye(3))
        predicted_links = PredictedLinks.of_increments(
            np.column_stack([targets, sources]), there, inverses[sources] @ maps[targets]
        )
        # N ← N exp(E) with its corner kept: dN = N E - N (N E)_22.
        own = np.einsum("npk,ql->npqkl", there, np.eye(3))
        own[..., 2] -= np.einsum("npq,nk->npqk", there, there[:, 2])
        by_increment = own.reshape(-1, 9, 9)[:, :ENTRIES, :ENTRIES]
        covariances = predicted_links.covariances(paths.arrays)
        variances = ((by_increment @ covariances) * by_increment).sum(axis=2)
    variances[sources == targets] = 0.0
    return normalised, np.maximum(variances, 0.0)


def bound_stretches(
    starts: Indices,
    summaries: StretchSummaries,
    paths: EliminationPaths,
    maps: Homographies,
    inverses: Homographies,
    part: Indices,
    unit: float,
) -> Stretches:
    """Bound all pairs of stretches; `paths` are the elimination paths of the middle frames, `unit` is in px."""
    middle = middles(starts)
    with threads_for(3.0 * len(middle) ** 2):
        deviation, distance = _bound(
            middle,
            part[middle],
            paths.arrays,
            maps,
            inverses,
            summaries.known,
            summaries.box,
            summaries.box_half,
            summaries.centre_deviation,
            summaries.map_middle,
            summaries.map_half,
            summaries.map_deviation,
        )
    return Stretches(starts, deviation * unit, distance * unit)


@compiled_parallel
def _bound(
    middle: Indices,
    part: Indices,
    paths: PathArrays,
    maps: Homographies,
    inverses: Homographies,
    known: NDArray[np.bool_],
    box: NDArray[np.float64],
    box_half: NDArray[np.float64],
    centre_deviation: NDArray[np.float64],
    map_middle: Homographies,
    map_half: Homographies,
    map_deviation: Homographies,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    count = len(middle)
    deviation = np.full((count, count, 2), np.inf)
    distance = np.zeros((count, count, 2))
    for source in prange(count):
        b_from_a = np.empty((3, 3))
        there = np.empty((2, 2))  # the middle of the box in b, and half its sides
        deviation_in_b = np.empty(2)
        forms = np.empty((3, 3, 3))
        bounds = np.empty((2, 2))
        for target in range(count):
            if not (known[source] and known[target] and part[source] == part[target]):
                continue
            a, b = middle[source], middle[target]
            _compose(inverses[b], maps[a], a == b, b_from_a)
            least_depth = _carry_box(b_from_a, box[source], box_half[source], there)
            if not least_depth > 0.0:
                continue
            forms[:] = 0.0
            if a != b:
                _write_variance_forms(a, b, b_from_a, box[source], there[0], paths, forms)
            _bound_deviation_in_b(
                b_from_a, box_half[source], centre_deviation[source], there, forms, least_depth, deviation_in_b
            )
            if _bound_in_target(
                map_middle[target], map_half[target], map_deviation[target], there, deviation_in_b, bounds
            ):
                for k in range(2):
                    deviation[source, target, k] = bounds[0, k]
                    distance[source, target, k] = bounds[1, k]
    return deviation, distance


@compiled
def _compose(inverse: Homographies, transform: Homographies, same: bool, result: Homographies) -> None:
    for row in range(3):
        for column in range(3):
            if same:
                result[row, column] = 1.0 if row == column else 0.0
            else:
                total = inverse[row, 0] * transform[0, column] + inverse[row, 1] * transform[1, column]
                result[row, column] = total + inverse[row, 2] * transform[2, column]


@compiled
def _carry_box(
    b_from_a: Homographies, box: NDArray[np.float64], half: NDArray[np.float64], there: NDArray[np.float64]
) -> float:
    """Write the box in b that encloses a box of a; return the smallest depth, not positive if it reaches behind."""
    depth = b_from_a[2, 0] * box[0] + b_from_a[2, 1] * box[1] + b_from_a[2, 2]
    least_depth = depth - abs(b_from_a[2, 0]) * half[0] - abs(b_from_a[2, 1]) * half[1]
    if least_depth > 0.0:
        for row in range(2):
            low, high = np.inf, -np.inf
            for corner in range(4):
                x = box[0] + (half[0] if corner % 2 else -half[0])
                y = box[1] + (half[1] if corner // 2 else -half[1])
                value = b_from_a[row, 0] * x + b_from_a[row, 1] * y + b_from_a[row, 2]
                value /= b_from_a[2, 0] * x + b_from_a[2, 1] * y + b_from_a[2, 2]
                low, high = min(low, value), max(high, value)
            there[0, row], there[1, row] = (low + high) / 2.0, (high - low) / 2.0
    return float(least_depth)


@compiled
def _write_variance_forms(
    a: int,
    b: int,
    b_from_a: Homographies,
    point: NDArray[np.float64],
    image: NDArray[np.float64],
    paths: PathArrays,
    forms: NDArray[np.float64],
) -> None:
    """Write quadratic forms: the variances of ds - g ds_w in x and y and of ds_w at `point` + (h, k) by (h, k, 1).

    `image` is g, the middle of the box in b.
    """
    by_a, by_b = np.zeros((3, ENTRIES)), np.zeros((3, ENTRIES))
    for row in range(3):
        for column in range(3):
            # The vector x̃ that this column of the form stands for, and M x̃.
            x0 = point[0] if column == 2 else 1.0 - column
            x1 = point[1] if column == 2 else 0.0 + column
            x2 = 1.0 if column == 2 else 0.0
            for q in range(3):
                moved = b_from_a[q, 0] * x0 + b_from_a[q, 1] * x1 + b_from_a[q, 2] * x2
                for p in range(3):
                    if p == 2 and q == 2:
                        continue
                    of_row = b_from_a[row, p] - (image[row] * b_from_a[2, p] if row < 2 else 0.0)
                    by_a[column, 3 * p + q] = of_row * (x0 if q == 0 else x1 if q == 1 else x2)
                    if p == row:
                        by_b[column, 3 * p + q] = -moved
                    elif p == 2:
                        by_b[column, 3 * p + q] = image[row] * moved
                    else:
                        by_b[column, 3 * p + q] = 0.0
        add_covariance(a, b, paths, by_a, by_b, forms[row])


@compiled
def _bound_deviation_in_b(
    b_from_a: Homographies,
    half: NDArray[np.float64],
    centre_deviation: NDArray[np.float64],
    there: NDArray[np.float64],
    forms: NDArray[np.float64],
    least_depth: float,
    deviation_in_b: NDArray[np.float64],
) -> None:
    """Write the largest deviations in b: those of the map from a, plus those of the centres in a."""
    of_depth = _largest_deviation(forms[2], half)
    for row in range(2):
        total = _largest_deviation(forms[row], half) + there[1, row] * of_depth
        for k in range(2):
            slope = abs(b_from_a[row, k] - there[0, row] * b_from_a[2, k]) + there[1, row] * abs(b_from_a[2, k])
            total += slope * centre_deviation[k]
        deviation_in_b[row] = total / least_depth


@compiled
def _largest_deviation(form: NDArray[np.float64], half: NDArray[np.float64]) -> float:
    """Return the square root of the largest value of a quadratic form at the corners (±h, ±k, 1)."""
    h, k = half[0], half[1]
    same = form[0, 0] * h * h + form[1, 1] * k * k + form[2, 2]
    crossed, along, across = 2.0 * form[0, 1] * h * k, 2.0 * form[0, 2] * h, 2.0 * form[1, 2] * k
    largest = max(crossed + abs(along + across), abs(along - across) - crossed)
    return float(np.sqrt(max(same + largest, 0.0)))


@compiled
def _bound_in_target(
    mid: Homographies,
    half: Homographies,
    own: Homographies,
    there: NDArray[np.float64],
    deviation_in_b: NDArray[np.float64],
    bounds: NDArray[np.float64],
) -> bool:
    """Write the largest deviations and smallest distances in all frames of the target's stretch; tell if they exist."""
    most_x, most_y = abs(there[0, 0]) + there[1, 0], abs(there[0, 1]) + there[1, 1]
    depth, depth_half = _interval(mid[2], half[2], there)
    least, most = depth - depth_half, depth + depth_half
    if not least > 0.0:
        return False
    for row in range(2):
        value, size = _interval(mid[row], half[row], there)
        low, high = value - size, value + size
        low /= least if low < 0.0 else most
        high /= least if high > 0.0 else most
        furthest = max(-low, high)
        at, around = (low + high) / 2.0, (high - low) / 2.0
        total = own[row, 0] * most_x + own[row, 1] * most_y + own[row, 2]
        total += furthest * (own[2, 0] * most_x + own[2, 1] * most_y)
        for k in range(2):
            # The largest |n_rk - γ n_2k| of all maps and positions.
            slope = abs(mid[row, k] - at * mid[2, k]) + half[row, k] + abs(at) * half[2, k]
            slope += around * (abs(mid[2, k]) + half[2, k])
            total += slope * deviation_in_b[k]
        bounds[0, row] = total / least
        bounds[1, row] = max(low, -high, 0.0)
        if not (furthest < FAR and bounds[0, row] < np.inf):
            return False
    return True


@compiled
def _interval(mid: NDArray[np.float64], half: NDArray[np.float64], there: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle and half the range of one row of the maps over the points of a box."""
    value, size = mid[2], half[2]
    for k in range(2):
        value += mid[k] * there[0, k]
        size += half[k] * abs(there[0, k]) + (abs(mid[k]) + half[k]) * there[1, k]
    return float(value), float(size)
