from __future__ import annotations

import numpy as np
import pytest

from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.canvas import Canvas
from smalti.rendering.sampling_kernels import Feather
from smalti.rendering.seams.seam_candidates import VIEWS, select_frames
from tests.rendering.scene import shift, turn
from tests.rendering.worlds import HEIGHT, WIDTH, WORLDS, count_views, disc

WHOLE = np.ones((HEIGHT, WIDTH), dtype=bool)
VIDEO = {k: shift(3.0 * k, 20 * np.sin(k / 20)) @ turn(0.1 * k) for k in range(200)}
STRAIGHT = {k: shift(3.0 * k, 0) for k in range(200)}


def select(world, mask=WHOLE, quality=None, **options) -> list[int]:
    quality = np.ones(len(world)) if quality is None else quality
    maps = np.array([world[number] for number in sorted(world)])
    return select_frames(
        maps, Lens(Outline.of_pixels(WIDTH, HEIGHT)), Feather(mask).weights, quality, **options
    ).tolist()


@pytest.mark.parametrize("mask", [WHOLE, disc()], ids=["whole", "disc"])
def test_a_dense_video_needs_few_frames_which_see_what_all_see(mask):
    chosen = select(VIDEO, mask)
    assert len(chosen) < len(VIDEO) / 3
    canvas = Canvas.around(np.array(list(VIDEO.values())), WIDTH, HEIGHT)
    all_views = count_views(VIDEO, canvas, mask)
    views = count_views({place: VIDEO[place] for place in chosen}, canvas, mask)
    # Less than a cell, a 24th of a frame, is lost along the rim.
    assert (views > 0).sum() > 0.985 * (all_views > 0).sum()
    # Inside, two outvote the third nearly everywhere.
    assert (views >= VIEWS)[all_views >= 20].mean() > 0.95


def test_more_views_take_more_frames():
    assert len(select(STRAIGHT, views=15)) > 2 * len(select(STRAIGHT, views=3))


@pytest.mark.parametrize("world", WORLDS)
def test_frames_that_each_show_something_new_are_all_taken(world):
    assert select(WORLDS[world]) == list(range(12))


def test_a_frame_that_shows_a_strip_more_is_taken_however_narrow_it_is():
    world = {k: np.eye(3) for k in range(3)} | {3: shift(9, 0)}
    assert 3 in select(world)


def test_better_frames_are_taken_first():
    quality = np.where(np.arange(len(STRAIGHT)) % 10 == 4, 1.0, 0.3)
    chosen = select(STRAIGHT, quality=quality)
    assert np.mean([place % 10 == 4 for place in chosen]) > 0.6
    assert len(chosen) < 40


def test_frames_at_one_place_are_taken_far_apart_in_time():
    chosen = select({k: np.eye(3) for k in range(100)})
    assert len(chosen) == VIEWS
    assert np.diff(chosen).min() > 20


def test_one_frame_is_taken():
    assert select({5: np.eye(3)}) == [0]
