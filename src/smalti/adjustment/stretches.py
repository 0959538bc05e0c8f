"""What can be said at once of all pairs between two stretches of consecutive frames: how far apart, how sure at best.

Every stretch has a frame that stands for it. Between two of these the uncertainty of their relative map is known
exactly (`ascent.py`); within a stretch, so is every frame relative to the one that stands for it. The place of the
centre of i in j goes from i to its stretch's frame a, from there to b, the frame of the other stretch, and on to j:

    γ_ij = (Θ_j⁻¹Θ_b) (Θ_b⁻¹Θ_a) (Θ_a⁻¹Θ_i) 0̃

The standard deviation of a sum is at most the sum of the standard deviations, however they depend on each other, so
that the three steps' largest deviations bound that of every pair; and the three steps' boxes enclose every γ_ij.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.ascent import ENTRIES, Ascents, Ways
from smalti.adjustment.pairs import of_point, shared_levels, turned
from smalti.adjustment.pattern import Indices
from smalti.compiled import compiled, compiled_parallel, compiled_sums, prange, threads_for
from smalti.geometry.affine import compose
from smalti.records import Transforms

SHORTEST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """For every two stretches I, J, bounds on all γ_ij with i in I and j in J, both directions of a pair apart."""

    starts: Indices  # (M + 1,): frames starts[I] to starts[I + 1] are stretch I
    deviation: NDArray[np.float64]  # (M, M, 2), [I, J]: at least the standard deviations of γ_ij in x and y, px
    distance: NDArray[np.float64]  # (M, M, 2): at most the distances of γ_ij from the centre of j in x and y, px

    def of_frames(self, frames: Indices) -> Indices:
        """Return in which stretch each of these frames is."""
        return np.searchsorted(self.starts, frames, side="right") - 1


def cut_into_stretches(frames: int) -> Indices:
    """Return where stretches begin, and the end (M + 1,): so many that their pairs are about as many as the frames."""
    length = max(SHORTEST, round(np.sqrt(frames) / 2))
    count = max(1, round(frames / length))
    return np.linspace(0, frames, count + 1).round().astype(np.int64)


def middles(starts: Indices) -> Indices:
    """Return the frame that stands for each stretch (M,)."""
    return (starts[:-1] + starts[1:] - 1) // 2


@dataclass(frozen=True, slots=True, eq=False)
class Insides:
    """What lies within every stretch, relative to the frame that stands for it; lengths in units, deviations in px."""

    box: NDArray[np.float64]  # (M, 2): the middle of all centres, in that frame
    box_half: NDArray[np.float64]  # (M, 2)
    centre_deviation: NDArray[np.float64]  # (M, 2): the largest of a centre there
    map_middle: Transforms  # (M, 2, 3): of the maps from that frame to those of the stretch
    map_half: Transforms  # (M, 2, 3)
    map_deviation: Transforms  # (M, 2, 3): the largest of an entry of those maps


def look_inside(
    starts: Indices,
    seen: NDArray[np.float64],
    spread: NDArray[np.float64],
    deviations: NDArray[np.float64],
    maps: Transforms,
    inverses: Transforms,
) -> Insides:
    """Summarise every stretch relative to the frame that stands for it.

    `seen` (N, 2) and `spread` (N, 2) are the place of every frame's centre there, in units, and its variances, px²;
    `deviations` (N, 2, 3) those of the map from there to the frame.
    """
    first, counts = starts[:-1], np.diff(starts)
    low, high = np.minimum.reduceat(seen, first), np.maximum.reduceat(seen, first)
    frame_from_middle = compose(inverses, maps[np.repeat(middles(starts), counts)])
    least, most = np.minimum.reduceat(frame_from_middle, first), np.maximum.reduceat(frame_from_middle, first)
    return Insides(
        box=(low + high) / 2,
        box_half=(high - low) / 2,
        centre_deviation=np.sqrt(np.maximum.reduceat(spread, first)),
        map_middle=(least + most) / 2,
        map_half=(most - least) / 2,
        map_deviation=np.maximum.reduceat(deviations, first),
    )


def deviations_of_maps(
    sources: Indices, targets: Indices, ways: Ascents, maps: Transforms, inverses: Transforms
) -> Transforms:
    """Return the standard deviations (n, 2, 3), px, of the entries of the maps from source to target frames."""
    with threads_for(0.5 * len(sources)):
        return _deviations_of_maps(sources, targets, ways.arrays, maps, inverses)


def bound_stretches(
    starts: Indices, inside: Insides, ways: Ascents, maps: Transforms, inverses: Transforms, unit: float
) -> Stretches:
    """Bound all pairs of stretches; `ways` are those of the frames that stand for them."""
    middle = middles(starts)
    with threads_for(0.5 * len(middle) ** 2):
        deviation, distance = _bound(
            middle,
            ways.arrays,
            maps,
            inverses,
            inside.box,
            inside.box_half,
            inside.centre_deviation,
            inside.map_middle,
            inside.map_half,
            inside.map_deviation,
        )
    return Stretches(starts, deviation, distance * unit)


@compiled_parallel
def _deviations_of_maps(
    sources: Indices,
    targets: Indices,
    ways: Ways,
    maps: Transforms,
    inverses: Transforms,
) -> Transforms:
    result = np.zeros((len(sources), 2, 3))
    for n in prange(len(sources)):
        if sources[n] != targets[n]:
            _deviate(sources[n], targets[n], 0.0, 0.0, ways, maps, inverses, result[n])
    return result


@compiled_parallel
def _bound(
    middle: Indices,
    ways: Ways,
    maps: Transforms,
    inverses: Transforms,
    box: NDArray[np.float64],
    box_half: NDArray[np.float64],
    centre_deviation: NDArray[np.float64],
    map_middle: Transforms,
    map_half: Transforms,
    map_deviation: Transforms,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    count = len(middle)
    deviation = np.zeros((count, count, 2))
    distance = np.zeros((count, count, 2))
    for source in prange(count):
        entries = np.zeros((2, 3))
        on_way = np.zeros(2)
        for target in range(count):
            a, b = middle[source], middle[target]
            x, y = box[source, 0], box[source, 1]
            half_x, half_y = box_half[source, 0], box_half[source, 1]
            entries[:] = 0.0
            if a != b:
                _deviate(a, b, x, y, ways, maps, inverses, entries)
            q_xx, q_xy, q_yx, q_yy = turned(inverses[b], maps[a])
            dx = maps[a, 0, 2] - maps[b, 0, 2]
            dy = maps[a, 1, 2] - maps[b, 1, 2]
            # The box in frame b, and the largest deviation there.
            at_x = q_xx * x + q_xy * y + inverses[b, 0, 0] * dx + inverses[b, 0, 1] * dy
            at_y = q_yx * x + q_yy * y + inverses[b, 1, 0] * dx + inverses[b, 1, 1] * dy
            there_x = abs(q_xx) * half_x + abs(q_xy) * half_y
            there_y = abs(q_yx) * half_x + abs(q_yy) * half_y
            own_x, own_y = centre_deviation[source, 0], centre_deviation[source, 1]
            on_way[0] = entries[0, 2] + half_x * entries[0, 0] + half_y * entries[0, 1]
            on_way[0] += abs(q_xx) * own_x + abs(q_xy) * own_y
            on_way[1] = entries[1, 2] + half_x * entries[1, 0] + half_y * entries[1, 1]
            on_way[1] += abs(q_yx) * own_x + abs(q_yy) * own_y
            for row in range(2):
                mid, half, last = map_middle[target, row], map_half[target, row], map_deviation[target, row]
                along_x, along_y = abs(mid[0]) + half[0], abs(mid[1]) + half[1]
                deviation[source, target, row] = along_x * on_way[0] + along_y * on_way[1]
                deviation[source, target, row] += last[0] * (abs(at_x) + there_x) + last[1] * (abs(at_y) + there_y)
                deviation[source, target, row] += last[2]
                size = along_x * there_x + along_y * there_y + half[0] * abs(at_x) + half[1] * abs(at_y) + half[2]
                distance[source, target, row] = max(abs(mid[0] * at_x + mid[1] * at_y + mid[2]) - size, 0.0)
    return deviation, distance


@compiled
def _deviate(
    source: int,
    target: int,
    x: float,
    y: float,
    ways: Ways,
    maps: Transforms,
    inverses: Transforms,
    result: Transforms,
) -> None:
    """Write the deviations of the map's two linear columns, and of where it takes the point (x, y)."""
    place, _, depth, freedom, start, values, tail_start, tails = ways
    at_s, at_t = place[source], place[target]
    shared = shared_levels(source, target, ways)
    q = turned(inverses[target], maps[source])
    dx, dy = maps[source, 0, 2] - maps[target, 0, 2], maps[source, 1, 2] - maps[target, 1, 2]
    u = q[0] * x + q[1] * y + inverses[target, 0, 0] * dx + inverses[target, 0, 1] * dy
    v = q[2] * x + q[3] * y + inverses[target, 1, 0] * dx + inverses[target, 1, 1] * dy
    length_s, length_t = (depth[at_s] + 1) * freedom, (depth[at_t] + 1) * freedom
    way_s = values[start[at_s] : start[at_s] + ENTRIES * length_s]
    way_t = values[start[at_t] : start[at_t] + ENTRIES * length_t]
    _vary_shared(way_s, length_s, way_t, length_t, shared * freedom, q, (x, y, u, v), result)
    _vary_own(tails[tail_start[at_s] + shared], tails[tail_start[at_t] + shared], q, (x, y, u, v), result)
    for row in range(2):
        for column in range(3):
            result[row, column] = np.sqrt(result[row, column])


