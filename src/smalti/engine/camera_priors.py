"""Two priors on the camera: how level frames are, and how little the camera moves between consecutive frames.

The *attitude* of a frame is its map relative to the level mosaic, without position and turn: the logarithm of its
scale, its stretch (2) and its perspective (2), in the frame's own axes. The *motion* between consecutive frames is the
turn, the change of scale, the stretch and the perspective of H_n⁻¹ H_n+1. `camera_learning.py` learns the deviations of
both, kind by kind. They end near 0.001 for the stage of a microscope and near 0.01 for a drone. For a camera that pans
or dives they become so large that the prior has no effect.

With h = H/H₂₂, p its last row and D the derivative of H at the centre of the frame, H ← H (I + Δ) changes them by

    D ← D (I + K),  K = Δ_lin - x pᵀ - (p·x) I,      p ← p + pᵀ Δ_lin + Δ_p - (p·x) p,

where x is the shift of Δ. The stretch is that of T = DᵀD/√det DᵀD, which changes by KᵀT + TK - tr(K) T.

`Camera` holds the deviations, `attitudes` and `motions` compute the values and their derivatives. Kernels come last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Homographies, PairNumbers

ATTITUDES, MOTIONS = 5, 6
"""How many numbers an attitude and a motion have."""

KINDS = ("level scale", "level stretch", "level perspective", "turn", "zoom", "stretch", "tilt")
"""The kinds that have a learned deviation each: three of the attitude, four of the motion."""

KIND_OF_ATTITUDE = np.array([0, 1, 1, 2, 2])
KIND_OF_MOTION = np.array([3, 4, 5, 5, 6, 6])

FIRST_DEVIATION = 0.3
"""The deviation of attitudes before anything is learned: hardly a restriction."""


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """The prior deviations of attitude and motion, by kind; infinite where there is no prior."""

    deviations: tuple[float, ...] = (FIRST_DEVIATION,) * 3 + (math.inf,) * 4
    mean_motion: tuple[float, ...] = (0.0,) * MOTIONS  # motions deviate about it: a camera may pan or circle steadily
    frames_per_place: float = 1.0  # how many consecutive frames show the same place

    @property
    def attitude_deviations(self) -> NDArray[np.float64]:
        """(5,): the deviations of a frame's attitude, if the motion prior counts as well.

        Where motions are small against attitudes, the attitudes of neighbours are correlated. Together they are one
        observation that the camera is level. With the correlation ρ between neighbours, each frame has the share
        (1 - ρ)/(1 + ρ) of the information. Frames that show different places count as independent.
        """
        level, moved = np.array(self.deviations[:3]), np.array(self.deviations[4:])
        share = np.divide(moved, level, out=np.full_like(level, math.inf), where=np.isfinite(moved))
        apart = np.clip(0.5 * share**2, 1.0 / self.frames_per_place, 1.0)
        return np.asarray((level * np.sqrt((2.0 - apart) / apart))[KIND_OF_ATTITUDE])

    @property
    def motion_deviations(self) -> NDArray[np.float64]:
        """(6,): the deviations of a motion."""
        return np.asarray(np.array(self.deviations)[KIND_OF_MOTION])

    @property
    def has_motion_prior(self) -> bool:
        """Tell whether there is a prior on motions."""
        return bool(np.isfinite(self.deviations[3:]).any())

    def loosened(self, factor: float) -> Camera:
        """Return a camera with all deviations times `factor`."""
        return self.with_deviations(factor * np.array(self.deviations))

    def loosened_to(self, deviation: float) -> Camera:
        """Return a camera whose deviations are at least `deviation`."""
        return self.with_deviations(np.maximum(self.deviations, deviation))

    def with_deviations(self, deviations: NDArray[np.float64]) -> Camera:
        """Return a camera with other deviations (7,)."""
        return replace(self, deviations=tuple(deviations.tolist()))


def attitudes(maps: Homographies, freedom: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the attitudes (N, 5) of frames and their derivatives (N, 5, freedom) by the frames' increments."""
    return _attitudes(np.ascontiguousarray(maps), freedom)


