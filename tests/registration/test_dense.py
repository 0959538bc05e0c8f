"""Dense registration on frames with known truth: what is found, how well it is known, and what is refused."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import apply, square
from smalti.records import Expectation, Pair
from smalti.registration.dense import DenseSettings, prepare, register
from smalti.registration.feature_pyramid import tangent_at
from smalti.registration.robust_fit import FitSettings
from tests.registration.scenes import FRAME_SIZE, apart, gray, overlapping, true_map
from tests.registration.views import dim, field, prepared

IDENTITY = np.eye(2, 3)
NEIGHBOURS = [pair for pair in overlapping(0.6) if pair.j == pair.i + 1][:8]


TILTED = np.array([[1.02, 0.05, 6.0], [-0.04, 0.98, 9.0], [6e-4, -4e-4, 1.0]])
STEEP = np.array([[1.1, 0.0, 8.0], [0.0, 1.1, 14.0], [3e-3, 1e-3, 1.0]])


def tilted(i_from_j, noise=2.0):
    """Frame 3 as a camera sees it that tilted, with the same light."""
    shown = cv2.warpPerspective(dim(3), i_from_j, FRAME_SIZE, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    seen = cv2.warpPerspective(field().astype(np.uint8), i_from_j, FRAME_SIZE, flags=cv2.WARP_INVERSE_MAP) > 0
    grain = np.random.default_rng(7).normal(0, noise, shown.shape)
    return prepare(np.clip(shown + grain, 0, 255).astype(np.uint8), seen)


def off(i_from_j, dx, dy):
    return i_from_j + np.array([[0, 0, dx], [0, 0, dy]])


def registered(pair, start, sigma_px, settings=None):
    return register(pair, prepared(pair.i), prepared(pair.j), [Expectation(start, sigma_px)], settings)


def errors(landmarks):
    """RMS distance of the landmarks from the truth."""
    missed = landmarks.points_i - apply(true_map(landmarks.pair), landmarks.points_j)
    return np.sqrt(np.mean(np.sum(missed**2, axis=1)))


@pytest.mark.parametrize("pair", NEIGHBOURS[:2], ids=str)
def test_neighbours_are_registered_to_a_fraction_of_a_pixel_from_a_start_far_off(pair):
    answer = registered(pair, off(true_map(pair), 12.0, -9.0), 8.0)
    assert answer.landmarks is not None, answer.reason
    assert errors(answer.landmarks) < 0.4


def test_nothing_needs_to_be_known():
    found = [registered(pair, IDENTITY, np.inf) for pair in NEIGHBOURS[4:6]]
    assert all(answer.landmarks is not None and errors(answer.landmarks) < 0.4 for answer in found)


def test_a_turned_frame_is_found():
    turned = prepare(np.ascontiguousarray(np.rot90(dim(1))), np.ascontiguousarray(np.rot90(field())))
    answer = register(Pair(1, 2), prepared(1), turned, [Expectation(IDENTITY, np.inf)])
    assert answer.landmarks is not None, answer.reason
    # Counterclockwise on the screen: column x of the frame becomes row w-1-x.
    back = np.column_stack([gray(1).shape[1] - 1 - answer.landmarks.points_j[:, 1], answer.landmarks.points_j[:, 0]])
    assert np.abs(back - answer.landmarks.points_i).max() < 0.3


@pytest.mark.parametrize("sigma_px", [np.inf, 8.0])
def test_frames_of_different_places_are_refused(sigma_px):
    for pair in apart()[::70]:
        answer = registered(pair, IDENTITY, sigma_px)
        assert answer.landmarks is None
        assert "chance" in answer.reason


def test_landmarks_are_as_far_from_the_truth_as_their_sigmas_say():
    distances = []
    for pair in NEIGHBOURS:
        landmarks = registered(pair, true_map(pair), 3.0).landmarks
        missed = landmarks.points_i - apply(true_map(pair), landmarks.points_j)
        # The part of the error that a homography can make, in units of what n independent landmarks leave open.
        x, y = ((landmarks.points_j - [120, 90]) / 100).T
        one, zero = np.ones_like(x), np.zeros_like(x)
        rows_x = np.column_stack([x, y, one, zero, zero, zero, x * x, x * y])
        rows_y = np.column_stack([zero, zero, zero, x, y, one, x * y, y * y])
        weights = np.tile(1 / landmarks.sigma, 2)
        possible, _ = np.linalg.qr(np.concatenate([rows_x, rows_y]) * weights[:, None])
        distances.append(np.sum((possible.T @ (missed.T.ravel() * weights)) ** 2) / 8)
    assert 0.4 < np.mean(distances) < 2.0


@pytest.mark.parametrize("start", [IDENTITY, np.eye(3)], ids=["(2, 3)", "(3, 3)"])
def test_perspective_is_found(start):
    answer = register(Pair(3, 4), prepared(3), tilted(TILTED), [Expectation(start, 8.0)])
    assert answer.landmarks is not None, answer.reason
    missed = answer.landmarks.points_i - apply_map(TILTED, answer.landmarks.points_j)
    assert np.sqrt(np.mean(np.sum(missed**2, axis=1))) < 0.3


@pytest.mark.parametrize("start", [STEEP, tangent_at(STEEP, np.array([119.5, 89.5]))], ids=["whole", "affine part"])
def test_a_steep_tilt_is_found_where_it_is_expected(start):
    answer = register(Pair(3, 4), prepared(3), tilted(STEEP), [Expectation(start, 3.0)])
    assert answer.landmarks is not None, answer.reason
    missed = answer.landmarks.points_i - apply_map(STEEP, answer.landmarks.points_j)
    assert np.sqrt(np.mean(np.sum(missed**2, axis=1))) < 0.3


def test_an_expectation_with_the_horizon_in_the_frame_is_taken_without_its_perspective():
    pair = NEIGHBOURS[0]
    to_centre = np.array([[1.0, 0, -119.5], [0, 1, -89.5], [0, 0, 1]])
    wild = np.linalg.inv(to_centre) @ np.array([[1.0, 0, 0], [0, 1, 0], [0.02, 0, 1]]) @ to_centre
    answer = registered(pair, square(true_map(pair)) @ wild, 3.0)
    assert answer.landmarks is not None, answer.reason
    assert errors(answer.landmarks) < 0.4


def test_sigmas_are_larger_where_the_frames_have_no_texture():
    blank = dim(3).copy()
    blank[:, :110] = 120
    noise = np.random.default_rng(5).normal(0, 2, (2, *blank.shape))
    frames = [prepare(np.clip(blank + grain, 0, 255).astype(np.uint8), field()) for grain in noise]
    landmarks = register(Pair(3, 4), *frames, [Expectation(IDENTITY, 2.0)]).landmarks
    assert np.median(landmarks.sigma[landmarks.points_j[:, 0] < 80]) > 1.5 * np.median(
        landmarks.sigma[landmarks.points_j[:, 0] > 140]
    )


def test_noise_makes_sigma_larger():
    pair = NEIGHBOURS[0]
    expected = [Expectation(true_map(pair), 3.0)]
    quiet, noisy = (
        register(pair, prepared(pair.i, noise), prepared(pair.j, noise), expected).landmarks for noise in (1.0, 6.0)
    )
    assert np.median(noisy.sigma) > 1.5 * np.median(quiet.sigma)


def test_landmarks_lie_in_the_common_field_and_on_one_homography():
    pair = NEIGHBOURS[0]
    landmarks = registered(pair, true_map(pair), 3.0).landmarks
    assert 25 <= len(landmarks) <= 81
    for points in (landmarks.points_i, landmarks.points_j):
        x, y = np.rint(points).astype(int).T
        assert field()[y, x].all()
    fitted, _ = cv2.findHomography(landmarks.points_j, landmarks.points_i, 0)
    np.testing.assert_allclose(apply_map(fitted, landmarks.points_j), landmarks.points_i, atol=1e-6)


def test_the_best_of_several_expectations_wins():
    pair = NEIGHBOURS[0]
    expected = [Expectation(off(true_map(pair), 70.0, 40.0), 2.0), Expectation(true_map(pair), 2.0)]
    for order in (expected, expected[::-1]):
        answer = register(pair, prepared(pair.i), prepared(pair.j), order)
        assert answer.landmarks is not None, answer.reason
        assert errors(answer.landmarks) < 0.4


def test_what_lies_beyond_the_expected_place_is_not_found():
    pair = NEIGHBOURS[0]
    answer = registered(pair, off(true_map(pair), 90.0, 0.0), 4.0)
    assert answer.landmarks is None


def test_an_empty_frame_is_refused():
    blank = prepare(np.full((180, 240), 90, np.uint8), field())
    answer = register(Pair(0, 1), blank, blank, [Expectation(IDENTITY, np.inf)])
    assert answer.landmarks is None


def test_a_frame_without_a_field_is_refused():
    unseen = prepare(gray(0), np.zeros((180, 240), dtype=bool))
    answer = register(Pair(0, 1), unseen, prepared(1), [Expectation(IDENTITY, np.inf)])
    assert answer.landmarks is None
    assert "share" in answer.reason


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (DenseSettings(least_excess=1e6), "chance"),
        (DenseSettings(least_likeness=0.99), "similarity"),
        (DenseSettings(largest_sigma_px=1e-3), "known only to"),
        (DenseSettings(largest_disagreement_px=1e-6), "disagree"),
        (DenseSettings(plausible=FitSettings(largest_stretch=1.0)), "stretches"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_doubt_has_its_reason(settings, reason):
    pair = NEIGHBOURS[0]
    answer = registered(pair, true_map(pair), 3.0, settings)
    assert answer.landmarks is None
    assert reason in answer.reason


@pytest.mark.parametrize(("least", "reason"), [(0.5, "the frames share 48%"), (0.99, "near the expected place")])
def test_too_small_an_overlap_is_refused(least, reason):
    pair = NEIGHBOURS[0]
    answer = registered(pair, true_map(pair), 3.0, DenseSettings(least_shared=least))
    assert answer.landmarks is None
    assert reason in answer.reason


def test_results_do_not_depend_on_threads_nor_on_what_was_registered_before():
    pair = NEIGHBOURS[1]
    first = registered(pair, true_map(pair), 8.0).landmarks
    threads = cv2.getNumThreads()
    try:
        cv2.setNumThreads(1)
        frames = [prepare(dim(n), field()) for n in (pair.i, pair.j)]
        second = register(pair, *frames, [Expectation(true_map(pair), 8.0)]).landmarks
    finally:
        cv2.setNumThreads(threads)
    np.testing.assert_array_equal(first.points_i, second.points_i)
    np.testing.assert_array_equal(first.sigma, second.sigma)


def test_without_an_expectation_there_is_nothing_to_do():
    with pytest.raises(UsageError, match="at least one expectation"):
        register(Pair(0, 1), prepared(0), prepared(1), [])


@pytest.mark.parametrize("linear", [np.zeros((2, 2)), np.diag([1.0, -1.0]), np.diag([24.0, 7.8])])
def test_where_no_camera_makes_what_is_expected_the_frames_are_looked_for_anywhere(linear):
    pair = NEIGHBOURS[0]
    answer = registered(pair, np.column_stack([linear, [900.0, 900.0]]), 3.0)
    assert answer.landmarks is not None, answer.reason
    assert errors(answer.landmarks) < 0.4


def test_an_expectation_that_no_camera_makes_is_passed_over():
    pair = NEIGHBOURS[0]
    expected = [Expectation(np.zeros((2, 3)), np.inf), Expectation(off(true_map(pair), 90.0, 0.0), 4.0)]
    assert register(pair, prepared(pair.i), prepared(pair.j), expected).landmarks is None
