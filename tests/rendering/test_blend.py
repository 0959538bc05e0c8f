from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import InputError
from smalti.rendering.blend import Feather, WeightedSum
from smalti.rendering.canvas import Window
from tests.rendering.scene import mapped, shift, tilt, turn

WIDTH, HEIGHT = 60, 40
WINDOW = Window(-30, -30, 140, 120)


def disc() -> np.ndarray:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return (x - 25) ** 2 + (y - 20) ** 2 < 15**2


def positions(canvas_from_frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[-30:90, -30:110].astype(float)
    return mapped(np.linalg.inv(canvas_from_frame), x, y)


@pytest.mark.parametrize("mask", [np.ones((HEIGHT, WIDTH), dtype=bool), disc()], ids=["whole", "disc"])
@pytest.mark.parametrize("matrix", [shift(2.3, 4.6), shift(30, 0) @ turn(40), turn(5, 0.4), tilt(4e-3, 1e-3)])
def test_a_pixel_has_weight_exactly_where_the_mask_is(mask, matrix):
    weights = Feather(mask).weigh(np.linalg.inv(matrix), WINDOW)
    u, v = positions(matrix)
    column, row = np.floor(u + 0.5).astype(int), np.floor(v + 0.5).astype(int)
    within = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT)
    covered = np.zeros_like(within)
    covered[within] = mask[row[within], column[within]]
    np.testing.assert_array_equal(weights > 0, covered)


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


def test_two_frames_are_mixed_by_their_weights():
    window = Window(0, 0, 5, 1)
    total = WeightedSum.over(window)
    ones = np.ones((1, 5, 3), dtype=np.float32)
    total.add(window, 100 * ones, np.array([[1.0, 0.75, 0.5, 0.0, 0.0]], dtype=np.float32))
    total.add(window, 200 * ones, np.array([[0.0, 0.25, 0.5, 1e-6, 0.0]], dtype=np.float32))
    image = total.combine()
    np.testing.assert_array_equal(image[0, :, 0], [100, 125, 150, 200, 0])
    np.testing.assert_array_equal(image[0, :, 3], [255, 255, 255, 255, 0])


def test_a_frame_is_added_where_its_part_lies():
    total = WeightedSum.over(Window(10, 20, 6, 5))
    total.add(Window(12, 21, 2, 3), np.full((3, 2, 3), 50, np.float32), np.ones((3, 2), np.float32))
    expected = np.zeros((5, 6), dtype=np.uint8)
    expected[1:4, 2:4] = 255
    np.testing.assert_array_equal(total.combine()[..., 3], expected)


def test_overshoot_is_clipped_and_colours_are_rounded():
    total = WeightedSum.over(Window(0, 0, 4, 1))
    colours = np.array([-20.0, 300.0, 99.5001, 99.4999], dtype=np.float32)
    total.add(Window(0, 0, 4, 1), np.repeat(colours[None, :, None], 3, axis=2), np.ones((1, 4), np.float32))
    np.testing.assert_array_equal(total.combine()[0, :, 1], [0, 255, 100, 99])


def test_hidden_pixels_take_the_nearest_seen_colour():
    mask = np.zeros((3, 4), dtype=bool)
    mask[:, 1:3] = True
    frame = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    filled = Feather(mask).fill_hidden(frame)
    np.testing.assert_array_equal(filled, frame[:, [1, 1, 2, 2]])
    assert frame[0, 0, 0] == 0, "the frame itself is left alone"


def test_a_mask_that_hides_everything_is_refused():
    with pytest.raises(InputError, match="mask hides every pixel"):
        Feather(np.zeros((3, 4), dtype=bool))
