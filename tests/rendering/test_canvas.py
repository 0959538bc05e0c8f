from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from smalti.errors import OutputError, UsageError
from smalti.rendering.canvas import Canvas, Window, touched_windows
from tests.rendering.scene import mapped, shift, tilt, turn


def test_one_frame_has_a_canvas_of_its_own_size():
    assert Canvas.around(np.eye(3)[None], 40, 30) == Canvas(0.0, 0.0, 40, 30, 1.0)


def test_rounding_errors_add_no_empty_pixels():
    maps = np.stack([shift(-1e-10, 1e-10), shift(10 + 1e-10, -1e-10)])
    assert Canvas.around(maps, 40, 30) == Canvas(0.0, 0.0, 50, 30, 1.0)


@given(
    degrees=st.floats(-180, 180),
    zoom=st.floats(0.3, 3),
    x=st.floats(-500, 500),
    y=st.floats(-500, 500),
    scale=st.floats(0.1, 4),
)
def test_the_canvas_holds_all_corners_and_is_tight(degrees, zoom, x, y, scale):
    mosaic_from_frame = shift(x, y) @ turn(degrees, zoom)
    canvas = Canvas.around(mosaic_from_frame[None], 40, 30, scale)
    corners_x, corners_y = mapped(
        canvas.canvas_from_frame(mosaic_from_frame),
        np.array([-0.5, 39.5, 39.5, -0.5]),
        np.array([-0.5, -0.5, 29.5, 29.5]),
    )
    for corners, size in ((corners_x, canvas.width), (corners_y, canvas.height)):
        assert corners.min() >= -0.5 - 1e-5
        assert corners.max() <= size - 0.5 + 1e-5
        # The origin is on whole mosaic pixels and the size on whole canvas pixels: less than one of each is lost.
        assert size - (corners.max() - corners.min()) < scale + 1 + 1e-5


@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_a_canvas_pixel_covers_one_over_scale_mosaic_pixels(scale):
    canvas = Canvas(7.0, -3.0, 100, 80, scale)
    mosaic_from_canvas = np.linalg.inv(canvas.canvas_from_mosaic)
    x, y = mapped(mosaic_from_canvas, np.array([0.0, -0.5, 5.0]), np.array([0.0, -0.5, 9.0]))
    # Centre of the first pixel; the corner, the same at every scale; another pixel.
    np.testing.assert_allclose(x, [7 + 0.5 / scale - 0.5, 6.5, 7 + 5.5 / scale - 0.5])
    np.testing.assert_allclose(y, [-3 + 0.5 / scale - 0.5, -3.5, -3 + 9.5 / scale - 0.5])


def test_tiles_cover_every_pixel_once_in_raster_order():
    window = Window(3, -2, 25, 17)
    tiles = list(window.tiles(10, 8))
    times = np.zeros((17, 25), dtype=int)
    for tile in tiles:
        times[tile.slices_in(window)] += 1
    assert (times == 1).all()
    assert [(tile.top, tile.left) for tile in tiles] == [(top, left) for top in (-2, 6, 14) for left in (3, 13, 23)]
    assert tiles[-1] == Window(23, 14, 5, 1)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (tilt(-1 / 20, 0), "infinity"),
        (tilt(-1 / 39.5, 0), "infinity"),
        (np.diag([1.0, 0.0, 1.0]), "flattens"),
        (np.full((3, 3), np.nan), "finite"),
    ],
)
def test_a_map_that_makes_no_quadrangle_is_refused_by_its_frame_number(bad, words):
    with pytest.raises(OutputError, match=rf"^frame 9: .*{words}"):
        Canvas.around(np.stack([np.eye(3), bad]), 40, 30, numbers=[4, 9])


def test_a_map_of_negative_sign_is_the_same_map():
    assert Canvas.around(-tilt(1e-3, 0)[None], 40, 30) == Canvas.around(tilt(1e-3, 0)[None], 40, 30)


def test_a_frame_gone_astray_is_refused_by_the_size_of_the_canvas():
    with pytest.raises(OutputError, match="1000040 × 1000030 pixels"):
        Canvas.around(np.stack([np.eye(3), shift(1e6, 1e6)]), 40, 30)
    assert Canvas.around(np.stack([np.eye(3), shift(1e6, 1e6)]), 40, 30, scale=0.01).width == 10001


