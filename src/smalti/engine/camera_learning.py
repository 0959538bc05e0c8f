"""Learn the deviations of the camera priors (`camera_priors.py`) from a solution.

By expectation maximisation, the variance of a kind of attitude or motion is the mean of value² + posterior variance.
`learn_camera` does one round from the deviations before. The fixed point is the restricted maximum likelihood.
`learn_mean_motion` learns the motion about which motions deviate. `limit_camera_precision` keeps the deviations above
what the links can resolve. `step_errors` and `expected_shared_turn` give the errors of links of consecutive frames.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from smalti.engine.camera_priors import KIND_OF_ATTITUDE, KIND_OF_MOTION, motions
from smalti.engine.equations import TURN, System
from smalti.engine.solution import Solution
from smalti.engine.variance_components import Check, NoiseModel
from smalti.geometry.homographies import invert

USUAL_DEVIATION, LOG_DEVIATION_OF_CAMERA = 0.03, 1.5
"""The prior on a deviation: its most likely value, and the deviation of its logarithm. The flights of the
data agree with it within a factor of four."""

LEAST_DEVIATION, LARGEST_DEVIATION = 1e-5, 1.0
"""Limits of the deviations of attitude and motion. A prior with the larger one has no effect."""

FEWEST_FRAMES = 8
"""The camera is learned from at least so many frames."""

SHARED_SHARE, FIRST_SHARED_TURN = 4.0, 1e-3
"""The prior deviation of the turn that all links of consecutive frames share, as a multiple of the turn in a single
link's noise; and its value where that noise is unknown. On the two long flights of the data the shared turn is about
three times that noise."""

SIGNIFICANT_DEVIATIONS = 3.0
"""A mean motion counts if it is larger than so many of its standard deviations."""

HEAVY_TAIL = 3.0
"""Degrees of freedom of a motion's t distribution. Its tails are heavy because a camera that keeps its heading along
lanes turns at their ends."""


def learn_camera(check: Check, before: NoiseModel) -> NoiseModel:
    """Return the noise model after one round of learning the camera's deviations."""
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
    """Return the noise model with the mean motion of the camera, where it is significant.

    A camera that pans or circles turns by about the same angle every time. Without a mean motion, this turn would be
    attributed to the shared error of links. `errors` (6,) are the deviations of links of consecutive frames.
    """
    system = solution.system
    if len(system.steps) < FEWEST_FRAMES:
        return before
    maps = solution.maps
    motion, _, _ = motions(maps, invert(maps), system.ends[system.steps], system.family.freedom)
    # With the weights of the motions, so that these do not pull a shared error out of the links.
    usual = np.sum(before.motion_weights * motion, axis=0) / np.sum(before.motion_weights, axis=0)
    about = 1.4826 * np.median(np.abs(motion - usual), axis=0)
    mean_error = np.hypot(about, errors) / np.sqrt(len(motion))
    kept = np.where(np.abs(usual) > SIGNIFICANT_DEVIATIONS * mean_error, usual, 0.0)
    return replace(before, camera=replace(before.camera, mean_motion=tuple(kept.tolist())))


def limit_camera_precision(noise_model: NoiseModel, errors: NDArray[np.float64], count: int) -> NoiseModel:
    """Return the noise model with camera deviations no smaller than `count` links with errors (6,) can resolve.

    A variance learned from n numbers of variance τ² each has a standard error of τ² √(2/n). A smaller variance may be
    chance, and too strong a camera prior bends a mosaic permanently. Attitudes deviate at least half as much as
    motions.
    """
    deviations = np.array(noise_model.camera.deviations)
    chance = errors**2 * np.sqrt(2.0 / max(count, 1))
    for kind in np.unique(KIND_OF_MOTION):
        if np.isfinite(deviations[kind]):
            deviations[kind] = np.sqrt(deviations[kind] ** 2 + np.mean(chance[kind == KIND_OF_MOTION]))
    deviations[:3] = np.maximum(deviations[:3], 0.5 * np.where(np.isfinite(deviations[4:]), deviations[4:], 0.0))
    return replace(noise_model, camera=noise_model.camera.with_deviations(deviations))


def step_errors(system: System, noise: float) -> NDArray[np.float64]:
    """Return the median deviations (6,) of a link of consecutive frames in turn, zoom, stretch and perspective."""
    errors, measured = np.zeros(len(KIND_OF_MOTION)), _step_variances(system)
    if measured is not None and len(measured) > TURN:
        errors[: len(measured) - TURN] = noise * np.sqrt(measured[TURN:])
    return errors


def expected_shared_turn(errors: NDArray[np.float64]) -> float:
    """Return the prior deviation of the shared turn, given the errors (6,) of links of consecutive frames."""
    return SHARED_SHARE * float(errors[0]) if errors[0] > 0.0 else FIRST_SHARED_TURN


def _step_variances(system: System) -> NDArray[np.float64] | None:
    """Return the median variances (f,) of links of consecutive frames, by direction; None if no link determines all."""
    found = []
    for n in system.steps:
        link = system.links[n]
        if link.rank >= system.family.freedom:
            rows = link.root @ system.family.by_entry.T
            found.append(np.diag(np.linalg.inv(rows.T @ rows)))
    return np.asarray(np.median(found, axis=0)) if found else None


def _most_likely_deviation(total: float, count: int) -> float:
    """Return the most likely deviation of `count` numbers whose squares sum to `total`, under its prior."""
    tightness = LOG_DEVIATION_OF_CAMERA**-2
    log_deviation, highest = math.log(LEAST_DEVIATION), math.log(LARGEST_DEVIATION)
    # The slope of the likelihood rises ever less steeply: from below, Newton's steps never pass the zero.
    step = math.inf
    while step > 1e-12 and log_deviation < highest:
        squares = total * math.exp(-2.0 * log_deviation)
        slope = count - squares + tightness * (log_deviation - math.log(USUAL_DEVIATION))
        step = -slope / (2.0 * squares + tightness)
        log_deviation += max(step, 0.0)
    return min(math.exp(log_deviation), LARGEST_DEVIATION)
