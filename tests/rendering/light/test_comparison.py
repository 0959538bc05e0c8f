from __future__ import annotations

import numpy as np
import pytest

from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.frame_survey import MOST_NEIGHBOURS, Survey, find_neighbours
from smalti.rendering.light_comparison import BRIGHTEST, compare, valid_cells
from tests.rendering.scene import Frames, colour_at, frame_of, mapped, shift
from tests.rendering.worlds import HEIGHT, WIDTH, WORLDS, disc, reader_of

WHOLE = np.ones((HEIGHT, WIDTH), dtype=bool)
STRAIGHT = Lens(Outline.of_pixels(WIDTH, HEIGHT))


def compared(tmp_path, world, pairs, mask=WHOLE, reader=None, lens=STRAIGHT):
    survey = Survey(tmp_path, sorted(world), WIDTH, HEIGHT)
    survey.read_frames(reader_of(world) if reader is None else reader)
    maps = np.array([world[number] for number in sorted(world)])
    return compare(survey, maps, lens, np.array(pairs), valid_cells(mask, survey))


@pytest.mark.parametrize("name", ["shifts", "affine", "homographies"])
def test_points_of_a_pair_are_one_place_of_the_scene_and_show_its_colour(tmp_path, name):
    world = WORLDS[name]
    comparison = compared(tmp_path, world, [(0, 1), (1, 5), (0, 11)])
    maps = [world[number] for number in sorted(world)]
    assert {(0, 1), (1, 5)} <= set(map(tuple, comparison.pair.tolist()))
    for pair, points, logs in zip(comparison.pair, comparison.points, comparison.logs, strict=True):
        first, second = (np.array(mapped(maps[place], *point)) for place, point in zip(pair, points, strict=True))
        np.testing.assert_allclose(first, second, atol=1e-6)
        # Red and green: cells of 2 pixels flatten the short waves of blue.
        np.testing.assert_allclose(np.exp(logs[:, :2]), colour_at(*first)[None, :2].repeat(2, axis=0), atol=6)


def test_points_of_frames_seen_through_a_lens_are_one_place_of_the_scene(tmp_path):
    world, lens = WORLDS["homographies"], Lens(Outline.of_pixels(WIDTH, HEIGHT), 0.1, -0.02)
    reader = Frames({number: frame_of(matrix, WIDTH, HEIGHT, lens) for number, matrix in world.items()})
    comparison = compared(tmp_path, world, [(0, 1), (1, 5)], reader=reader, lens=lens)
    assert len(comparison.pair) > 40
    for (i, j), points in zip(comparison.pair.tolist(), lens.undistort(comparison.points), strict=True):
        np.testing.assert_allclose(mapped(world[i], *points[0]), mapped(world[j], *points[1]), atol=1e-6)
    assert abs(comparison.logs[:, 0, :2] - comparison.logs[:, 1, :2]).max() < 0.1


def test_a_pair_that_shares_a_strip_is_compared_at_enough_points(tmp_path):
    comparison = compared(tmp_path, {0: shift(0, 0), 1: shift(WIDTH - 12, 0)}, [(0, 1)])
    assert len(comparison.pair) >= 40


def test_frames_that_do_not_overlap_have_no_points(tmp_path):
    assert len(compared(tmp_path, {0: shift(0, 0), 1: shift(WIDTH + 5, 0)}, [(0, 1)]).pair) == 0


def test_what_is_too_bright_is_not_compared(tmp_path):
    world = {0: shift(0, 0), 1: shift(20, 0)}
    reader = reader_of(world)
    reader.frames[0][:60] = 255
    comparison = compared(tmp_path, world, [(0, 1)], reader=reader)
    assert (comparison.points[:, 0, 1] > 58).all()
    assert np.exp(comparison.logs[..., :3]).max() <= BRIGHTEST + 1e-6


def test_what_the_mask_hides_is_not_compared(tmp_path):
    points = compared(tmp_path, {0: shift(0, 0), 1: shift(20, 10)}, [(0, 1)], disc()).points
    assert len(points) > 40
    # With a cell of 2 pixels to spare.
    assert (np.hypot(points[..., 0] - 80, points[..., 1] - 60) < 54).all()


def test_only_frames_that_can_overlap_are_neighbours_and_not_too_many():
    maps = np.array([shift(10.0 * k, 0) for k in range(100)] + [shift(5000.0 + 10 * k, 0) for k in range(5)])
    pairs = find_neighbours(maps, Outline.of_pixels(WIDTH, HEIGHT))
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    far = abs(maps[pairs[:, 0], 0, 2] - maps[pairs[:, 1], 0, 2]) > np.hypot(WIDTH, HEIGHT)
    # The frame that follows is compared whatever the distance: a step that shares nothing has no points.
    assert pairs[far].tolist() == [[99, 100]]
    assert {(k, k + 1) for k in range(104)} <= set(map(tuple, pairs.tolist()))
    assert len(pairs) <= len(maps) * (MOST_NEIGHBOURS + 1)


def test_neighbours_are_spread_over_time():
    """Strips beside each other matter more than the next frames, which are alike anyway."""
    strips = np.array([shift(20.0 * (k % 30), 60.0 * (k // 30)) for k in range(90)])
    pairs = find_neighbours(strips, Outline.of_pixels(WIDTH, HEIGHT))
    assert (pairs[:, 1] - pairs[:, 0] > 15).mean() > 0.4
