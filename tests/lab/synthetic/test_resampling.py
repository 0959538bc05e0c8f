"""Resampling against functions whose values between the pixels are known."""

from __future__ import annotations

import numpy as np
import pytest

from smalti_lab.synthetic.resampling import resample

GREY = 128.0


def wave(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return GREY + 100 * np.sin(2 * np.pi * (x / 17 + y / 23)) * np.cos(2 * np.pi * y / 31)


def sampled(function, width: int = 300, height: int = 260) -> np.ndarray:
    y, x = np.mgrid[:height, :width].astype(float)
    return np.repeat(np.rint(function(x, y))[..., None], 3, axis=2).astype(np.uint8)


def similarity(scale: float, degrees: float, x: float, y: float) -> np.ndarray:
    cos, sin = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    return np.array([[cos, -sin, x], [sin, cos, y]])


@pytest.mark.parametrize(("scale", "degrees"), [(1.0, 0.0), (0.6, 17.0), (1.4, 17.0), (1.0, 90.0)])
def test_a_frame_shows_the_scene_at_exactly_the_mapped_coordinates(scale, degrees):
    scene_from_frame = similarity(scale, degrees, 140.37, 60.81)
    frame = resample(sampled(wave), scene_from_frame, 80, 60)
    v, u = np.mgrid[:60, :80]
    x = scene_from_frame[0, 0] * u + scene_from_frame[0, 1] * v + scene_from_frame[0, 2]
    y = scene_from_frame[1, 0] * u + scene_from_frame[1, 1] * v + scene_from_frame[1, 2]
    error = frame[..., 1] - wave(x, y)
    # The scene's own rounding to whole grey levels leaves a deviation of 0.29.
    assert error.std() < 0.34
    assert abs(error.mean()) < 0.02


def test_a_shift_of_any_hundredth_of_a_pixel_is_rendered():
    """A least-squares estimate of the shift from the picture alone; rounding to 1/32 would be off by up to 0.016."""
    scene = sampled(wave)
    v, u = np.mgrid[:120, :160] + 70.0
    for shift in np.arange(0.0, 1.0, 0.07):
        frame = resample(scene, similarity(1.0, 0.0, 70 + shift, 70.0), 160, 120)[..., 0]
        step = 1e-4
        slope = (wave(u + shift + step, v) - wave(u + shift - step, v)) / (2 * step)
        residual = frame - wave(u + shift, v)
        assert abs((residual * slope).sum() / (slope**2).sum()) < 5e-4


def test_a_cubic_is_reproduced_exactly():
    x = np.arange(40)
    cubic = np.array([(n % 8 - 3) ** 3 + 100 for n in range(8)])
    scene = np.repeat(np.tile(np.interp(x, np.arange(8), cubic), (40, 1))[..., None], 3, axis=2).astype(np.uint8)
    frame = resample(scene, similarity(1.0, 0.0, 3.43, 9.0), 1, 1)
    assert frame[0, 0, 0] == pytest.approx((3.43 - 3) ** 3 + 100, abs=1e-4)


def test_detail_that_a_smaller_frame_cannot_show_becomes_grey_instead_of_a_false_pattern():
    scene = sampled(lambda x, y: GREY + 100 * (-1.0) ** (x + y))
    frame = resample(scene, similarity(2.6, 10.0, 40.0, 20.0), 60, 60)
    assert np.abs(frame - GREY).max() < 4


def test_a_margin_adds_pixels_around_the_same_frame():
    scene, scene_from_frame = sampled(wave), similarity(1.1, 5.0, 60.2, 50.4)
    wide = resample(scene, scene_from_frame, 50, 40, margin=6)
    assert wide.shape == (52, 62, 3)
    np.testing.assert_array_equal(wide[6:-6, 6:-6], resample(scene, scene_from_frame, 50, 40))


def test_colours_stay_apart():
    scene = np.zeros((40, 40, 3), np.uint8)
    scene[:] = (10, 120, 250)
    np.testing.assert_allclose(resample(scene, similarity(1.0, 3.0, 8, 8), 9, 9), [[(10, 120, 250)] * 9] * 9, rtol=1e-5)
