"""Long aerial sequences: their frames show the country where the truth says, and they cross themselves or do not."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.homographies import project_points
from smalti_lab.synthetic.aerial_sequences import (
    BLOCK,
    SHARED,
    AerialSequence,
    fly_about,
    fly_ahead,
    paint_country,
    survey,
)
from smalti_lab.synthetic.degradation import Degradation

CORNERS = np.array([[0.0, 0.0], [639.0, 0.0], [639.0, 479.0], [0.0, 479.0]])
MIDDLE = np.array([[319.5, 239.5]])


@pytest.fixture(scope="module")
def flight():
    return fly_about(700, seed=3)


def centres_of(sequence: AerialSequence) -> np.ndarray:
    return project_points(sequence.mosaic_from_frame, MIDDLE)[:, 0]


def test_frames_show_the_same_country_where_the_truth_says(flight):
    clean = AerialSequence(flight.scene, flight.mosaic_from_frame, degradation=Degradation())
    for i, j in ((0, 5), (100, 130), (350, 320), (699, 660)):
        i_from_j = np.linalg.inv(flight.mosaic_from_frame[i]) @ flight.mosaic_from_frame[j]
        one, two = (clean.frame(n).astype(np.float32).mean(axis=2) for n in (i, j))
        moved = cv2.warpPerspective(two, i_from_j, (640, 480), flags=cv2.INTER_CUBIC, borderValue=-1)
        both = cv2.erode((moved >= 0).astype(np.uint8), np.ones((9, 9))) > 0
        assert both.mean() > 0.4
        # A shift of half a pixel is seen: what is left is the interpolation of the warp.
        shifted = cv2.warpPerspective(two, np.array([[1, 0, 0.5], [0, 1, 0], [0, 0, 1]]) @ i_from_j, (640, 480))
        assert np.abs(one - moved)[both].mean() < 0.4 * np.abs(one - shifted)[both].mean()


def test_maps_of_a_flight_are_homographies_that_change_slowly(flight):
    maps = flight.mosaic_from_frame
    assert np.abs(maps[:, 2, :2]).max() * 640 > 0.02
    moved = project_points(np.linalg.inv(maps[:-1]) @ maps[1:], CORNERS) - CORNERS
    assert np.linalg.norm(moved, axis=2).max() < 20
    steps = np.linalg.norm(np.diff(centres_of(flight), axis=0), axis=1)
    np.testing.assert_allclose(steps, 6.0, rtol=0.02)


def test_a_flight_comes_back_to_places_and_one_straight_ahead_does_not(flight):
    def closest(sequence: AerialSequence, apart: int) -> float:
        centres = centres_of(sequence)
        away = np.linalg.norm(centres[:, None] - centres[None], axis=2)
        return float(away[np.abs(np.subtract.outer(np.arange(len(centres)), np.arange(len(centres)))) >= apart].min())

    assert closest(flight, 200) < 60
    ahead = fly_ahead(8)
    assert closest(ahead, 2) > 640


def test_a_survey_overlaps_by_60_percent_along_and_30_percent_between_strips():
    centres = centres_of(survey(30, seed=1))
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    assert 0.36 * 640 < np.median(steps) < 0.44 * 640
    strips = np.unique(np.round(centres[:, 1] / (0.7 * 480)))
    assert len(strips) > 2
    heights = np.sort([centres[np.round(centres[:, 1] / 336) == strip, 1].mean() for strip in strips])
    assert 300 < np.median(np.diff(heights)) < 372


def test_light_and_noise_are_those_that_are_asked_for(flight):
    clean = AerialSequence(flight.scene, flight.mosaic_from_frame, degradation=Degradation())
    noisy = AerialSequence(flight.scene, flight.mosaic_from_frame, degradation=Degradation(noise=3))
    grain = noisy.frame(7).astype(float) - clean.frame(7)
    assert abs(grain.mean()) < 0.05
    assert 2.9 < grain.std() < 3.1
    dim = AerialSequence(flight.scene, flight.mosaic_from_frame, degradation=Degradation(exposure=0.3, vignetting=0.4))
    light = dim.frame(7).astype(float) / np.maximum(clean.frame(7), 1)
    np.testing.assert_allclose(np.median(light[220:260, 300:340]), dim.gains[7], atol=0.01)
    np.testing.assert_allclose(np.median(light[:20, :20]), 0.6 * dim.gains[7], atol=0.03)


def test_a_frame_is_the_same_alone_and_among_others(flight):
    for n, frame in flight.read_many([3, 690, 4]):
        np.testing.assert_array_equal(frame, flight.frame(n))


def test_blocks_of_country_fade_into_each_other():
    """Where the second block begins and where the first one ends, no step is larger than farmland has anywhere."""
    country = paint_country(BLOCK + 700, 300, seed=4).astype(float)
    steps = np.abs(np.diff(country.mean(axis=2), axis=1)).mean(axis=0)
    assert max(steps[BLOCK - SHARED - 1], steps[BLOCK - 1]) < 2 * np.median(steps)
    assert country.shape == (300, BLOCK + 700, 3)
    assert (country.reshape(-1, 3).max(axis=0) > 150).all()


def test_a_flight_that_leaves_its_scene_is_refused(flight):
    with pytest.raises(UsageError, match="leaves the scene of 600 × 500 px"):
        AerialSequence(flight.scene[:500, :600], flight.mosaic_from_frame)
