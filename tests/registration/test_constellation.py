"""The shift of two frames by where their points lie: found from few points, and never invented."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.registration.constellation import Stars, find_shift

SIDE = 400.0


def scatter(count, seed, low=0.0, high=SIDE):
    rng = np.random.default_rng(seed)
    return stars(rng.uniform(low, high, (count, 2)), rng.uniform(10, 200, count))


def stars(points, strengths):
    return Stars.of(np.asarray(points), np.asarray(strengths), np.full(len(points), 0.1))


def beside(shared, apart, seed, offset=(358.0, 3.0)):
    """Two frames with points of their own and some that both show, a strip of a tenth."""
    rng = np.random.default_rng(seed)
    common = rng.uniform([offset[0], 10.0], [SIDE, SIDE - 10.0], (shared, 2))
    strengths = rng.uniform(10, 200, shared + apart)
    own = [rng.uniform(0, SIDE, (apart, 2)) for _ in range(2)]
    noise = rng.normal(0, 0.15, (shared, 2))
    return (
        stars(np.vstack([common, own[0]]), strengths),
        stars(np.vstack([common - offset + noise, own[1]]), strengths * rng.uniform(0.9, 1.1, len(strengths))),
    )


@pytest.mark.parametrize(("shared", "apart"), [(12, 40), (30, 300)])
def test_frames_that_may_lie_anywhere_are_matched_by_a_dozen_points(shared, apart):
    found = find_shift(*beside(shared, apart, seed=1), SIDE, SIDE)
    assert found is not None
    np.testing.assert_allclose(found.offset, (358.0, 3.0), atol=0.2)


def test_near_the_expected_place_four_points_are_enough():
    one, other = beside(4, 8, seed=4)
    assert find_shift(one, other, SIDE, SIDE) is None
    found = find_shift(one, other, SIDE, SIDE, (np.array([362.0, -2.0]), 15.0))
    assert found is not None
    np.testing.assert_allclose(found.offset, (358.0, 3.0), atol=0.3)


def test_frames_of_different_places_are_not_matched():
    for seed in range(150):
        for count in (5, 40, 400):
            one, other = scatter(count, 2 * seed), scatter(count, 2 * seed + 1)
            assert find_shift(one, other, SIDE, SIDE) is None
            assert find_shift(one, other, SIDE, SIDE, (np.array([350.0, 0.0]), 20.0)) is None


def test_clusters_at_different_places_are_not_matched():
    """In clusters more points meet by chance than if they lay anywhere."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        one, other = (
            stars(
                rng.uniform(50, 350, (6, 1, 2)).repeat(25, 1).reshape(-1, 2) + rng.normal(0, 6, (150, 2)), np.ones(150)
            )
            for _ in range(2)
        )
        assert find_shift(one, other, SIDE, SIDE) is None


def test_a_pattern_that_repeats_itself_is_not_matched():
    grid = np.stack(np.meshgrid(np.arange(10, 400, 20.0), np.arange(10, 400, 20.0)), axis=-1).reshape(-1, 2)
    one, other = stars(grid, np.ones(len(grid))), stars(grid + 0.1, np.ones(len(grid)))
    assert find_shift(one, other, SIDE, SIDE) is None


def test_points_that_met_by_chance_are_left_out():
    one, other = beside(30, 300, seed=6)
    found = find_shift(one, other, SIDE, SIDE)
    off = np.linalg.norm(found.points_i - found.points_j - found.offset, axis=1)
    assert off.max() < 0.8
    assert found.sigma_px < 0.1


def test_of_points_at_one_place_only_the_strongest_counts():
    found = stars([[10.0, 10.0], [10.2, 10.1], [50.0, 50.0]], [5.0, 9.0, 1.0])
    np.testing.assert_array_equal(found.points, [[10.2, 10.1], [50.0, 50.0]])


def test_frames_without_points_are_not_matched():
    assert find_shift(scatter(0, 1), scatter(20, 2), SIDE, SIDE) is None
