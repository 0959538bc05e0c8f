"""Scenes: made from a seed, or read from a file."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.errors import InputError, UsageError
from smalti_lab.synthetic.scene import load_scene, procedural_scene


def test_a_seed_always_makes_the_same_scene_and_another_seed_another():
    scene = procedural_scene(500, 400, 3)
    assert scene.shape == (400, 500, 3)
    assert scene.dtype == np.uint8
    np.testing.assert_array_equal(scene, procedural_scene(500, 400, 3))
    assert np.abs(scene.astype(float) - procedural_scene(500, 400, 4)).mean() > 10


@pytest.mark.parametrize("seed", [0, 7])
def test_every_place_of_a_scene_has_many_keypoints(seed):
    grey = cv2.cvtColor(procedural_scene(1600, 1200, seed), cv2.COLOR_RGB2GRAY)
    sift = cv2.SIFT_create()
    tiles = [grey[y : y + 240, x : x + 320] for y in range(0, 1200, 240) for x in range(0, 1600, 320)]
    assert min(len(sift.detect(tile, None)) for tile in tiles) >= 240


def test_places_of_a_scene_are_not_mistaken_for_one_another():
    grey = cv2.cvtColor(procedural_scene(1280, 960, 1), cv2.COLOR_RGB2GRAY)
    sift = cv2.SIFT_create()
    _, left = sift.detectAndCompute(grey[:, :600], None)
    _, right = sift.detectAndCompute(grey[:, 680:], None)
    nearest = cv2.BFMatcher().knnMatch(left, right, k=2)
    mistaken = sum(first.distance < 0.75 * second.distance for first, second in nearest)
    assert mistaken < 0.02 * len(left)


def test_a_scene_too_small_for_anything_is_refused():
    with pytest.raises(UsageError, match="40 × 200 is too small"):
        procedural_scene(40, 200, 0)


def test_a_picture_is_read_in_the_order_red_green_blue(tmp_path):
    path = tmp_path / "bild mit ä.png"
    picture = np.zeros((10, 20, 3), np.uint8)
    picture[..., 0] = 200
    path.write_bytes(cv2.imencode(".png", picture[..., ::-1])[1].tobytes())
    np.testing.assert_array_equal(load_scene(path), picture)


@pytest.mark.parametrize("content", [b"", b"not an image"])
def test_a_file_that_is_no_picture_is_refused_by_name(tmp_path, content):
    path = tmp_path / "scene.jpg"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"scene\.jpg: is no image"):
        load_scene(path)


def test_a_picture_that_does_not_exist_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"none\.jpg: cannot be read"):
        load_scene(tmp_path / "none.jpg")
