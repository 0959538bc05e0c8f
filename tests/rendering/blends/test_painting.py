from __future__ import annotations

import numpy as np

from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.blends.blend_table import FEATHER
from smalti.rendering.blends.tile_painting import OverlayPainting, to_bytes
from smalti.rendering.canvas import Window
from smalti.rendering.exposure import plain_exposure
from smalti.rendering.frame_cache import FramePyramid
from smalti.rendering.frame_survey import NO_WORTH
from smalti.rendering.sampling_kernels import Feather
from smalti.rendering.tone_curve import WHITE
from tests.rendering.scene import shift

MASK = np.ones((20, 30), dtype=bool)
STRAIGHT = Lens(Outline.of_pixels(30, 20))


def painting(tile: Window, parts: dict[int, Window], frame_from_canvas: list[np.ndarray]) -> OverlayPainting:
    light = plain_exposure(len(frame_from_canvas), MASK).light
    return OverlayPainting(
        FEATHER, tile, parts, np.array(frame_from_canvas), STRAIGHT, Feather(MASK), light, WHITE, lambda index: NO_WORTH
    )


def grey(level: int) -> FramePyramid:
    return FramePyramid.of(np.full((20, 30, 3), level, dtype=np.uint8), np.eye(3))


def test_overshoot_is_clipped_and_colours_are_rounded():
    colours = np.array([-20.0, 300.0, 99.5001, 99.4999], dtype=np.float32)
    image = to_bytes(np.repeat(colours[None, :, None], 3, axis=2), np.ones((1, 4), dtype=bool))
    np.testing.assert_array_equal(image[0, :, 1], [0, 255, 100, 99])


def test_what_is_not_covered_is_transparent_and_black():
    image = to_bytes(np.full((1, 2, 3), 77, dtype=np.float32), np.array([[True, False]]))
    assert image[0].tolist() == [[77, 77, 77, 255], [0, 0, 0, 0]]


def test_two_frames_are_mixed_by_their_weights():
    tile = Window(0, 0, 60, 20)
    mixed = painting(tile, {0: tile, 1: tile}, [np.eye(3), shift(-15, 0)])
    mixed.add(0, grey(100))
    mixed.add(1, grey(200))
    feather = Feather(MASK)
    first, second = feather.weigh(np.eye(3), tile), feather.weigh(shift(-15, 0), tile)
    total = np.maximum(first + second, 1e-9)
    expected = np.where(first + second > 0, (100 * first + 200 * second) / total, 0)
    image = mixed.finish()
    assert abs(image[..., 0] - expected).max() <= 0.5 + 1e-3
    np.testing.assert_array_equal(image[..., 3] > 0, first + second > 0)


def test_a_frame_is_added_where_its_part_lies():
    added = painting(Window(10, 5, 16, 15), {0: Window(12, 6, 2, 3)}, [np.eye(3)])
    added.add(0, grey(50))
    expected = np.zeros((15, 16), dtype=np.uint8)
    expected[1:4, 2:4] = 255
    np.testing.assert_array_equal(added.finish()[..., 3], expected)


def test_frames_are_asked_for_in_ascending_order():
    tile = Window(0, 0, 8, 8)
    assert painting(tile, {2: tile, 0: tile, 1: tile}, [np.eye(3)] * 3).indices == [0, 1, 2]
