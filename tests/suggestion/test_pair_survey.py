"""The pairs that stand for all others, and how probably frames lie within some reach of each other."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.engine.relative_position import PairCentres
from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import rectangle_probability
from smalti.suggestion.pair_survey import FURTHEST_NEAR, REACHES, far_pairs, near_pairs, probability_within

OUTLINE = Outline(-0.5, -0.5, 119.5, 79.5)


@pytest.mark.parametrize("frames", [2, 40, 1000])
def test_near_pairs_are_distinct_pairs_of_frames_near_in_time(frames):
    pairs, _ = near_pairs(frames)
    gaps = np.diff(pairs, axis=1)[:, 0]
    assert pairs.min() >= 0
    assert pairs.max() < frames
    assert gaps.min() == 1
    assert gaps.max() < FURTHEST_NEAR
    assert len(np.unique(pairs, axis=0)) == len(pairs)


@pytest.mark.parametrize("frames", [2, 40, 1000])
def test_near_pairs_stand_for_all_pairs_of_their_distances_in_time(frames):
    pairs, sampling_weight = near_pairs(frames)
    gaps = np.diff(pairs, axis=1)[:, 0]
    for gap in np.unique(gaps):
        assert sampling_weight[gaps == gap].sum() == pytest.approx(frames - gap)


def test_of_few_frames_every_near_pair_stands_for_itself():
    pairs, sampling_weight = near_pairs(12)
    assert len(pairs) == 66
    np.testing.assert_array_equal(sampling_weight, 1.0)


@pytest.mark.parametrize("frames", [2, 48, 49, 400])
def test_far_pairs_are_distinct_and_further_apart_than_those_near(frames):
    pairs = far_pairs(frames)
    assert bool(len(pairs)) is (frames > FURTHEST_NEAR)
    assert (np.diff(pairs, axis=1) >= FURTHEST_NEAR).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)


def test_far_pairs_leave_no_part_of_the_sequence_out():
    counted = np.bincount(far_pairs(1000).ravel() // 50, minlength=20)
    assert counted.min() > 0.5 * counted.mean()


def centres_of(rng, outline=OUTLINE, count=200, slope=0.5):
    """Places of either direction, from certain to anywhere, from the middle to far away; ellipses up to 1 : 4."""
    mean = outline.centre + rng.normal(size=(count, 2, 2)) * rng.uniform(1.0, 200.0, size=(count, 1, 1))
    deviation = np.exp(rng.uniform(np.log(0.5), np.log(150.0), size=(count, 2, 1)) + rng.uniform(0, 1, (count, 2, 2)))
    xy = slope * rng.uniform(-1.0, 1.0, size=(count, 2)) * deviation.prod(axis=2)
    return PairCentres(outline, mean, np.stack([deviation[:, :, 0] ** 2, xy, deviation[:, :, 1] ** 2], axis=2))


def one_way(centres, side):
    """The same direction twice."""
    mean, cov = (np.ascontiguousarray(some[:, [side, side]]) for some in (centres.mean, centres.cov))
    return PairCentres(centres.outline, mean, cov)


def exactly_within(centres, outline):
    return rectangle_probability(centres.mean, centres.cov, outline).mean(axis=1)


def test_the_probability_of_the_frame_is_that_of_its_rectangle():
    centres = centres_of(np.random.default_rng(1))
    np.testing.assert_allclose(probability_within(centres)[:, 0], exactly_within(centres, OUTLINE), atol=1e-3)


def test_the_probability_grows_with_the_reach():
    within = probability_within(centres_of(np.random.default_rng(2)))
    assert (np.diff(within, axis=1) >= 0.0).all()
    assert within.min() >= 0.0
    assert within.max() <= 1.0 + 1e-9


def test_that_of_larger_reaches_is_exact_for_square_frames_and_upright_ellipses():
    outline = Outline(-0.5, -0.5, 99.5, 99.5)
    centres = centres_of(np.random.default_rng(3), outline, slope=0.0)
    within = probability_within(centres)
    for reach, found in zip(REACHES[1:], within[:, 1:].T, strict=True):
        np.testing.assert_allclose(found, exactly_within(centres, outline.scaled(reach)), atol=1e-4)


def test_times_the_spread_every_direction_counts_with_its_own():
    centres = centres_of(np.random.default_rng(4))
    spread = np.sqrt(centres.cov[:, :, 0] * centres.cov[:, :, 2] - centres.cov[:, :, 1] ** 2)
    expected = sum(probability_within(one_way(centres, side)) * spread[:, [side]] for side in range(2)) / 2.0
    np.testing.assert_allclose(
        probability_within(centres, spread_above=np.zeros(len(centres.mean))), expected, rtol=1e-9, atol=1e-12
    )
