"""A frame's own round field: found wherever it lies, and only where there is one."""

import cv2
import numpy as np
import pytest

from smalti.frames.disc import find_own_field
from tests.frames.scenes import make_scene

HEIGHT, WIDTH = 300, 340
SCENE = make_scene(HEIGHT, WIDTH, colours=1)


def disc(x, y, radius):
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    return np.hypot(columns - x, rows - y) < radius


def seen_through(field, surround=6, scene=SCENE, noise=2.0):
    rng = np.random.default_rng(3)
    soft = cv2.GaussianBlur(field.astype(np.float32), (0, 0), 1)
    return np.clip(scene * soft + surround * (1 - soft) + rng.normal(0, noise, field.shape), 0, 255).astype(np.uint8)


def agreement(found, field):
    return (found & field).sum() / (found | field).sum()


@pytest.mark.parametrize(
    ("x", "y", "radius"),
    [(170, 150, 140), (150, 160, 110), (200, 120, 70), (170, 150, 175), (90, 150, 150)],
    ids=["middle", "beside", "small", "cut off all around", "cut off at the left"],
)
def test_the_disc_is_found_to_a_few_pixels_of_its_rim(x, y, radius):
    field = disc(x, y, radius)
    found = find_own_field(seen_through(field), margin=2)
    assert agreement(found, field) > 0.95
    assert (found & ~field).sum() < 0.001 * field.sum()


def test_a_notch_in_the_rim_is_left_out():
    notch = disc(170, 10, 18)
    field = disc(170, 150, 140) & ~notch
    found = find_own_field(seen_through(field), margin=2)
    assert (found & notch).sum() < 0.02 * notch.sum()
    assert agreement(found, field) > 0.95


def test_the_margin_is_left_out_along_the_rim():
    field = disc(170, 150, 140)
    assert not (find_own_field(seen_through(field), margin=8) & ~disc(170, 150, 135)).any()


def test_a_dark_place_at_the_rim_does_not_move_the_circle():
    scene = SCENE.copy()
    scene[disc(60, 90, 45)] //= 12
    field = disc(170, 150, 140)
    found = find_own_field(seen_through(field, scene=scene), margin=2)
    bright = field & ~disc(60, 90, 55)
    assert (found & bright).sum() > 0.95 * bright.sum()
    assert not (found & ~field).any()


def test_a_rim_that_fades_is_found_by_the_surround():
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    falloff = 1 - 0.6 * np.hypot(columns - 170, rows - 150) ** 2 / 140**2
    field = disc(170, 150, 140)
    found = find_own_field(seen_through(field, scene=SCENE * np.maximum(falloff, 0)), margin=2)
    assert agreement(found, field) > 0.93


FRAMES_WITHOUT_DISC = {
    "scene all over": SCENE,
    "dark scene": SCENE // 8,
    "black": np.zeros_like(SCENE),
    "letterbox": seen_through(np.repeat((np.arange(HEIGHT) % 260 > 40)[:, None], WIDTH, axis=1)),
    "bright surround": seen_through(disc(170, 150, 140), surround=60, scene=100 + SCENE // 2),
    "one dark corner": seen_through(~disc(0, 0, 60)),
}


@pytest.mark.parametrize("kind", FRAMES_WITHOUT_DISC)
def test_a_frame_without_a_disc_is_all_scene(kind):
    assert find_own_field(FRAMES_WITHOUT_DISC[kind], margin=2).all()
