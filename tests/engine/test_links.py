"""Links: what landmarks of any number say of a pair's map, against the landmarks themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.engine.link_prediction import velocities
from smalti.engine.links import (
    MOST_LANDMARKS,
    fit_link,
    linear_part,
    map_in_pixels,
    projected_and_rows,
    relinearise,
    spread_out,
)
from smalti.errors import LandmarkError
from smalti.geometry.homographies import (
    FAMILIES,
    PROJECTIVE,
    RIGID,
    SIMILARITY,
    TRANSLATION,
    apply_map,
    exponential,
    normalise,
)
from smalti.geometry.lens import Lens
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, Flight, flight

EXACT = settings(derandomize=True, deadline=None, max_examples=40)
TILTED = (0.0, 0.0, 0.3, 0.1, 0.05, 0.05, 0.05, 0.05)
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
PAIR = Pair(0, 1)


def two_frames(seed, family=PROJECTIVE) -> Flight:
    return flight(np.random.default_rng(seed), 2, family, deviations=TILTED)


def told(seed=1, count=8, family=PROJECTIVE, **how) -> Landmarks:
    return two_frames(seed, family).see(PAIR, np.random.default_rng(seed), count=count, **how)


def error_of(link, i_from_j):
    """e: what is between a map and that of a link."""
    m = normalise(np.linalg.inv(link.i_from_j) @ i_from_j)
    return (m - np.eye(3)).ravel()[:8]


def cost_of(link, i_from_j):
    """The squared distances of a link's landmarks, in units of their noise."""
    off = apply_map(i_from_j, link.points_j) - link.points_i
    return float(np.sum(off**2 / link.sigma[:, None] ** 2))


# What landmarks determine


@pytest.mark.parametrize(("count", "rank"), [(1, 2), (3, 6), (4, 8), (5, 8)])
def test_landmarks_determine_two_numbers_each_and_eight_at_most(count, rank):
    assert fit_link(told(count=count), OUTLINE).rank == rank


def test_landmarks_on_a_line_leave_three_numbers_open():
    points = OUTLINE.centre + np.linspace(-30.0, 30.0, 6)[:, None] * [1.0, 0.4]
    assert fit_link(Landmarks(PAIR, points + np.array([20.0, 3.0]), points), OUTLINE).rank == 5


@settings(EXACT, max_examples=150)
@given(
    family=st.sampled_from(list(FAMILIES.values())),
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 2, 3, 4, 6]),
)
def test_the_truth_of_exact_landmarks_costs_nothing_whatever_their_number(family, seed, count):
    link = fit_link(told(seed, count, family, noise=0.0), OUTLINE, None, family)
    # In units of the noise: a thousandth of a deviation.
    assert np.linalg.norm(link.root @ error_of(link, two_frames(seed, family).i_from_j(PAIR))) < 1e-3


@each_family
def test_enough_exact_landmarks_give_the_map_itself(family):
    link = fit_link(told(0, 6, family, noise=0.0), OUTLINE, None, family)
    np.testing.assert_allclose(link.i_from_j, two_frames(0, family).i_from_j(PAIR), atol=1e-7)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_near_the_fit_a_link_costs_what_its_landmarks_do(count):
    link = fit_link(told(0, count, noise=0.0), OUTLINE)
    for step in 1e-4 * np.random.default_rng(0).normal(size=(4, 8)):
        moved = link.i_from_j @ exponential(step[None])[0]
        assert np.sum((link.root @ error_of(link, moved)) ** 2) == pytest.approx(cost_of(link, moved), rel=0.01)


def test_of_noisy_landmarks_a_link_costs_what_is_beyond_the_best_fit():
    link = fit_link(told(0, 8), OUTLINE)
    for step in 3e-3 * np.random.default_rng(0).normal(size=(4, 8)):
        moved = link.i_from_j @ exponential(step[None])[0]
        beyond = cost_of(link, moved) - cost_of(link, link.i_from_j)
        assert np.sum((link.root @ error_of(link, moved)) ** 2) == pytest.approx(beyond, rel=0.1)