@compiled_sums
def _vary_shared(
    way_s: NDArray[np.float64],
    length_s: int,
    way_t: NDArray[np.float64],
    length_t: int,
    shared: int,
    q: tuple[float, float, float, float],
    points: tuple[float, float, float, float],
    result: Transforms,
) -> None:
    """Write the variances along what the two ways share: of Q δ_s - δ_t Q, and of Q δ_s (x, y, 1) - δ_t (u, v, 1)."""
    a, b, c, d = q
    x, y, u, v = points
    s0, s1, s2 = way_s, way_s[length_s:], way_s[2 * length_s :]
    s3, s4, s5 = way_s[3 * length_s :], way_s[4 * length_s :], way_s[5 * length_s :]
    t0, t1, t2 = way_t, way_t[length_t:], way_t[2 * length_t :]
    t3, t4, t5 = way_t[3 * length_t :], way_t[4 * length_t :], way_t[5 * length_t :]
    xx, xy, xp, yx, yy, yp = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for n in range(shared):
        along, across = x * s0[n] + y * s1[n] + s2[n], x * s3[n] + y * s4[n] + s5[n]
        xx += (a * s0[n] + b * s3[n] - a * t0[n] - c * t1[n]) ** 2
        xy += (a * s1[n] + b * s4[n] - b * t0[n] - d * t1[n]) ** 2
        xp += (a * along + b * across - u * t0[n] - v * t1[n] - t2[n]) ** 2
        yx += (c * s0[n] + d * s3[n] - a * t3[n] - c * t4[n]) ** 2
        yy += (c * s1[n] + d * s4[n] - b * t3[n] - d * t4[n]) ** 2
        yp += (c * along + d * across - u * t3[n] - v * t4[n] - t5[n]) ** 2
    result[0, 0], result[0, 1], result[0, 2] = xx, xy, xp
    result[1, 0], result[1, 1], result[1, 2] = yx, yy, yp


