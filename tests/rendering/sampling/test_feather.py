from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import InputError
from smalti.rendering.canvas import Window
from smalti.rendering.sampling_kernels import Feather, covers, weight_at
from tests.rendering.scene import mapped, shift, tilt, turn

WIDTH, HEIGHT = 60, 40
WINDOW = Window(-30, -30, 140, 120)


def disc() -> np.ndarray:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return (x - 25) ** 2 + (y - 20) ** 2 < 15**2


MASKS = pytest.mark.parametrize("mask", [np.ones((HEIGHT, WIDTH), dtype=bool), disc()], ids=["whole", "disc"])


def positions(canvas_from_frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[-30:90, -30:110].astype(float)
    return mapped(np.linalg.inv(canvas_from_frame), x, y)


@MASKS
@pytest.mark.parametrize("matrix", [shift(30, 0) @ turn(40), turn(5, 0.4), tilt(4e-3, 1e-3)])
def test_a_pixel_has_weight_exactly_where_the_mask_is(mask, matrix):
    weights = Feather(mask).weigh(np.linalg.inv(matrix), WINDOW)
    u, v = positions(matrix)
    column, row = np.floor(u + 0.5).astype(int), np.floor(v + 0.5).astype(int)
    within = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT)
    covered = np.zeros_like(within)
    covered[within] = mask[row[within], column[within]]
    np.testing.assert_array_equal(weights > 0, covered)


@MASKS
def test_what_covers_a_point_is_what_has_weight_there(mask):
    weights = Feather(mask).weights
    points = np.random.default_rng(3).uniform((-3, -3), (WIDTH + 2, HEIGHT + 2), (3000, 2))
    corners = [(-0.5, -0.5), (WIDTH - 0.5, HEIGHT - 0.5), (-0.5000001, 3.0), (-0.51, 3.0), (WIDTH - 0.49, 3.0)]
    for x, y in [*points.tolist(), *corners]:
        assert covers(weights, x, y) == (weight_at(weights, x, y) > 0)


def test_the_weight_is_the_distance_to_the_border():
    weights = Feather(np.ones((HEIGHT, WIDTH), dtype=bool)).weigh(np.linalg.inv(shift(0.25, 0.5)), WINDOW)
    u, v = positions(shift(0.25, 0.5))
    distance = np.minimum(np.minimum(u + 0.5, WIDTH - 0.5 - u), np.minimum(v + 0.5, HEIGHT - 0.5 - v))
    # Where two borders are equally near the ridge is blunt within a pixel.
    error = abs(weights * (HEIGHT - 1) / 2 - np.maximum(distance, 0)) > 1e-4
    ridge = abs(abs(v - 19.5) - (HEIGHT - WIDTH) / 2 - abs(u - 29.5)) < 1.5
    assert not (error & ~ridge & (abs(v - 19.5) > 1)).any()


def test_weights_vanish_smoothly_at_the_border_of_the_mask():
    weights = Feather(disc()).weigh(np.linalg.inv(turn(20, 4)), Window(0, 0, 200, 220))
    for axis in (0, 1):
        # Four canvas pixels a frame pixel, fifteen frame pixels from 0 to 1; the disc's stairs add half a step.
        assert abs(np.diff(weights, axis=axis)).max() < 2.5 / (4 * 14)
    assert weights.max() == pytest.approx(1.0, abs=0.05)


def test_hidden_pixels_take_the_nearest_seen_colour():
    mask = np.zeros((3, 4), dtype=bool)
    mask[:, 1:3] = True
    frame = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    filled = Feather(mask).fill_masked(frame)
    np.testing.assert_array_equal(filled, frame[:, [1, 1, 2, 2]])
    assert frame[0, 0, 0] == 0, "the frame itself is left alone"


def test_a_frame_without_hidden_pixels_is_left_as_it_is():
    feather = Feather(np.ones((3, 4), dtype=bool))
    frame = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    assert feather.is_solid
    assert not Feather(disc()).is_solid
    assert feather.fill_masked(frame) is frame


def test_a_mask_that_hides_everything_is_refused():
    with pytest.raises(InputError, match="mask hides every pixel"):
        Feather(np.zeros((3, 4), dtype=bool))
