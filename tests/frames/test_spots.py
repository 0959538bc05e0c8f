"""Spots on a flat ground: found wherever they are, and nowhere else."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.spatial import cKDTree

from smalti.frames.spots import find_spots
from smalti_lab.synthetic.fluorescence_tiles import FluorescenceRaster
from tests.frames.scenes import make_scene


def ground(level=6.0, noise=2.0, shape=(240, 320)):
    return np.random.default_rng(3).normal(level, noise, shape)


def draw(image, at, peak, size=1.2):
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    for left, top in at:
        image = image + peak * np.exp(-((x - left) ** 2 + (y - top) ** 2) / (2 * size**2))
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


AT = [(20.3, 30.7), (200.0, 100.5), (315.0, 60.0), (150.2, 5.0), (77.7, 222.2)]


@pytest.mark.parametrize(("level", "peak"), [(6.0, 60.0), (120.0, -60.0)])
def test_bright_and_dark_spots_are_found_to_a_fraction_of_a_pixel(level, peak):
    found = find_spots(draw(ground(level), AT, peak))
    away, _ = cKDTree(AT).query(found.points)
    assert len(found) == len(AT)
    assert away.max() < 0.35


def test_noise_alone_has_no_spots():
    assert len(find_spots(draw(ground(), [], 0.0))) == 0
    assert len(find_spots(np.zeros((240, 320), np.uint8))) == 0


def test_a_textured_scene_has_no_ground_and_so_no_spots():
    assert len(find_spots(make_scene(240, 320, seed=2))) == 0


def test_a_blurred_frame_has_no_spots():
    blurred = cv2.GaussianBlur(make_scene(240, 320, seed=2), (0, 0), 12)[:240, :240]
    assert len(find_spots(np.clip(blurred + ground(0.0, 1.0, blurred.shape), 0, 255).astype(np.uint8))) == 0


def test_spots_outside_the_mask_do_not_count():
    mask = np.ones((240, 320), dtype=bool)
    mask[:, 180:] = False
    found = find_spots(draw(ground(), AT, 60.0), mask)
    assert len(found) == 3
    assert found.points[:, 0].max() < 180


def test_most_points_of_a_crowded_tile_are_found():
    raster = FluorescenceRaster(3, 3, seed=2)
    richest = max(range(len(raster)), key=lambda n: len(raster.points(n)))
    points = raster.points(richest)
    away, _ = cKDTree(find_spots(raster.frame(richest)[..., 0]).points).query(points[:, :2])
    assert np.mean(away < 1.5) > 0.6