@pytest.mark.parametrize("scale", [0.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_size_is_refused(scale):
    with pytest.raises(UsageError, match="scale"):
        Canvas.around(np.eye(3)[None], 40, 30, scale)


def test_no_frames_are_refused():
    with pytest.raises(UsageError, match="no frames"):
        Canvas.around(np.empty((0, 3, 3)), 40, 30)


def test_the_touched_window_holds_every_pixel_the_frame_covers():
    maps = np.stack([shift(33.3, 20.7) @ turn(30), shift(500, 0), shift(-100, 5) @ tilt(1e-3, 2e-3), shift(20.5, 10.5)])
    within = Window(20, 10, 50, 40)
    for matrix, part in zip(maps, touched_windows(maps, 40, 30, within), strict=True):
        y, x = np.mgrid[10:50, 20:70].astype(float)
        u, v = mapped(np.linalg.inv(matrix), x, y)
        rows, columns = np.nonzero((abs(u - 19.5) <= 20) & (abs(v - 14.5) <= 15))
        assert (part.width > 0 and part.height > 0) == (len(rows) > 0)
        if len(rows):
            assert part.left <= columns.min() + 20 <= columns.max() + 20 < part.left + part.width
            assert part.top <= rows.min() + 10 <= rows.max() + 10 < part.top + part.height
            assert part.left >= 20
            assert part.top >= 10
            assert part.left + part.width <= 70
            assert part.top + part.height <= 50


def test_a_window_grows_to_multiples_of_a_step():
    assert Window(-3, 10, 7, 5).grow(2) == Window(-5, 8, 11, 9)
    assert Window(-3, 10, 7, 5).grow(2, 8) == Window.between(-8, 8, 8, 24)


def test_windows_have_in_common_what_both_have():
    assert Window(0, 0, 10, 10).intersect(Window(6, -2, 10, 5)) == Window.between(6, 0, 10, 3)
    assert Window(0, 0, 10, 10).intersect(Window(10, 0, 5, 5)).is_empty
    rows, columns = Window(6, 2, 3, 4).slices_in(Window(5, 0, 20, 20))
    assert (rows, columns) == (slice(2, 6), slice(1, 4))


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(1.0, Window(40, 20, 60, 30)), (0.5, Window(20, 10, 30, 15))],
)
def test_a_region_is_given_in_pixels_of_scale_one(scale, expected):
    assert Canvas(-7.0, 3.0, round(200 * scale), round(100 * scale), scale).part((40, 20, 60, 30)) == expected


def test_a_region_ends_with_the_mosaic_and_has_a_pixel_at_least():
    assert Canvas(0.0, 0.0, 200, 100).part((150, 90, 999, 999)) == Window(150, 90, 50, 10)
    assert Canvas(0.0, 0.0, 20, 10, 0.1).part((199, 99, 1, 1)) == Window(19, 9, 1, 1)


def test_pixels_of_a_window_are_pixels_of_the_canvas():
    x, y = mapped(Window(40, 20, 60, 30).canvas_from_window, np.array([3.0]), np.array([4.0]))
    assert (x[0], y[0]) == (43, 24)


NO_REGIONS = [(200, 0, 5, 5), (-1, 0, 5, 5), (0, 100, 5, 5), (0, 0, 0, 5), (0, 0, 5, -5), (float("nan"), 0, 5, 5)]


@pytest.mark.parametrize("region", [*NO_REGIONS, (0, 0, 5, float("nan"))])
def test_a_region_that_is_not_part_of_the_mosaic_is_refused_in_one_line(region):
    with pytest.raises(UsageError, match=r"^region .*: the mosaic has 200 × 100 pixels at scale 1") as caught:
        Canvas(0.0, 0.0, 200, 100).part(region)
    assert "\n" not in str(caught.value)


def test_an_endless_region_is_refused_too():
    with pytest.raises(UsageError, match=r"^region"):
        Canvas(0.0, 0.0, 200, 100).part((10, 10, float("inf"), 5))
