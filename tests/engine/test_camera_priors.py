"""Attitude and motion of a camera: what they are, and how they move with the maps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.engine.camera_priors import KIND_OF_ATTITUDE, KIND_OF_MOTION, KINDS, Camera, attitudes, motions
from smalti.geometry.homographies import BASIS, PROJECTIVE, SIMILARITY, TRANSLATION, exponential
from tests.worlds import flight

TILTED = (0.0, 0.0, 0.5, 0.2, 0.1, 0.1, 0.1, 0.1)
STEP = 1e-5
PAIRS = np.array([[0, 1], [1, 2], [4, 5], [2, 5]])
each_family = pytest.mark.parametrize("family", [TRANSLATION, SIMILARITY, PROJECTIVE], ids=lambda family: family.name)


def tilted(family=PROJECTIVE, seed=1):
    """Maps of six frames with any perspective, whatever the family in which they move."""
    del family
    return flight(np.random.default_rng(seed), 6, PROJECTIVE, lane=3, deviations=TILTED).truth


def turned(angle, place=(0.0, 0.0), scale=1.0):
    return np.array(
        [
            [scale * math.cos(angle), -scale * math.sin(angle), place[0]],
            [scale * math.sin(angle), scale * math.cos(angle), place[1]],
            [0.0, 0.0, 1.0],
        ]
    )


def moved(maps, frames, direction, freedom):
    """Maps of some frames after a step in a direction."""
    step = np.zeros((1, freedom))
    step[0, direction] = STEP
    ahead, back = maps.copy(), maps.copy()
    ahead[frames] = maps[frames] @ exponential(step)[0]
    back[frames] = maps[frames] @ exponential(-step)[0]
    return ahead, back


@each_family
def test_attitudes_move_with_the_maps_as_they_say(family):
    maps = tilted()
    _, slopes = attitudes(maps, family.freedom)
    assert slopes.shape == (6, 5, family.freedom)
    for direction in range(family.freedom):
        ahead, back = moved(maps, np.arange(6), direction, family.freedom)
        expected = (attitudes(ahead, family.freedom)[0] - attitudes(back, family.freedom)[0]) / (2 * STEP)
        np.testing.assert_allclose(slopes[:, :, direction], expected, atol=1e-8)


def motions_of(maps, freedom):
    return motions(maps, np.linalg.inv(maps), PAIRS, freedom)


@pytest.mark.parametrize("family", [SIMILARITY, PROJECTIVE], ids=lambda family: family.name)
@pytest.mark.parametrize("side", [0, 1], ids=["first", "second"])
def test_motions_move_with_either_frame_s_map_as_they_say(family, side):
    maps = tilted()
    slopes = motions_of(maps, family.freedom)[1 + side]
    assert slopes.shape == (4, 6, family.freedom)
    for n, pair in enumerate(PAIRS):
        for direction in range(family.freedom):
            ahead, back = (
                motions_of(some, family.freedom)[0][n]
                for some in moved(maps, pair[side : side + 1], direction, family.freedom)
            )
            np.testing.assert_allclose(slopes[n, :, direction], (ahead - back) / (2 * STEP), atol=1e-7)


def test_level_maps_have_no_attitude_wherever_they_are():
    maps = np.array([turned(angle, place) for angle, place in ((0.0, (0, 0)), (1.0, (3.0, -2.0)), (3.0, (-9.0, 1.0)))])
    np.testing.assert_allclose(attitudes(maps, 8)[0], 0.0, atol=1e-12)


def test_place_and_turn_of_the_mosaic_do_not_change_an_attitude():
    maps = tilted()
    np.testing.assert_allclose(
        attitudes(turned(0.7, (2.0, -5.0)) @ maps, 8)[0], attitudes(maps, 8)[0], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(("number", "direction"), [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7)])
def test_an_attitude_is_its_direction_s_increment_to_first_order(number, direction):
    level = turned(0.4, (1.0, 2.0))
    small = np.zeros((1, 8))
    small[0, direction] = 1e-4
    found = attitudes(level @ exponential(small), 8)[0][0]
    np.testing.assert_allclose(found, 1e-4 * np.eye(5)[number], atol=1e-8)


def test_the_attitude_s_scale_is_the_logarithm_of_the_frame_s():
    assert attitudes(turned(0.3, (1.0, 1.0), scale=1.5)[None], 8)[0][0, 0] == pytest.approx(math.log(1.5))


def test_motions_do_not_depend_on_the_mosaic_s_perspective():
    maps = tilted()
    seen_elsewhere = exponential(np.full((1, 8), 0.05))[0] @ maps
    np.testing.assert_allclose(motions_of(seen_elsewhere, 8)[0], motions_of(maps, 8)[0], rtol=1e-8, atol=1e-10)


def test_a_motion_s_turn_and_zoom_are_those_between_two_frames():
    maps = np.array([turned(0.2, (1.0, 0.0), 1.2), turned(0.5, (1.4, 0.1), 1.5)])
    found = motions(maps, np.linalg.inv(maps), np.array([[0, 1]]), 8)[0][0]
    np.testing.assert_allclose(found, [0.3, math.log(1.5 / 1.2), 0.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_every_number_has_a_kind_and_every_kind_a_deviation():
    assert sorted({*KIND_OF_ATTITUDE.tolist(), *KIND_OF_MOTION.tolist()}) == list(range(len(KINDS)))
    camera = Camera(tuple(map(float, range(1, 8))))
    np.testing.assert_array_equal(camera.attitude_deviations, [1, 2, 2, 3, 3])
    np.testing.assert_array_equal(camera.motion_deviations, [4, 5, 6, 6, 7, 7])


def test_nothing_is_claimed_of_motion_before_it_was_learned():
    assert not Camera().has_motion_prior
    assert Camera().with_deviations(np.full(7, 0.1)).has_motion_prior


def test_frames_that_show_the_same_place_say_once_that_they_are_level():
    slow = (0.01, 0.01, 0.01, 0.1, 1e-4, 1e-4, 1e-4)
    apart, together = Camera(slow), Camera(slow, frames_per_place=20.0)
    np.testing.assert_allclose(apart.attitude_deviations, 0.01)
    # Neighbours correlate by 0.95; those of a camera that moves as much as it is held off level do not.
    np.testing.assert_allclose(together.attitude_deviations, 0.01 * np.sqrt(1.95 / 0.05))
    quick = (0.01, 0.01, 0.01, 0.1, 0.02, 0.02, math.inf)
    np.testing.assert_allclose(Camera(quick, frames_per_place=20.0).attitude_deviations, 0.01)
    assert (Camera((math.inf,) * 7, frames_per_place=20.0).attitude_deviations == math.inf).all()


def test_the_directions_of_the_kernel_are_those_of_the_basis():
    # Moving the identity by a direction shows which it is: place aside, the derivative of the attitude is constant.
    _, slopes = attitudes(np.eye(3)[None], 8)
    expected = np.zeros((5, 8))
    expected[[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]] = 1.0
    np.testing.assert_allclose(slopes[0], expected, atol=1e-12)
    assert len(BASIS) == 8