@each_family
def test_no_neighbour_in_the_family_fits_better(family):
    link = fit_link(told(0, 9, noise=2.0), OUTLINE, None, family)
    for direction in np.eye(family.freedom):
        for step in (1e-3, -1e-3):
            moved = link.i_from_j @ exponential(step * direction[None])[0]
            assert cost_of(link, moved) > cost_of(link, link.i_from_j)


def test_a_noisier_landmark_counts_less():
    exact = told(count=9, noise=0.0)
    points_i = exact.points_i.copy()
    points_i[0] += 10.0
    off = [
        np.abs(
            fit_link(Landmarks(PAIR, points_i, exact.points_j, np.r_[sigma, np.ones(8)]), OUTLINE).i_from_j
            - two_frames(1).i_from_j(PAIR)
        ).max()
        for sigma in (1.0, 1000.0)
    ]
    assert off[1] < 1e-3 * off[0]


def test_a_fit_is_of_its_family():
    for family, straight in ((TRANSLATION, np.eye(2)), (RIGID, None), (SIMILARITY, None)):
        linear = fit_link(told(count=9), OUTLINE, None, family).i_from_j[:2, :2]
        if straight is not None:
            np.testing.assert_allclose(linear, straight, atol=1e-12)
        assert linear[0, 0] == pytest.approx(linear[1, 1], abs=1e-12)
        assert linear[0, 1] == pytest.approx(-linear[1, 0], abs=1e-12)


# What landmarks leave open


def test_one_landmark_alone_is_a_shift():
    record = Landmarks(PAIR, np.array([[70.0, 50.0]]), np.array([[40.0, 30.0]]))
    link = fit_link(record, OUTLINE)
    np.testing.assert_allclose(link.i_from_j, [[1, 0, 0.6], [0, 1, 0.4], [0, 0, 1]], atol=1e-4)


def test_two_landmarks_are_a_shift_a_turn_and_a_scale():
    turn = 1.3 * np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    points = np.array([[-0.4, 0.1], [0.5, -0.2]])
    seen = points @ turn.T + [0.2, 0.1]
    in_pixels = (some * OUTLINE.unit + OUTLINE.centre for some in (seen, points))
    link = fit_link(Landmarks(PAIR, *in_pixels), OUTLINE)
    np.testing.assert_allclose(link.i_from_j[:2], np.column_stack([turn, [0.2, 0.1]]), atol=1e-6)


def test_what_landmarks_leave_open_stays_near_where_it_begins():
    near = two_frames(3).i_from_j(PAIR)
    link = fit_link(told(3, 1, noise=0.0), OUTLINE, near=near)
    np.testing.assert_allclose(link.i_from_j, near, atol=1e-6)


@pytest.mark.parametrize("count", [3, 9])
def test_mirrored_landmarks_are_refused_with_the_remedy(count):
    record = told(count=count)
    mirrored = record.points_i * [-1.0, 1.0] + [100.0, 0.0]
    with pytest.raises(LandmarkError, match=r"\(0, 1\).*mirrored.*swapped"):
        fit_link(Landmarks(PAIR, mirrored, record.points_j), OUTLINE)


def test_no_landmark_at_all_is_refused_with_the_remedy():
    with pytest.raises(LandmarkError, match=r"\(0, 1\).*mark a point"):
        fit_link(Landmarks(PAIR, np.empty((0, 2)), np.empty((0, 2))), OUTLINE)


def test_of_many_landmarks_some_take_part_and_all_are_counted():
    link = fit_link(told(count=200), OUTLINE)
    assert len(link.points_j) == MOST_LANDMARKS
    assert link.landmarks == 200


