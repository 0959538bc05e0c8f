"""Matches: each other's nearest, by a margin, against a search without any cleverness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import apply, square
from smalti.records import Expectation, Pair
from smalti.registration.keypoints import (
    NO_KEYPOINTS,
    SIFT_MATCHES,
    Keypoints,
    _nearest,
    match_expected,
    match_keypoints,
)
from tests.registration.scenes import flight, keypoints, true_map


def made(descriptors: np.ndarray) -> Keypoints:
    """Keypoints that can be told by their x."""
    points = np.column_stack([np.arange(len(descriptors)), np.zeros(len(descriptors))]).astype(np.float32)
    return Keypoints(points, descriptors.astype(np.uint8), np.ones(len(descriptors), np.float32))


def random_descriptors(rng: np.random.Generator, count: int) -> np.ndarray:
    rough = rng.exponential(size=(count, 128))
    return np.rint(255 * rough / np.linalg.norm(rough, axis=1, keepdims=True)).astype(np.uint8)


def first(found: Keypoints, count: int) -> Keypoints:
    return Keypoints(found.points[:count], found.descriptors[:count], found.strengths[:count])


def search_all(in_i: Keypoints, in_j: Keypoints) -> list[tuple[int, int]]:
    """The matches as numbers of rows, by whole-number arithmetic, one comparison after the other."""
    similar = (in_i.descriptors.astype(int) @ in_j.descriptors.astype(int).T).tolist()
    found = []
    for i, row in enumerate(similar):
        j = max(range(len(row)), key=lambda j: row[j])
        nearest_to_j = max(range(len(similar)), key=lambda other: similar[other][j])
        second = max(value for column, value in enumerate(row) if column != j)
        distance, next_distance = (2 - 2 * value / 255**2 for value in (row[j], second))
        if nearest_to_j == i and distance < SIFT_MATCHES.largest_ratio**2 * next_distance:
            found.append((i, j))
    return found


@pytest.mark.parametrize("pair", [Pair(0, 1), Pair(0, 20)])
def test_matches_of_frames_are_those_that_a_plain_search_finds(pair):
    in_i, in_j = first(keypoints(pair.i), 200), first(keypoints(pair.j), 170)
    rows = search_all(in_i, in_j)
    points_i, points_j = match_keypoints(in_i, in_j)
    np.testing.assert_array_equal(points_i, in_i.points[[i for i, _ in rows]].reshape(-1, 2))
    np.testing.assert_array_equal(points_j, in_j.points[[j for _, j in rows]].reshape(-1, 2))


def test_matches_of_blurred_copies_are_those_that_a_plain_search_finds():
    rng = np.random.default_rng(5)
    original = random_descriptors(rng, 80)
    copies = np.clip(original[rng.permutation(80)[:60]] + rng.normal(0, 24, (60, 128)), 0, 255)
    in_i, in_j = made(original), made(copies)
    rows = search_all(in_i, in_j)
    assert 10 < len(rows) < 60
    points_i, points_j = match_keypoints(in_i, in_j)
    assert list(zip(points_i[:, 0], points_j[:, 0], strict=True)) == rows


def test_no_keypoint_is_matched_twice():
    points_i, points_j = match_keypoints(keypoints(0), keypoints(1))
    for points, found in ((points_i, keypoints(0)), (points_j, keypoints(1))):
        _, times = np.unique(points, axis=0, return_counts=True)
        _, there = np.unique(found.points, axis=0, return_counts=True)  # one point may have several orientations
        assert times.max() <= there.max()


def test_most_matches_of_neighbours_lie_where_the_truth_says():
    points_i, points_j = match_keypoints(keypoints(0), keypoints(1))
    assert len(points_i) > 100
    off = np.linalg.norm(apply(true_map(Pair(0, 1)), points_j) - points_i, axis=1)
    assert np.mean(off < 3.0) > 0.8


def test_of_two_that_look_alike_neither_is_believed():
    rng = np.random.default_rng(8)
    descriptors = random_descriptors(rng, 20)
    twice = np.vstack([descriptors, descriptors[4]])
    points_i, _ = match_keypoints(made(descriptors), made(twice))
    assert points_i[:, 0].tolist() == [n for n in range(20) if n != 4]


def test_one_that_is_the_nearest_of_two_goes_to_the_nearer():
    rng = np.random.default_rng(9)
    descriptors = random_descriptors(rng, 12)
    near = np.clip(descriptors[3].astype(float) + rng.normal(0, 6, 128), 0, 255)
    points_i, points_j = match_keypoints(made(np.vstack([descriptors, near])), made(descriptors))
    matched = dict(zip(points_i[:, 0].tolist(), points_j[:, 0].tolist(), strict=True))
    assert matched[3] == 3
    assert 12 not in matched


@pytest.mark.parametrize(("count_i", "count_j"), [(0, 5), (5, 0), (1, 5), (5, 1)])
def test_where_there_is_no_second_there_is_no_match(count_i, count_j):
    some = random_descriptors(np.random.default_rng(2), 5)
    points_i, points_j = match_keypoints(made(some[:count_i]), made(some[:count_j]))
    assert points_i.shape == points_j.shape == (0, 2)


def test_a_frame_without_keypoints_matches_nothing():
    points_i, _ = match_keypoints(keypoints(0), NO_KEYPOINTS)
    assert len(points_i) == 0


def test_points_are_returned_as_doubles():
    points_i, points_j = match_keypoints(keypoints(0), keypoints(1))
    assert points_i.dtype == points_j.dtype == np.float64


@given(
    arrays(
        np.float32,
        array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=9),
        # Few values, so that many are equal.
        elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.5625, 1.0]),
    )
)
def test_one_pass_finds_what_numpy_finds(similarity):
    best_column, second, best_row = _nearest(similarity)
    np.testing.assert_array_equal(best_column, similarity.argmax(axis=1))
    np.testing.assert_array_equal(second, np.sort(similarity, axis=1)[:, -2])
    np.testing.assert_array_equal(best_row, similarity.argmax(axis=0))


def search_near(in_i: Keypoints, in_j: Keypoints, at_j: np.ndarray, reach_px: float) -> list[tuple[int, int]]:
    """Do the same among keypoints within reach of each other, where those of j lie at `at_j` in i."""
    near = np.linalg.norm(in_i.points[:, None].astype(np.float64) - at_j, axis=2) <= reach_px
    off = in_i.descriptors.astype(int)[:, None] - in_j.descriptors.astype(int)
    distance = np.where(near, (off**2).sum(axis=2) / 255**2, np.inf)
    found = []
    for i, row in enumerate(distance):
        j = int(np.argmin(row))
        next_distance = min(np.min(np.delete(row, j)), SIFT_MATCHES.usual_next)
        if (
            np.isfinite(row[j])
            and np.argmin(distance[:, j]) == i
            and row[j] < SIFT_MATCHES.largest_ratio**2 * next_distance
        ):
            found.append((i, j))
    return found


@pytest.mark.parametrize(("reach_px", "shift_px"), [(4.0, 0.0), (15.0, 5.0), (80.0, 20.0)])
def test_matches_near_the_expected_place_are_those_that_a_plain_search_finds(reach_px, shift_px):
    pair = Pair(0, 1)
    in_i, in_j = first(keypoints(pair.i), 200), first(keypoints(pair.j), 170)
    i_from_j = square(true_map(pair))
    i_from_j[0, 2] += shift_px
    rows = search_near(in_i, in_j, apply(i_from_j[:2], in_j.points.astype(np.float64)), reach_px)
    assert len(rows) > 20
    points_i, points_j = match_expected(in_i, in_j, Expectation(i_from_j, 1.0), reach_px)
    np.testing.assert_array_equal(points_i, in_i.points[[i for i, _ in rows]])
    np.testing.assert_array_equal(points_j, in_j.points[[j for _, j in rows]])


def test_an_expected_place_is_that_of_undistorted_points():
    pair = Pair(0, 1)
    in_i, in_j = keypoints(pair.i), keypoints(pair.j)
    plain = match_expected(in_i, in_j, Expectation(square(true_map(pair)), 1.0), 3.0)
    lens = Lens(flight().outline, k1=0.3)

    def seen(found: Keypoints) -> Keypoints:
        return replace(found, points=lens.distort(found.points.astype(np.float64)).astype(np.float32))

    without = match_expected(seen(in_i), seen(in_j), Expectation(square(true_map(pair)), 1.0), 3.0)
    found = match_expected(
        seen(in_i), seen(in_j), Expectation(square(true_map(pair)), 1.0, undistort=lens.undistort), 3.0
    )
    assert len(without[0]) < 0.7 * len(plain[0])
    assert len(found[0]) > 0.99 * len(plain[0])


def test_nothing_is_near_what_lies_beyond_the_horizon():
    i_from_j = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    points_i, points_j = match_expected(keypoints(0), keypoints(1), Expectation(i_from_j, 1.0), 10.0)
    assert len(points_i) == len(points_j) == 0
