"""Frames laid over one that was seen shortly before: exactly, in any light, or not at all."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest

from smalti.geometry.homographies import apply_map, normalise
from smalti.registration.camera_tracking import Anchor, View, fit_map
from smalti_lab.synthetic.scene import procedural_scene

WIDTH, HEIGHT = 320, 240
GRID = np.stack(np.meshgrid(np.linspace(0, WIDTH - 1, 8), np.linspace(0, HEIGHT - 1, 6)), axis=-1).reshape(-1, 2)


@cache
def ground(seed=3):
    return cv2.GaussianBlur(cv2.cvtColor(procedural_scene(900, 700, seed=seed), cv2.COLOR_RGB2GRAY), (0, 0), 1.0)


def placed(x, y, degrees=0.0, scale=1.0, tilt=0.0):
    """The map from a frame to the ground."""
    angle = np.radians(degrees)
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    return np.array([[cos, -sin, x], [sin, cos, y], [tilt, 0.0, 1.0]])


def seen(ground_from_frame, noise=2.0, seed=3):
    frame_from_ground = np.linalg.inv(ground_from_frame)
    image = cv2.warpPerspective(ground(seed), frame_from_ground, (WIDTH, HEIGHT), flags=cv2.INTER_CUBIC).astype(float)
    image += np.random.default_rng(5).normal(0, noise, image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)


def off_px(track, first, second):
    true = normalise(np.linalg.inv(first) @ second)
    return np.abs(apply_map(np.linalg.inv(true) @ track.anchor_from_frame, GRID) - GRID).max()


FIRST = placed(250.0, 200.0)
MOTIONS = {
    "a shift": placed(266.3, 207.7),
    "a turn": placed(258.0, 196.0, degrees=3.0),
    "a zoom": placed(240.0, 190.0, scale=1.08),
    "a tilt": placed(252.0, 203.0, tilt=1e-4),
}


@pytest.mark.parametrize("motion", MOTIONS)
def test_a_frame_is_laid_where_it_lies(motion):
    track = Anchor.of(View.of(seen(FIRST), None)).follow(View.of(seen(MOTIONS[motion]), None), np.eye(3))
    assert off_px(track, FIRST, MOTIONS[motion]) < 0.25
    assert track.sigma_px < 0.1
    assert track.gain == pytest.approx(1.0, abs=0.1)


def test_a_good_guess_leads_to_a_frame_that_has_moved_and_turned_far():
    second = placed(330.0, 240.0, degrees=30.0)
    anchor, view = Anchor.of(View.of(seen(FIRST), None)), View.of(seen(second), None)
    about = normalise(np.linalg.inv(FIRST) @ placed(334.0, 236.0, degrees=29.0))
    assert off_px(anchor.follow(view, about), FIRST, second) < 0.25
    assert anchor.follow(view, np.eye(3)) is None


def test_a_shift_is_guessed_where_nothing_is_known():
    second = placed(320.0, 180.0)
    anchor, view = Anchor.of(View.of(seen(FIRST), None)), View.of(seen(second), None)
    assert off_px(anchor.follow(view, anchor.guess_shift(view)), FIRST, second) < 0.25


def test_the_light_may_change():
    second = MOTIONS["a shift"]
    dim = (seen(second) * 0.6).astype(np.uint8)
    track = Anchor.of(View.of(seen(FIRST), None)).follow(View.of(dim, None), np.eye(3))
    assert off_px(track, FIRST, second) < 0.25
    assert track.gain == pytest.approx(0.6, abs=0.05)


def test_shading_that_stays_with_the_camera_does_not_hold_faint_frames_back():
    rows, columns = np.indices((HEIGHT, WIDTH))
    shade = np.exp(-((columns - 160) ** 2 + (rows - 120) ** 2) / (2 * 110.0**2))
    first, second = ((128 + (seen(at, noise=0.0) - 128.0) / 8) * shade for at in (FIRST, MOTIONS["a shift"]))
    anchor = Anchor.of(View.of(first.astype(np.uint8), None))
    track = anchor.follow(View.of(second.astype(np.uint8), None), np.eye(3))
    assert off_px(track, FIRST, MOTIONS["a shift"]) < 1.0


@pytest.mark.parametrize("other", ["another place", "noise", "nothing"])
def test_what_shows_something_else_is_lost(other):
    rng = np.random.default_rng(1)
    image = {
        "another place": seen(FIRST, seed=4),
        "noise": rng.integers(0, 255, (HEIGHT, WIDTH)).astype(np.uint8),
        "nothing": np.full((HEIGHT, WIDTH), 90, dtype=np.uint8),
    }[other]
    anchor = Anchor.of(View.of(seen(FIRST), None))
    assert anchor.follow(View.of(image, None), np.eye(3)) is None


def test_points_are_followed_only_where_the_scene_is_shown():
    mask = np.zeros((HEIGHT, WIDTH), dtype=bool)
    mask[:, :200] = True
    anchor = Anchor.of(View.of(seen(FIRST), mask))
    assert len(anchor.points) > 40
    assert anchor.points[:, 0].max() < 200


@pytest.mark.parametrize(
    ("freedom", "true"), [(2, placed(9, -4)), (4, placed(9, -4, 20, 1.1)), (8, placed(3, 1, 5, 1, 2e-4))]
)
def test_a_map_of_a_family_is_fitted_exactly(freedom, true):
    assert fit_map(GRID, apply_map(true, GRID), freedom) == pytest.approx(true, abs=1e-8)