def test_points_that_are_spread_out_are_farther_from_each_other_than_any():
    points = np.random.default_rng(1).uniform(size=(500, 2))
    chosen = spread_out(points, 20)
    assert len(set(chosen.tolist())) == 20
    gaps = np.linalg.norm(points[chosen][:, None] - points[chosen][None], axis=2)[np.triu_indices(20, 1)]
    assert gaps.min() > 0.12


def test_the_residual_is_the_distance_of_all_landmarks_in_pixels():
    found = fit_link(told(count=200, noise=2.0), OUTLINE).residual_px
    assert found == pytest.approx(2.0 * np.sqrt(2.0), rel=0.1)


def test_landmarks_are_taken_straight_of_the_lens():
    lens = Lens(OUTLINE, 0.1)
    world = Flight(PROJECTIVE, two_frames(2).truth, lens)
    record = world.see(PAIR, np.random.default_rng(1), count=12, noise=0.0)
    assert fit_link(record, OUTLINE, lens).residual_px < 1e-6
    assert fit_link(record, OUTLINE).residual_px > 0.1


def test_a_map_in_pixels_takes_landmarks_where_they_are_seen():
    record = told(noise=0.0)
    np.testing.assert_allclose(apply_map(map_in_pixels(record, OUTLINE), record.points_j), record.points_i, atol=1e-5)


# Relinearising

UNCHANGED = np.zeros(2)


def test_at_its_own_map_a_link_stays_as_it_is():
    link = fit_link(told(count=6, noise=0.0), OUTLINE)
    again = relinearise(link, link.i_from_j, UNCHANGED, 1.0)
    np.testing.assert_allclose(again.i_from_j, link.i_from_j, atol=1e-6)
    np.testing.assert_allclose(again.root.T @ again.root, link.root.T @ link.root, rtol=1e-3)


def test_from_a_map_nearby_it_leads_to_where_the_landmarks_fit():
    link = fit_link(told(count=8), OUTLINE)
    nearby = link.i_from_j @ exponential(np.full((1, 8), 0.01))[0]
    again = relinearise(link, nearby, UNCHANGED, 1.0)
    assert cost_of(link, again.i_from_j) - cost_of(link, link.i_from_j) < 1e-3 * cost_of(link, nearby)


def test_a_landmark_that_no_map_follows_loses_its_weight():
    exact = told(count=12, noise=0.0)
    points_i = exact.points_i.copy()
    points_i[0] += 30.0
    link = fit_link(Landmarks(PAIR, points_i, exact.points_j), OUTLINE)
    truth = two_frames(1).i_from_j(PAIR)
    again = relinearise(link, truth, UNCHANGED, 1.0 / OUTLINE.unit)
    assert np.abs(again.i_from_j - truth).max() < 0.05 * np.abs(link.i_from_j - truth).max()


# Derivatives


def test_points_move_with_the_entries_of_an_increment():
    points = np.array([[0.3, -0.6], [-0.9, 0.2]])
    for entry, direction in enumerate(np.eye(9)[:8].reshape(8, 3, 3)):
        ahead, back = (apply_map(np.eye(3) + step * direction, points) for step in (1e-6, -1e-6))
        np.testing.assert_allclose(velocities(points)[:, :, entry], (ahead - back) / 2e-6, atol=1e-8)


def test_seen_points_move_with_the_entries_of_the_map_s_increment():
    points, i_from_j = np.array([[0.3, -0.6], [-0.9, 0.2]]), two_frames(5).i_from_j(PAIR)
    seen, rows = projected_and_rows(i_from_j, points)
    np.testing.assert_allclose(seen, apply_map(i_from_j, points), rtol=1e-12)
    for entry, direction in enumerate(np.eye(9)[:8].reshape(8, 3, 3)):
        ahead, back = (apply_map(i_from_j @ (np.eye(3) + step * direction), points) for step in (1e-6, -1e-6))
        np.testing.assert_allclose(rows[:, :, entry], (ahead - back) / 2e-6, atol=1e-7)


