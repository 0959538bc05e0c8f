"""What a lens makes of a frame as a whole: its rim, how far it stretches, whether it folds."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.geometry.lens import RIM_STEPS, Lens, undistort_landmarks
from smalti.geometry.outline import Outline
from smalti.records import Landmarks, Pair

OUTLINE = Outline.of_pixels(400, 300)


def test_the_rim_of_a_straight_frame_is_its_corners():
    np.testing.assert_array_equal(Lens(OUTLINE).rim, OUTLINE.corners)


@pytest.mark.parametrize("k1", [0.1, -0.1])
def test_the_rim_goes_around_the_border_and_begins_at_the_corners(k1):
    lens = Lens(OUTLINE, k1)
    seen = lens.distort(lens.rim)
    np.testing.assert_allclose(seen[::RIM_STEPS], OUTLINE.corners, atol=1e-9)
    away = np.minimum(abs(seen - (OUTLINE.left, OUTLINE.top)), abs(seen - (OUTLINE.right, OUTLINE.bottom))).min(axis=1)
    assert away.max() < 1e-9


def test_a_corner_lies_farther_out_by_the_stretch():
    lens = Lens(OUTLINE, 0.04, 0.01)
    before, after = (
        np.linalg.norm(points[0] - OUTLINE.centre) for points in (OUTLINE.corners, lens.undistort(OUTLINE.corners))
    )
    assert after / before - 1 == pytest.approx(lens.stretch)


@pytest.mark.parametrize(
    ("k1", "k2", "folds"),
    [
        (0.0, 0.0, False),
        (0.3, 0.0, False),
        (-0.2, 0.0, False),
        (-0.25, 0.0, True),
        (-0.6, 0.3, False),
        (-0.9, 0.3, True),
        (0.3, -0.2, True),
    ],
)
def test_a_lens_folds_where_the_straight_distance_goes_back(k1, k2, folds):
    lens = Lens(OUTLINE, k1, k2)
    along = OUTLINE.centre + np.linspace(0, 1, 2001)[:, None] * (OUTLINE.corners[2] - OUTLINE.centre)
    distances = np.linalg.norm(lens.undistort(along) - OUTLINE.centre, axis=1)
    assert (np.diff(distances) <= 0).any() == folds
    assert lens.folds == folds


def test_landmarks_are_straightened_in_both_frames():
    lens = Lens(OUTLINE, 0.05)
    record = Landmarks(Pair(2, 5), np.array([[3.0, 4.0]]), np.array([[300.0, 200.0]]), 0.7)
    straight = undistort_landmarks(record, lens)
    assert straight.pair == record.pair
    np.testing.assert_array_equal(straight.points_i, lens.undistort(record.points_i))
    np.testing.assert_array_equal(straight.points_j, lens.undistort(record.points_j))
    assert undistort_landmarks(record, Lens(OUTLINE)) is record
