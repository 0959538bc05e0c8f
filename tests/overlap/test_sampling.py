"""Monte Carlo estimates against the exact probability, where the noise is small enough to linearise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import rectangle_probability
from smalti.paper.haralick import Haralick
from smalti.paper.linear_adjustment import LinearAdjustment, fit_affine_link
from smalti.records import Landmarks, Pair
from tests.overlap.sampling import sampled_probability, sampled_probability_of_maps

OUTLINE = Outline(0.0, 0.0, 100.0, 100.0)
SAMPLES = 40_000
SIGMA = 0.2
STANDARD_ERRORS = 4.0

# Steps that bring the centre of the last of three frames near to, not onto, the border of the first.
STEPS_NEAR_A_SIDE = ((25.0, 8.0), (24.8, -3.0))
STEPS_NEAR_A_CORNER = ((25.0, 24.9), (24.9, 25.05))
STEPS_INSIDE = ((10.0, 5.0), (10.0, 5.0))
STEPS_OUTSIDE = ((40.0, 5.0), (40.0, 5.0))


def chain_of_three(steps: tuple[tuple[float, float], ...]) -> Haralick:
    rng = np.random.default_rng(5)
    links = []
    for n, step in enumerate(steps):
        points_j = np.array([[10.0, 10.0], [70.0, 15.0], [20.0, 60.0], [65.0, 70.0]])
        noise = rng.normal(0.0, SIGMA, size=points_j.shape)
        links.append(fit_affine_link(Landmarks(Pair(n, n + 1), points_j + step + noise, points_j, SIGMA)))
    return Haralick(LinearAdjustment(3, OUTLINE, links))


def exact(covariance: Haralick, i: int, j: int) -> float:
    mean, cov = covariance.centre(i, j)
    return float(rectangle_probability(mean, np.array([cov[0, 0], cov[0, 1], cov[1, 1]]), OUTLINE))


def standard_error(probability: float) -> float:
    return math.sqrt(probability * (1.0 - probability) / SAMPLES)


@pytest.mark.parametrize("steps", [STEPS_NEAR_A_SIDE, STEPS_NEAR_A_CORNER])
@pytest.mark.parametrize(("i", "j"), [(0, 2), (2, 0)])
def test_two_dimensional_estimate_agrees_with_the_exact_probability(
    steps: tuple[tuple[float, float], ...], i: int, j: int
) -> None:
    covariance = chain_of_three(steps)
    probability = exact(covariance, i, j)
    assert 0.05 < probability < 0.95
    mean, cov = covariance.centre(i, j)
    found = sampled_probability(mean, cov, OUTLINE, SAMPLES, np.random.default_rng(1))
    assert abs(found - probability) < STANDARD_ERRORS * standard_error(probability)


@pytest.mark.parametrize("steps", [STEPS_NEAR_A_SIDE, STEPS_NEAR_A_CORNER])
def test_twelve_dimensional_estimate_agrees_with_the_exact_probability_of_small_noise(
    steps: tuple[tuple[float, float], ...],
) -> None:
    covariance = chain_of_three(steps)
    maps = covariance.adjustment.mosaic_from_frame
    probability = exact(covariance, 0, 2)
    assert 0.05 < probability < 0.95
    joint = covariance.joint(Pair(0, 2))
    found = sampled_probability_of_maps(maps[0], maps[2], joint, OUTLINE, SAMPLES, np.random.default_rng(2))
    assert abs(found - probability) < STANDARD_ERRORS * standard_error(probability)


def test_twelve_dimensional_estimate_agrees_for_two_frames_that_both_move() -> None:
    covariance = chain_of_three(((30.0, 0.0), (49.9, 5.0)))
    maps = covariance.adjustment.mosaic_from_frame
    probability = exact(covariance, 1, 2)
    assert 0.05 < probability < 0.95
    joint = covariance.joint(Pair(1, 2))
    found = sampled_probability_of_maps(maps[1], maps[2], joint, OUTLINE, SAMPLES, np.random.default_rng(3))
    assert abs(found - probability) < STANDARD_ERRORS * standard_error(probability)


@pytest.mark.parametrize(("steps", "expected"), [(STEPS_INSIDE, 1.0), (STEPS_OUTSIDE, 0.0)])
def test_both_estimates_are_certain_where_the_frames_clearly_overlap_or_not(
    steps: tuple[tuple[float, float], ...], expected: float
) -> None:
    covariance = chain_of_three(steps)
    maps = covariance.adjustment.mosaic_from_frame
    mean, cov = covariance.centre(0, 2)
    rng = np.random.default_rng(4)
    joint = covariance.joint(Pair(0, 2))
    assert sampled_probability(mean, cov, OUTLINE, 1000, rng) == expected
    assert sampled_probability_of_maps(maps[0], maps[2], joint, OUTLINE, 1000, rng) == expected
