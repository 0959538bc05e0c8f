from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.canvas import Window
from smalti.rendering.frame_cache import FramePyramid
from smalti.rendering.sampling_kernels import brighten, cubic, linear, position
from tests.rendering.scene import colour_at, displacement, frame_of, mapped, shift, tilt, turn

WIDTH, HEIGHT = 90, 70
WINDOW = Window(-60, -60, 250, 250)

MAPS = {
    "shift": shift(3.37, -2.61),
    "turn": shift(20, 10) @ turn(33),
    "enlarge": turn(-10, 2.3),
    "tilt": shift(5.3, 4.9) @ turn(12) @ tilt(1.5e-3, -1e-3),
}


def pixels_of(window: Window) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.arange(window.top, window.bottom), np.arange(window.left, window.right)
    y, x = np.meshgrid(rows.astype(float), columns.astype(float), indexing="ij")
    return x, y


def warp(frame: np.ndarray, canvas_from_frame: np.ndarray, window: Window, sample=cubic) -> np.ndarray:
    """What the window shows of a frame, (h, w, 3)."""
    pyramid = FramePyramid.of(frame, canvas_from_frame)
    level_from_canvas = pyramid.level_from_frame(0) @ np.linalg.inv(canvas_from_frame)
    x, y = pixels_of(window)
    points = [position(level_from_canvas, a, b) for a, b in zip(x.ravel(), y.ravel(), strict=True)]
    return np.array([sample(pyramid.levels[0], *point) for point in points]).reshape(*x.shape, 3)


def ramp(width: int, height: int, per_pixel: float = 2.0) -> np.ndarray:
    """Red counts columns, green counts rows."""
    y, x = np.mgrid[:height, :width]
    return np.stack([per_pixel * x, per_pixel * y, 0 * x], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("sample", [cubic, linear])
@pytest.mark.parametrize("name", MAPS)
def test_positions_are_exact_to_a_thousandth_of_a_pixel(name, sample):
    image = warp(ramp(WIDTH, HEIGHT), MAPS[name], WINDOW, sample)
    u, v = mapped(np.linalg.inv(MAPS[name]), *pixels_of(WINDOW))
    # The border is repeated: the outermost pixels of a ramp are bent.
    inside = (u > 1) & (u < WIDTH - 2) & (v > 1) & (v < HEIGHT - 2)
    assert inside.sum() > 2000
    assert abs(image[inside][:, 0] / 2 - u[inside]).max() < 1e-3
    assert abs(image[inside][:, 1] / 2 - v[inside]).max() < 1e-3


@pytest.mark.parametrize("name", MAPS)
def test_a_smooth_scene_is_reproduced(name):
    image = warp(frame_of(np.eye(3), WIDTH, HEIGHT), MAPS[name], WINDOW)
    u, v = mapped(np.linalg.inv(MAPS[name]), *pixels_of(WINDOW))
    inside = (u > 1) & (u < WIDTH - 2) & (v > 1) & (v < HEIGHT - 2)
    assert np.sqrt(np.mean((image - colour_at(u, v))[inside] ** 2)) < 0.6


def test_the_bicubic_kernel_reproduces_a_parabola():
    x = np.arange(16)
    frame = np.repeat(np.tile(x * x, (16, 1))[..., None], 3, axis=2).astype(np.uint8)
    for at in (4.25, 7.5, 9.9):
        assert cubic(frame, at, 8.3)[1] == pytest.approx(at * at, abs=1e-3)


@pytest.mark.parametrize("sample", [cubic, linear])
def test_a_shift_by_whole_pixels_copies(sample):
    frame = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    np.testing.assert_array_equal(warp(frame, shift(17, 5), Window(17, 5, WIDTH, HEIGHT), sample), frame)


@pytest.mark.parametrize("sample", [cubic, linear])
def test_the_border_is_not_darkened(sample):
    image = warp(np.full((9, 7, 3), 200, dtype=np.uint8), shift(0.5, 0.5), Window(-2, -2, 12, 14), sample)
    np.testing.assert_allclose(image, 200, rtol=1e-6)


@pytest.mark.parametrize("sample", [cubic, linear])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5)])
def test_frames_of_a_pixel_or_two_can_be_sampled(sample, shape):
    frame = np.full((*shape, 3), 90, dtype=np.uint8)
    assert sample(frame, 0.4, 0.3) == pytest.approx((90, 90, 90), rel=1e-6)


def test_detail_finer_than_the_canvas_is_averaged_not_aliased():
    y, x = np.mgrid[:240, :240]
    board = np.repeat((255 * ((x + y) % 2)).astype(np.uint8)[..., None], 3, axis=2)
    window = Window(-10, -10, 80, 80)
    image = warp(board, turn(7, 0.23), window)
    u, v = mapped(np.linalg.inv(turn(7, 0.23)), *pixels_of(window))
    inside = (abs(u - 119.5) < 110) & (abs(v - 119.5) < 110)
    assert abs(image[inside] - 127.5).max() < 12


@pytest.mark.parametrize("factors", [(0.5, 0.5), (1.0, 0.2), (0.37, 0.9)])
def test_positions_stay_exact_when_the_frame_is_reduced(factors):
    canvas_from_frame = shift(0.4, -0.3) @ np.diag([*factors, 1.0])
    window = Window(0, 0, int(240 * factors[0]), int(240 * factors[1]))
    image = warp(frame_of(turn(0, 0.2), 240, 240), canvas_from_frame, window)
    u, v = mapped(np.linalg.inv(canvas_from_frame), *pixels_of(window))
    inside = (abs(u - 119.5) < 110) & (abs(v - 119.5) < 110)
    off = displacement(image[inside], 0.2 * u[inside], 0.2 * v[inside]) / 0.2
    assert abs(off * factors).max() < 0.01


def test_what_makes_up_for_shading_is_linear_between_the_points_of_its_table():
    table = np.arange(9, dtype=np.float32).reshape(3, 3)
    from_pixels = np.array([[0.1, 0.0], [0.1, 0.0]])
    assert brighten(table, from_pixels, 5.0, 15.0) == pytest.approx(0.5 + 3 * 1.5)
    # Beyond the table its rim counts.
    assert brighten(table, from_pixels, -7.0, 99.0) == pytest.approx(6.0, abs=1e-4)