@compiled
def _vary_own(
    tail_s: NDArray[np.float64],
    tail_t: NDArray[np.float64],
    q: tuple[float, float, float, float],
    points: tuple[float, float, float, float],
    result: Transforms,
) -> None:
    """Add the variances of the same along what each way has for itself."""
    a, b, c, d = q
    x, y, u, v = points
    s, t = tail_s, tail_t
    # Of the source: its entries turned by Q.
    result[0, 0] += a * a * s[0] + 2.0 * a * b * s[12] + b * b * s[6]
    result[1, 0] += c * c * s[0] + 2.0 * c * d * s[12] + d * d * s[6]
    result[0, 1] += a * a * s[3] + 2.0 * a * b * s[16] + b * b * s[9]
    result[1, 1] += c * c * s[3] + 2.0 * c * d * s[16] + d * d * s[9]
    along, mixed, across = of_point(s, x, y)
    result[0, 2] += a * a * along + 2.0 * a * b * mixed + b * b * across
    result[1, 2] += c * c * along + 2.0 * c * d * mixed + d * d * across
    # Of the target: at the columns of Q and at the point.
    result[0, 0] += a * a * t[0] + 2.0 * a * c * t[1] + c * c * t[3]
    result[1, 0] += a * a * t[6] + 2.0 * a * c * t[7] + c * c * t[9]
    result[0, 1] += b * b * t[0] + 2.0 * b * d * t[1] + d * d * t[3]
    result[1, 1] += b * b * t[6] + 2.0 * b * d * t[7] + d * d * t[9]
    along, mixed, across = of_point(t, u, v)
    result[0, 2] += along
    result[1, 2] += across
