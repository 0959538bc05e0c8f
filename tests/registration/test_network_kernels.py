"""Layers of networks, against the same sums by scipy and numpy. They are compiled only for learned keypoints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import correlate

from smalti.registration.network_kernels import convolve, convolve_shifted, enlarge, selu
from tests.registration.learned import needs_weights

pytestmark = needs_weights

RNG = np.random.default_rng(1)
IMAGE = RNG.normal(size=(5, 11, 14)).astype(np.float32)
BIAS = RNG.normal(size=3).astype(np.float32)


def weights(size: int) -> np.ndarray:
    return RNG.normal(size=(3, 5, size, size)).astype(np.float32)


def expected(image: np.ndarray, layer: np.ndarray) -> np.ndarray:
    sums = [sum(correlate(c, k, "same") for c, k in zip(image, kernels, strict=True)) for kernels in layer]
    return np.array(sums) + BIAS[:, None, None]


@pytest.mark.parametrize("size", [1, 3])
def test_a_convolution_is_the_sum_of_all_correlations(size):
    layer = weights(size)
    np.testing.assert_allclose(convolve(IMAGE, layer, BIAS), expected(IMAGE, layer), atol=1e-5)


def test_samples_moved_by_whole_pixels_are_those_of_a_moved_image():
    layer = weights(3)
    offsets = np.zeros((18, 11, 14), np.float32)
    offsets[0::2], offsets[1::2] = 1.0, -2.0
    moved = np.zeros_like(IMAGE)
    moved[:, :-1, 2:] = IMAGE[:, 1:, :-2]
    found = convolve_shifted(IMAGE, offsets, layer, BIAS)
    inner = np.s_[:, 1:-2, 3:-1]
    np.testing.assert_allclose(found[inner], expected(moved, layer)[inner], atol=1e-5)


def test_samples_between_pixels_are_interpolated():
    ramp = np.tile(np.arange(14, dtype=np.float32), (1, 11, 1))
    offsets = np.full((18, 11, 14), 0.25, np.float32)
    centre = np.zeros((1, 1, 3, 3), np.float32)
    centre[0, 0, 1, 1] = 1.0
    found = convolve_shifted(ramp, offsets, centre, np.zeros(1, np.float32))
    np.testing.assert_allclose(found[0, :-1, :-1], ramp[0, :-1, :-1] + 0.25, atol=1e-5)


def test_an_enlarged_map_keeps_its_corners_and_is_straight_between():
    ramp = np.add.outer(np.arange(3, dtype=np.float32), 10 * np.arange(4, dtype=np.float32))[None]
    down, right = np.linspace(0, 2, 12), np.linspace(0, 3, 16)
    np.testing.assert_allclose(enlarge(ramp, 4)[0], np.add.outer(down, 10 * right), atol=1e-4)


def test_the_activation_is_linear_above_zero_and_bounded_below():
    image = np.array([[[-50.0, -1.0, 0.0, 2.0]]], np.float32)
    selu(image)
    np.testing.assert_allclose(image.ravel(), [-1.758099, -1.111331, 0.0, 2.101402], atol=1e-5)
