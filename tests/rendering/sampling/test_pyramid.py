from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.frame_cache import FramePyramid, reduced_size
from tests.rendering.scene import displacement, frame_of, mapped, shift, tilt, turn


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.eye(3), (200, 100)),
        (turn(30, 1.9), (200, 100)),
        (turn(77, 0.67), (200, 100)),
        (shift(9, 4) @ turn(45, 0.5), (100, 50)),
        (np.diag([0.25, 1.0, 1.0]), (50, 100)),
        (-2 * turn(10, 0.2), (40, 20)),
        (turn(0, 0.001), (1, 1)),
    ],
)
def test_a_frame_is_reduced_to_the_resolution_of_the_canvas(matrix, expected):
    assert reduced_size(200, 100, matrix) == expected


def test_a_tilted_frame_is_reduced_by_its_mean():
    columns, rows = reduced_size(200, 100, turn(0, 0.5) @ tilt(1e-3, 0))
    assert 80 < columns < 100
    assert 40 < rows < 50


@pytest.mark.parametrize(("scale", "level"), [(1.0, 3), (0.5, 1), (0.37, 0)])
def test_every_level_shows_the_scene_where_its_map_says(scale, level):
    pyramid = FramePyramid.of(frame_of(turn(0, 0.12), 256, 192), turn(0, scale), levels=4)
    image = pyramid.levels[level]
    y, x = np.mgrid[2 : image.shape[0] - 2, 2 : image.shape[1] - 2].astype(float)
    mosaic_from_level = turn(0, 0.12) @ pyramid.frame_from_level(level)
    off = displacement(image[2:-2, 2:-2], *mapped(mosaic_from_level, x, y))
    # In pixels of the level.
    assert abs(off / mosaic_from_level[0, 0]).max() < 0.02


def test_there_are_as_many_levels_as_asked_for_but_none_without_pixels():
    frame = np.zeros((40, 12, 3), dtype=np.uint8)
    assert [level.shape[:2] for level in FramePyramid.of(frame, np.eye(3), 3).levels] == [(40, 12), (20, 6), (10, 3)]
    assert len(FramePyramid.of(frame, np.eye(3), 9).levels) == 5


def test_the_pyramid_over_the_first_level_is_the_same_pyramid():
    whole = FramePyramid.of(frame_of(np.eye(3), 90, 70), turn(0, 0.4), 4)
    again = FramePyramid.over(whole.levels[0], whole.frame_size, 4)
    for level in range(4):
        np.testing.assert_array_equal(again.levels[level], whole.levels[level])
        np.testing.assert_array_equal(again.frame_from_level(level), whole.frame_from_level(level))
    assert whole.nbytes == sum(level.nbytes for level in whole.levels)
