"""Overlaps and errors against independent computations."""

from __future__ import annotations

import time

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.linear_maps import compose, square
from smalti.geometry.outline import Outline
from smalti_lab.synthetic.camera_path import CameraPath, Handling, raster, wander
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from smalti_lab.synthetic.truth import find_overlaps

SIZE = (1500, 1100)
LIVELY = Handling(heading_degrees=30, zoom=0.2, shake_px=2)


def sequence_of(camera: CameraPath) -> SyntheticSequence:
    return SyntheticSequence(np.zeros((SIZE[1], SIZE[0], 3), np.uint8), camera)


@pytest.fixture(scope="module")
def sequence():
    return sequence_of(wander(SIZE, 80, (160, 120), handling=LIVELY, seed=3))


@pytest.mark.parametrize("least", [0.05, 0.8])
def test_overlaps_are_those_that_another_clipping_finds(sequence, least):
    footprints = sequence.camera.footprints.astype(np.float32)
    areas = [cv2.contourArea(corners) for corners in footprints]
    expected, doubtful = set(), set()
    for i in range(80):
        for j in range(i + 1, 80):
            part = cv2.intersectConvexConvex(footprints[i], footprints[j])[0] / min(areas[i], areas[j])
            (doubtful if abs(part - least) < 1e-3 else expected if part > least else set()).add((i, j))
    found = {tuple(pair) for pair in sequence.overlapping_pairs(least).tolist()}
    assert len(expected) > 50
    assert found - doubtful == expected - doubtful


def test_mirrored_frames_overlap_too():
    mirrored = np.array([[[-1.0, 0, 99], [0, 1, 0]], np.eye(2, 3)])
    np.testing.assert_array_equal(find_overlaps(mirrored, Outline.of_pixels(100, 80), 0.9), [[0, 1]])


@pytest.mark.parametrize("shape", ["2 × 3", "3 × 3"])
def test_the_truth_has_no_error(sequence, shape):
    truth = sequence.mosaic_from_frame
    errors = sequence.truth_error(truth if shape == "2 × 3" else square(truth))
    assert errors.max < 1e-9
    np.testing.assert_array_equal(errors.pairs, sequence.overlapping_pairs(0.1))


def test_one_shifted_frame_is_wrong_by_its_shift_in_its_own_pairs_only():
    sequence = sequence_of(raster(SIZE, 30, (160, 120), handling=Handling(scale=2.0), seed=0))
    estimated = sequence.mosaic_from_frame.copy()
    estimated[7, :, 2] += [6.0, 8.0]
    errors = sequence.truth_error(estimated)
    concerned = (errors.pairs == 7).any(axis=1)
    # 10 scene pixels are 5 pixels of a frame that shows two of them in one.
    np.testing.assert_allclose(errors.rms_of_pair, np.where(concerned, 5.0, 0.0), atol=1e-9)
    np.testing.assert_allclose(errors.max_of_pair, errors.rms_of_pair, atol=1e-9)
    assert errors.max == pytest.approx(5.0)
    assert errors.worst_of_frame[7] == errors.median_of_frame[7] == pytest.approx(5.0)
    assert errors.worst_of_frame[8] == pytest.approx(5.0)
    assert errors.median_of_frame[8] == pytest.approx(0.0, abs=1e-9)


def test_errors_are_measured_at_points_of_j_that_i_sees_too():
    maps = np.array([np.eye(2, 3), [[1.0, 0, 50], [0, 1, 0]]])
    sequence = sequence_of(CameraPath("two", 100, 80, maps))
    estimated = maps.copy()
    estimated[1, 0, 0] *= 1.1
    errors = sequence.truth_error(estimated)
    # The stretch moves a point of j by 0.1 x, and i ends at x = 49.5 of j; the grid's columns are 12.5 apart.
    columns = np.array([-0.5, 12.0, 24.5, 37.0, 49.5])
    assert errors.max == pytest.approx(4.95)
    assert errors.rms == pytest.approx(np.sqrt(np.mean((0.1 * columns) ** 2)))


def test_to_move_or_distort_the_whole_mosaic_changes_no_error(sequence):
    rng = np.random.default_rng(0)
    estimated = sequence.mosaic_from_frame.copy()
    estimated[:, :, 2] += rng.normal(0, 1, (80, 2))
    expected = sequence.truth_error(estimated)
    moved = compose(np.array([[0.8, -0.7, 400.0], [0.5, 1.1, -90.0]]), estimated)
    bent = np.array([[1.0, 0.1, 5], [0, 0.9, 8], [1e-5, 2e-5, 1]]) @ square(estimated)
    for other in (moved, bent):
        errors = sequence.truth_error(other)
        np.testing.assert_allclose(errors.max_of_pair, expected.max_of_pair, rtol=1e-6)
        np.testing.assert_allclose(errors.median_of_frame, expected.median_of_frame, rtol=1e-6)


def test_independent_shifts_of_both_frames_add_up(sequence):
    estimated = sequence.mosaic_from_frame.copy()
    estimated[:, :, 2] += np.random.default_rng(1).normal(0, 1, (80, 2))
    # Two coordinates of two frames, each of deviation 1, seen at scales about 1.
    assert sequence.truth_error(estimated).rms == pytest.approx(2.0, rel=0.15)


def test_frames_that_were_not_placed_are_left_out(sequence):
    placed = [60, 3, 4, 5, 6, 61, 62]
    estimated = sequence.mosaic_from_frame[placed].copy()
    estimated[0, :, 2] += 3.0
    errors = sequence.truth_error(estimated, placed)
    assert set(errors.pairs.ravel().tolist()) <= set(placed)
    assert (errors.pairs[:, 0] < errors.pairs[:, 1]).all()
    assert errors.worst_of_frame[60] > 2
    assert errors.worst_of_frame[4] < 1e-9
    assert np.isnan(errors.worst_of_frame[30])


@pytest.mark.parametrize(
    ("change", "frames", "words"),
    [
        (lambda maps: maps[:5], None, r"shape \(5, 2, 3\), expected \(80, 2, 3\)"),
        (lambda maps: maps[:2], [4, 4], "different numbers"),
        (lambda maps: maps[:1], [80], "from 0 to 79"),
        (lambda maps: maps[:1], [3], "nothing to measure"),
        (lambda maps: maps * np.where(np.arange(80) == 9, np.nan, 1)[:, None, None], None, "frame 9 is singular"),
        (lambda maps: maps * np.where(np.arange(80) == 9, 0, 1)[:, None, None], None, "frame 9 is singular"),
    ],
)
def test_maps_that_cannot_be_measured_are_refused(sequence, change, frames, words):
    with pytest.raises(UsageError, match=words):
        sequence.truth_error(change(sequence.mosaic_from_frame), frames)


def test_six_hundred_frames_are_measured_in_seconds():
    scene = np.zeros((3000, 4000, 3), np.uint8)
    sequence = SyntheticSequence(scene, wander((4000, 3000), 600, handling=LIVELY))
    start = time.perf_counter()
    errors = sequence.truth_error(sequence.mosaic_from_frame)
    assert time.perf_counter() - start < 10
    assert len(errors.pairs) > 2000
