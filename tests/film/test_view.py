"""Which part of the plane the film shows."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.film.film_timeline import View
from smalti.geometry.homographies import project_points
from tests.film.stories import tell
from tests.rendering.scene import shift, turn


def strip(frames, step, curl=0.0):
    """Frames beside each other, each turned a little more."""
    return np.array([shift(step * n, 0.2 * step * n) @ turn(curl * n) for n in range(frames)])


def seen(view, story, state, closeness=0.0):
    """The corners of a state's frames in pixels of the picture."""
    return project_points(view.canvas_from_mosaic(closeness) @ state.maps, story.lens.outline.corners).reshape(-1, 2)


def is_inside(view, points):
    return bool((points >= -0.5).all() and (points <= [view.width - 0.5, view.height - 0.5]).all())


STORIES = {
    "long": tell([strip(12, 50, 6), strip(12, 50, 1), strip(12, 50)]),
    "high": tell([shift(0, 0) @ turn(90) @ strip(12, 50, 6), turn(90) @ strip(12, 50)]),
    "square": tell([strip(2, 20, 3), strip(2, 20)]),
}


@pytest.mark.parametrize(("name", "size"), [("long", 641), ("high", 960), ("square", 160)])
def test_sides_are_even_and_the_longer_one_is_as_wanted(name, size):
    view = View.of(STORIES[name], size)
    sides = (view.width, view.height + view.caption_height)
    assert all(side % 2 == 0 for side in (*sides, view.height))
    assert size - 3 <= max(sides) <= size
    assert min(sides) >= 0.46 * size


@pytest.mark.parametrize("name", STORIES)
def test_all_states_are_in_view(name):
    story = STORIES[name]
    view = View.of(story, 960)
    assert all(is_inside(view, seen(view, story, state)) for state in story.states)


@pytest.mark.parametrize("name", STORIES)
def test_at_last_the_finished_mosaic_fills_the_picture(name):
    story = STORIES[name]
    view = View.of(story, 960)
    corners = seen(view, story, story.states[-1], closeness=1.0)
    assert is_inside(view, corners)
    filled = (corners.max(axis=0) - corners.min(axis=0)) / (view.width, view.height)
    assert filled.max() > 0.9
    np.testing.assert_allclose(
        (corners.min(axis=0) + corners.max(axis=0)) / 2, (view.width / 2, view.height / 2), atol=1
    )


def test_a_chain_that_flies_away_does_not_make_the_mosaic_tiny():
    final = strip(12, 50)
    away = final.copy()
    away[-1] = shift(1e7, -3e6)
    story = tell([away, final])
    view = View.of(story, 960)
    corners = seen(view, story, story.states[-1])
    assert is_inside(view, corners)
    assert (corners.max(axis=0) - corners.min(axis=0)).max() > 960 / 3.4


def test_frames_that_are_not_placed_yet_do_not_widen_the_view():
    final = strip(4, 50)
    before = final.copy()
    before[3] = shift(700, 0)
    placed = [[True, True, True, False], [True] * 4]
    assert View.of(tell([before, final], placed=placed), 960).opening[2] < 300