def motions(
    maps: Homographies, inverses: Homographies, pairs: PairNumbers, freedom: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the motions (K, 6) of pairs (K, 2), and their derivatives (K, 6, freedom) by either frame's increments."""
    return _motions(np.ascontiguousarray(maps), np.ascontiguousarray(inverses), pairs, freedom)


@compiled
def _entries_of(direction: int, delta: NDArray[np.float64]) -> None:
    """Write a direction of `homographies.BASIS` as a matrix (3, 3)."""
    for a in range(3):
        for b in range(3):
            delta[a, b] = 0.0
    if direction == 0:
        delta[0, 2] = 1.0
    elif direction == 1:
        delta[1, 2] = 1.0
    elif direction == 2:
        delta[0, 1] = -1.0
        delta[1, 0] = 1.0
    elif direction == 3:
        delta[0, 0] = 1.0
        delta[1, 1] = 1.0
    elif direction == 4:
        delta[0, 0] = 1.0
        delta[1, 1] = -1.0
    elif direction == 5:
        delta[0, 1] = 1.0
        delta[1, 0] = 1.0
    else:
        delta[2, direction - 6] = 1.0


@compiled
def _describe(
    map_: NDArray[np.float64], slope: NDArray[np.float64], moment: NDArray[np.float64], last: NDArray[np.float64]
) -> float:
    """Write D, T and p of a map; return det D."""
    corner = map_[2, 2]
    for a in range(2):
        last[a] = map_[2, a] / corner
    for a in range(2):
        for b in range(2):
            slope[a, b] = map_[a, b] / corner - map_[a, 2] / corner * last[b]
    area = slope[0, 0] * slope[1, 1] - slope[0, 1] * slope[1, 0]
    scale = max(abs(area), 1e-300)
    moment[0, 0] = (slope[0, 0] ** 2 + slope[1, 0] ** 2) / scale
    moment[1, 1] = (slope[0, 1] ** 2 + slope[1, 1] ** 2) / scale
    moment[0, 1] = (slope[0, 0] * slope[0, 1] + slope[1, 0] * slope[1, 1]) / scale
    moment[1, 0] = moment[0, 1]
    return float(area)


@compiled
def _change_of_stretch(
    moment: NDArray[np.float64], k00: float, k01: float, k10: float, k11: float
) -> tuple[float, float]:
    """Return the changes of (T₀₀ - T₁₁)/4 and T₀₁/2 for K."""
    trace = k00 + k11
    t00, t01, t11 = moment[0, 0], moment[0, 1], moment[1, 1]
    d00 = 2.0 * (k00 * t00 + k10 * t01) - trace * t00
    d11 = 2.0 * (k01 * t01 + k11 * t11) - trace * t11
    d01 = k00 * t01 + k10 * t11 + t00 * k01 + t01 * k11 - trace * t01
    return 0.25 * (d00 - d11), 0.5 * d01


@compiled
def _attitudes(maps: NDArray[np.float64], freedom: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = np.empty((len(maps), 5))
    slopes = np.zeros((len(maps), 5, freedom))
    slope, moment, p, delta = np.empty((2, 2)), np.empty((2, 2)), np.empty(2), np.empty((3, 3))
    for n in range(len(maps)):
        area = _describe(maps[n], slope, moment, p)
        values[n, 0] = 0.5 * math.log(max(area, 1e-300))
        values[n, 1], values[n, 2] = 0.25 * (moment[0, 0] - moment[1, 1]), 0.5 * moment[0, 1]
        values[n, 3], values[n, 4] = p[0], p[1]
        for c in range(freedom):
            _entries_of(c, delta)
            x, y = delta[0, 2], delta[1, 2]
            forth = p[0] * x + p[1] * y
            k00, k01 = delta[0, 0] - x * p[0] - forth, delta[0, 1] - x * p[1]
            k10, k11 = delta[1, 0] - y * p[0], delta[1, 1] - y * p[1] - forth
            slopes[n, 0, c] = 0.5 * (k00 + k11)
            slopes[n, 1, c], slopes[n, 2, c] = _change_of_stretch(moment, k00, k01, k10, k11)
            slopes[n, 3, c] = p[0] * delta[0, 0] + p[1] * delta[1, 0] + delta[2, 0] - forth * p[0]
            slopes[n, 4, c] = p[0] * delta[0, 1] + p[1] * delta[1, 1] + delta[2, 1] - forth * p[1]
    return values, slopes


@compiled
def _motions(
    maps: NDArray[np.float64], inverses: NDArray[np.float64], pairs: NDArray[np.int64], freedom: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    values = np.empty((len(pairs), 6))
    by_i, by_j = np.zeros((len(pairs), 6, freedom)), np.zeros((len(pairs), 6, freedom))
    slope, moment, p, delta = np.empty((2, 2)), np.empty((2, 2)), np.empty(2), np.empty((3, 3))
    relative, moved = np.empty((3, 3)), np.empty((2, 2))
    for n in range(len(pairs)):
        i, j = pairs[n]
        for a in range(3):
            for b in range(3):
                total = 0.0
                for c in range(3):
                    total += inverses[i, a, c] * maps[j, c, b]
                relative[a, b] = total
        area = _describe(relative, slope, moment, p)
        across, along = slope[1, 0] - slope[0, 1], slope[0, 0] + slope[1, 1]
        length = max(across * across + along * along, 1e-300)
        values[n, 0] = math.atan2(across, along)
        values[n, 1] = 0.5 * math.log(max(area, 1e-300))
        values[n, 2], values[n, 3] = 0.25 * (moment[0, 0] - moment[1, 1]), 0.5 * moment[0, 1]
        values[n, 4], values[n, 5] = p[0], p[1]
        corner = relative[2, 2]
        t_x, t_y = relative[0, 2] / corner, relative[1, 2] / corner
        # D⁻¹ converts D ← (I - V) D into D ← D (I + K).
        i00, i01, i10, i11 = slope[1, 1] / area, -slope[0, 1] / area, -slope[1, 0] / area, slope[0, 0] / area
        for c in range(freedom):
            _entries_of(c, delta)
            for side in range(2):
                if side == 1:
                    x, y = delta[0, 2], delta[1, 2]
                    forth = p[0] * x + p[1] * y
                    k00, k01 = delta[0, 0] - x * p[0] - forth, delta[0, 1] - x * p[1]
                    k10, k11 = delta[1, 0] - y * p[0], delta[1, 1] - y * p[1] - forth
                    p_x = p[0] * delta[0, 0] + p[1] * delta[1, 0] + delta[2, 0] - forth * p[0]
                    p_y = p[0] * delta[0, 1] + p[1] * delta[1, 1] + delta[2, 1] - forth * p[1]
                else:
                    q_x, q_y = delta[2, 0], delta[2, 1]
                    forth = q_x * t_x + q_y * t_y
                    v00, v01 = delta[0, 0] - t_x * q_x - forth, delta[0, 1] - t_x * q_y
                    v10, v11 = delta[1, 0] - t_y * q_x, delta[1, 1] - t_y * q_y - forth
                    # First -V D, then D⁻¹ from the left.
                    moved[0, 0] = -(v00 * slope[0, 0] + v01 * slope[1, 0])
                    moved[0, 1] = -(v00 * slope[0, 1] + v01 * slope[1, 1])
                    moved[1, 0] = -(v10 * slope[0, 0] + v11 * slope[1, 0])
                    moved[1, 1] = -(v10 * slope[0, 1] + v11 * slope[1, 1])
                    k00, k01 = i00 * moved[0, 0] + i01 * moved[1, 0], i00 * moved[0, 1] + i01 * moved[1, 1]
                    k10, k11 = i10 * moved[0, 0] + i11 * moved[1, 0], i10 * moved[0, 1] + i11 * moved[1, 1]
                    p_x = -(q_x * relative[0, 0] + q_y * relative[1, 0]) / corner + p[0] * forth
                    p_y = -(q_x * relative[0, 1] + q_y * relative[1, 1]) / corner + p[1] * forth
                moved[0, 0] = slope[0, 0] * k00 + slope[0, 1] * k10
                moved[0, 1] = slope[0, 0] * k01 + slope[0, 1] * k11
                moved[1, 0] = slope[1, 0] * k00 + slope[1, 1] * k10
                moved[1, 1] = slope[1, 0] * k01 + slope[1, 1] * k11
                target = by_j[n] if side == 1 else by_i[n]
                change_across, change_along = moved[1, 0] - moved[0, 1], moved[0, 0] + moved[1, 1]
                target[0, c] = (along * change_across - across * change_along) / length
                target[1, c] = 0.5 * (k00 + k11)
                target[2, c], target[3, c] = _change_of_stretch(moment, k00, k01, k10, k11)
                target[4, c], target[5, c] = p_x, p_y
    return values, by_i, by_j