def test_the_linear_part_is_the_derivative_at_the_centre():
    i_from_j = 3.0 * two_frames(5).i_from_j(PAIR)
    columns = [apply_map(i_from_j, np.array([step, -step])) for step in 1e-6 * np.eye(2)]
    expected = np.column_stack([(ahead - back) / 2e-6 for ahead, back in columns])
    np.testing.assert_allclose(linear_part(i_from_j), expected, atol=1e-8)


# The lens


@pytest.mark.parametrize("coefficient", [0, 1])
def test_a_link_moves_with_the_lens_as_it_says(coefficient):
    lens, step = Lens(OUTLINE, 0.05, -0.01), 1e-5
    landmarks = told(count=12)
    link = fit_link(landmarks, OUTLINE, lens)
    ahead, back = (
        fit_link(landmarks, OUTLINE, lens.moved(*(side * step * np.eye(2)[coefficient]))) for side in (1, -1)
    )
    # Where the map goes, e goes against it: R e stays small if the map follows the lens.
    moved = np.linalg.inv(back.i_from_j) @ ahead.i_from_j
    entries = (moved / moved[2, 2] - np.eye(3)).ravel()[:8] / (2.0 * step)
    np.testing.assert_allclose(
        link.root @ entries, -link.by_lens[:, coefficient], atol=0.02 * np.abs(link.by_lens).max()
    )


def test_landmarks_through_a_changed_lens_are_those_that_it_straightens():
    lens, change = Lens(OUTLINE, 0.05, -0.01), np.array([0.01, 0.003])
    landmarks = told(count=12)
    points_i, points_j = fit_link(landmarks, OUTLINE, lens).through(change)
    changed = fit_link(landmarks, OUTLINE, lens.moved(*change))
    np.testing.assert_allclose(points_i, changed.points_i, atol=1e-12)
    np.testing.assert_allclose(points_j, changed.points_j, atol=1e-12)


# Landmarks on curves


def on_curves(landmarks, degrees):
    angles = np.radians(degrees)
    return Landmarks(
        landmarks.pair,
        landmarks.points_i,
        landmarks.points_j,
        landmarks.sigma,
        np.column_stack([np.cos(angles), np.sin(angles)]),
    )


def test_a_landmark_on_a_curve_gives_one_equation():
    one = told(count=1)
    link = fit_link(on_curves(one, [30.0]), OUTLINE)
    assert link.rank == 1
    # Moving the point along the curve costs nothing, across it as much as that of any landmark.
    shifts = np.linalg.solve(linear_part(fit_link(one, OUTLINE).i_from_j), np.eye(2))
    step = np.zeros((8, 2))
    step[[2, 5]] = shifts
    along, across = np.array([np.cos(np.pi / 6), 0.5]), np.array([-0.5, np.cos(np.pi / 6)])
    assert np.linalg.norm(link.root @ step @ along) < 1e-6 * np.linalg.norm(link.root @ step @ across)
    whole = fit_link(one, OUTLINE).root @ step @ across
    assert np.linalg.norm(link.root @ step @ across) == pytest.approx(np.linalg.norm(whole), rel=1e-6)


def test_where_a_point_lies_along_its_curve_does_not_matter():
    exact = told(count=10, sigma=1e-3)
    degrees = np.arange(10) * 37.0
    landmarks = on_curves(exact, degrees)
    slipped = Landmarks(PAIR, exact.points_i + 6.0 * landmarks.along, exact.points_j, exact.sigma, landmarks.along)
    maps = [fit_link(each, OUTLINE).i_from_j for each in (landmarks, slipped)]
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-5)
    np.testing.assert_allclose(error_of(fit_link(slipped, OUTLINE), two_frames(1).i_from_j(PAIR)), 0.0, atol=1e-3)


def test_relinearised_a_link_on_curves_keeps_what_is_free():
    link = fit_link(on_curves(told(count=1), [30.0]), OUTLINE)
    assert relinearise(link, link.i_from_j, np.zeros(2), 1.0).rank == 1
