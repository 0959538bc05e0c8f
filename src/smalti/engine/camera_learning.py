"""TODO"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from smalti.engine.camera_priors import KIND_OF_ATTITUDE, KIND_OF_MOTION, motions
from smalti.engine.equations import TURN, System
from smalti.engine.solution import Solution
from smalti.engine.variance_components import Check, NoiseModel
from smalti.geometry.homographies import invert

USUAL_DEVIATION, LOG_DEVIATION_OF_CAMERA = 0.03, 1.5
"""Of the camera before anything is known: what flights show, within a factor of four."""

LEAST_DEVIATION, LARGEST_DEVIATION = 1e-5, 1.0
"""Of attitude and motion; beyond the larger one a prior says nothing."""

FEWEST_FRAMES = 8
"""Of which something can be learned of the camera."""

SHARED_SHARE, FIRST_SHARED_TURN = 4.0, 1e-3
"""Times the turn of a single link's noise, the deviation of what all links of consecutive frames turn too much. On the
two long flights of the data they turn too much by about three times that noise."""

SIGNIFICANT_DEVIATIONS = 3.0
"""Deviations of its mean, from which on a camera's motion is taken to be kept up."""

HEAVY_TAIL = 3.0
"""Degrees of freedom of a motion's t distribution: a camera that keeps its heading along lanes turns at their ends."""


def learn_camera(check: Check, before: NoiseModel) -> NoiseModel:
    """Return what one round more tells of the camera."""
    solution = check.solution
    system = solution.system
    if system.frames < FEWEST_FRAMES:
        return before
    deviations = np.array(before.camera.deviations)
    squares = check.attitude_squares()
    moved = np.zeros((0, len(KIND_OF_MOTION)))
    if len(system.steps) >= FEWEST_FRAMES:
        motion, by_i, by_j = motions(
            solution.maps, invert(solution.maps), system.ends[system.steps], system.family.freedom
        )
        moved = check.motion_squares(motion - before.camera.mean_motion, by_i, by_j)
    motion_weights = before.motion_weights
    for kind in range(len(deviations)):
        of_kind, table = (
            (kind == KIND_OF_ATTITUDE, squares) if kind in KIND_OF_ATTITUDE else (kind == KIND_OF_MOTION, moved)
        )
        if not len(table):
            continue
        chosen = table[:, of_kind]
        if kind in KIND_OF_MOTION:
            first = deviations[kind] if np.isfinite(deviations[kind]) else float(np.sqrt(np.median(chosen)) + 1e-3)
            usual = (HEAVY_TAIL + 1.0) / (HEAVY_TAIL + chosen / first**2)
            motion_weights = motion_weights.copy()
            motion_weights[:, of_kind] = usual
            chosen = usual * chosen
        deviations[kind] = _most_likely_deviation(float(chosen.sum()), chosen.size)
    return replace(before, camera=before.camera.with_deviations(deviations), motion_weights=motion_weights)


def learn_mean_motion(solution: Solution, before: NoiseModel, errors: NDArray[np.float64]) -> NoiseModel:
    """Return what is known with the motion that a camera keeps up from frame to frame, where it is beyond doubt.

    Whoever pans or circles turns by much the same every time. If that had to be small, all links of consecutive frames
    would be thought to turn alike too much, which they may by some. They err by `errors` (6,).
    """
    system = solution.system
    if len(system.steps) < FEWEST_FRAMES:
        return before
    maps = solution.maps
    motion, _, _ = motions(maps, invert(maps), system.ends[system.steps], system.family.freedom)
    # Weighted as motions are: then they pull no common error out of the links.
    usual = np.sum(before.motion_weights * motion, axis=0) / np.sum(before.motion_weights, axis=0)
    about = 1.4826 * np.median(np.abs(motion - usual), axis=0)
    mean_error = np.hypot(about, errors) / np.sqrt(len(motion))
    kept = np.where(np.abs(usual) > SIGNIFICANT_DEVIATIONS * mean_error, usual, 0.0)
    return replace(before, camera=replace(before.camera, mean_motion=tuple(kept.tolist())))


def limit_camera_precision(noise_model: NoiseModel, errors: NDArray[np.float64], count: int) -> NoiseModel:
    """Return the camera held no stiller than so many links can tell that err by `errors` (6,) each.

    A variance that is learned from n numbers of variance τ² each is known to τ² √(2/n): less than that may be chance,
    and a camera that is held too still bends a mosaic for good. Frames are no more level than they move.
    """
    deviations = np.array(noise_model.camera.deviations)
    chance = errors**2 * np.sqrt(2.0 / max(count, 1))
    for kind in np.unique(KIND_OF_MOTION):
        if np.isfinite(deviations[kind]):
            deviations[kind] = np.sqrt(deviations[kind] ** 2 + np.mean(chance[kind == KIND_OF_MOTION]))
    deviations[:3] = np.maximum(deviations[:3], 0.5 * np.where(np.isfinite(deviations[4:]), deviations[4:], 0.0))
    return replace(noise_model, camera=noise_model.camera.with_deviations(deviations))


def step_errors(system: System, noise: float) -> NDArray[np.float64]:
    """Return by how much a link of consecutive frames errs in turn, zoom, stretch and perspective (6,), as a rule."""
    errors, measured = np.zeros(len(KIND_OF_MOTION)), _step_variances(system)
    if measured is not None and len(measured) > TURN:
        errors[: len(measured) - TURN] = noise * np.sqrt(measured[TURN:])
    return errors


def expected_shared_turn(errors: NDArray[np.float64]) -> float:
    """Return by how much links of consecutive frames that err by `errors` (6,) may turn alike too much."""
    return SHARED_SHARE * float(errors[0]) if errors[0] > 0.0 else FIRST_SHARED_TURN


def _step_variances(system: System) -> NDArray[np.float64] | None:
    """Return how uncertain links of consecutive frames are of each direction (f,), in the median."""
    found = []
    for n in system.steps:
        link = system.links[n]
        if link.rank >= system.family.freedom:
            rows = link.root @ system.family.by_entry.T
            found.append(np.diag(np.linalg.inv(rows.T @ rows)))
    return np.asarray(np.median(found, axis=0)) if found else None


def _most_likely_deviation(total: float, count: int) -> float:
    """Return the deviation of numbers whose squares sum up to a total, by what cameras usually show."""

    def slope(log_deviation: float) -> float:
        excess = count - total * np.exp(-2.0 * log_deviation)
        return float(excess + (log_deviation - np.log(USUAL_DEVIATION)) / LOG_DEVIATION_OF_CAMERA**2)

    lowest, highest = np.log([LEAST_DEVIATION, LARGEST_DEVIATION])
    if slope(lowest) >= 0.0:
        return LEAST_DEVIATION
    return LARGEST_DEVIATION if slope(highest) <= 0.0 else float(np.exp(brentq(slope, lowest, highest)))
