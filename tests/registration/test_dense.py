"""Dense registration on frames with known truth: what is found, how well it is known, and what is refused."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.affine import apply
from smalti.geometry.family import AFFINE
from smalti.records import Expectation, Pair
from smalti.registration.dense import DenseSettings, prepare, register
from smalti.registration.fitting import FitSettings
from tests.registration.scenes import apart, gray, overlapping, true_map
from tests.registration.views import dim, field, prepared

IDENTITY = np.eye(2, 3)
NEIGHBOURS = [pair for pair in overlapping(0.6) if pair.j == pair.i + 1][:8]


def off(i_from_j, dx, dy):
    return i_from_j + np.array([[0, 0, dx], [0, 0, dy]])


def registered(pair, start, sigma_px, settings=None):
    return register(pair, prepared(pair.i), prepared(pair.j), [Expectation(start, sigma_px)], settings)


def errors(landmarks):
    """RMS distance of the landmarks from the truth."""
    missed = landmarks.points_i - apply(true_map(landmarks.pair), landmarks.points_j)
    return np.sqrt(np.mean(np.sum(missed**2, axis=1)))


@pytest.mark.parametrize("pair", NEIGHBOURS[:3], ids=str)
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


def test_sigma_is_what_the_error_is():
    real, said = [], []
    for pair in NEIGHBOURS:
        landmarks = registered(pair, true_map(pair), 3.0).landmarks
        real.append(errors(landmarks) / np.sqrt(2))
        said.append(float(landmarks.sigma) * np.sqrt(3 / len(landmarks)))
    ratio = np.sqrt(np.mean(np.square(real)) / np.mean(np.square(said)))
    assert 0.6 < ratio < 1.6


def test_noise_makes_sigma_larger():
    pair = NEIGHBOURS[0]
    expected = [Expectation(true_map(pair), 3.0)]
    quiet, noisy = (
        register(pair, prepared(pair.i, noise), prepared(pair.j, noise), expected).landmarks for noise in (1.0, 6.0)
    )
    assert noisy.sigma > 1.5 * quiet.sigma


def test_landmarks_lie_in_the_common_field_and_on_one_affine_map():
    pair = NEIGHBOURS[0]
    landmarks = registered(pair, true_map(pair), 3.0).landmarks
    assert 25 <= len(landmarks) <= 81
    for points in (landmarks.points_i, landmarks.points_j):
        x, y = np.rint(points).astype(int).T
        assert field()[y, x].all()
    fitted = AFFINE.fit(landmarks.points_i, landmarks.points_j, np.ones(len(landmarks)))
    np.testing.assert_allclose(apply(fitted, landmarks.points_j), landmarks.points_i, atol=1e-6)


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
        (DenseSettings(least_likeness=0.99), "alike by"),
        (DenseSettings(largest_sigma_px=1e-3), "known to"),
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


@pytest.mark.parametrize(("least", "reason"), [(0.5, "the frames share 48%"), (0.99, "nowhere near")])
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
    assert first.sigma == second.sigma


def test_without_an_expectation_there_is_nothing_to_do():
    with pytest.raises(UsageError, match="at least one expectation"):
        register(Pair(0, 1), prepared(0), prepared(1), [])


def test_an_expectation_that_no_camera_makes_is_passed_over():
    pair = NEIGHBOURS[0]
    collapsed = Expectation(np.zeros((2, 3)), 3.0)
    frames = prepared(pair.i), prepared(pair.j)
    assert "expected map" in register(pair, *frames, [collapsed]).reason
    assert register(pair, *frames, [collapsed, Expectation(true_map(pair), 3.0)]).landmarks is not None
