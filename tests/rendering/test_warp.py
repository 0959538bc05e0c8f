from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.canvas import Window
from smalti.rendering.warp import prepare, warp
from tests.rendering.scene import colour_at, frame_of, mapped, shift, tilt, turn

WIDTH, HEIGHT = 90, 70

MAPS = {
    "shift": shift(3.37, -2.61),
    "turn": shift(20, 10) @ turn(33),
    "enlarge": turn(-10, 2.3),
    "tilt": shift(5.3, 4.9) @ turn(12) @ tilt(1.5e-3, -1e-3),
}


def pixels_of(window: Window) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(window.top, window.top + window.height, dtype=float)
    y, x = np.meshgrid(rows, np.arange(window.left, window.left + window.width, dtype=float), indexing="ij")
    return x, y


def ramp(width: int, height: int, per_pixel: float = 2.0) -> np.ndarray:
    """Red counts columns, green counts rows."""
    y, x = np.mgrid[:height, :width]
    return np.stack([per_pixel * x, per_pixel * y, 0 * x], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("name", MAPS)
def test_positions_are_exact_to_a_thousandth_of_a_pixel(name):
    window = Window(-60, -60, 250, 250)
    image = warp(prepare(ramp(WIDTH, HEIGHT), MAPS[name]), window)
    u, v = mapped(np.linalg.inv(MAPS[name]), *pixels_of(window))
    # The border is repeated: the outermost pixels of a ramp are bent.
    inside = (u > 1) & (u < WIDTH - 2) & (v > 1) & (v < HEIGHT - 2)
    assert inside.sum() > 2000
    assert abs(image[inside][:, 0] / 2 - u[inside]).max() < 1e-3
    assert abs(image[inside][:, 1] / 2 - v[inside]).max() < 1e-3


@pytest.mark.parametrize("name", MAPS)
def test_a_smooth_scene_is_reproduced(name):
    window = Window(-60, -60, 250, 250)
    image = warp(prepare(frame_of(np.eye(3), WIDTH, HEIGHT), MAPS[name]), window)
    u, v = mapped(np.linalg.inv(MAPS[name]), *pixels_of(window))
    inside = (u > 1) & (u < WIDTH - 2) & (v > 1) & (v < HEIGHT - 2)
    assert np.sqrt(np.mean((image - colour_at(u, v))[inside] ** 2)) < 0.6


def test_a_shift_by_whole_pixels_copies():
    frame = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    image = warp(prepare(frame, shift(17, 5)), Window(17, 5, WIDTH, HEIGHT))
    np.testing.assert_array_equal(image, frame)


def test_nothing_is_drawn_outside_the_frame():
    image = warp(prepare(np.full((HEIGHT, WIDTH, 3), 200, dtype=np.uint8), shift(10, 10)), Window(0, 0, 120, 100))
    drawn = image[..., 0] > 0
    assert drawn.sum() == WIDTH * HEIGHT
    assert drawn[10 : 10 + HEIGHT, 10 : 10 + WIDTH].all()


def test_the_border_is_not_darkened():
    image = warp(prepare(np.full((HEIGHT, WIDTH, 3), 200, dtype=np.uint8), shift(0.5, 0.5)), Window(0, 0, 91, 71))
    np.testing.assert_allclose(image, 200, rtol=1e-6)


@pytest.mark.parametrize("name", MAPS)
def test_a_part_of_a_window_is_the_window_of_the_part(name):
    source = prepare(frame_of(np.eye(3), WIDTH, HEIGHT), MAPS[name])
    whole = warp(source, Window(-60, -60, 250, 250))
    np.testing.assert_array_equal(warp(source, Window(0, -10, 45, 30)), whole[50:80, 60:105])


def test_detail_finer_than_the_canvas_is_averaged_not_aliased():
    y, x = np.mgrid[:240, :240]
    board = np.repeat((255 * ((x + y) % 2)).astype(np.uint8)[..., None], 3, axis=2)
    image = warp(prepare(board, turn(7, 0.23)), Window(-10, -10, 80, 80))
    u, v = mapped(np.linalg.inv(turn(7, 0.23)), *pixels_of(Window(-10, -10, 80, 80)))
    inside = (abs(u - 119.5) < 110) & (abs(v - 119.5) < 110)
    assert abs(image[inside] - 127.5).max() < 12


@pytest.mark.parametrize("factors", [(0.31, 0.31), (0.5, 0.5), (1.0, 0.2), (0.37, 0.9)])
def test_positions_stay_exact_when_the_frame_is_reduced(factors):
    canvas_from_frame = shift(0.4, -0.3) @ np.diag([*factors, 1.0])
    window = Window(0, 0, int(240 * factors[0]), int(240 * factors[1]))
    image = warp(prepare(ramp(240, 240, per_pixel=1.0), canvas_from_frame), window)
    u, v = mapped(np.linalg.inv(canvas_from_frame), *pixels_of(window))
    inside = (abs(u - 119.5) < 100) & (abs(v - 119.5) < 100)
    # In canvas pixels; the mean over a part of a pixel takes the whole pixel's value, which moves it a little.
    assert abs((image[..., 0] - u)[inside]).max() * factors[0] < 0.02
    assert abs((image[..., 1] - v)[inside]).max() * factors[1] < 0.02
