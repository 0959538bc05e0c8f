"""When the film shows what."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.film.film_timeline import (
    HOLD_SECONDS,
    LEAST_SECONDS,
    LONGEST_SECONDS,
    OPENING_SECONDS,
    most_steps,
    movement_px,
    plan_timeline,
    share_seconds,
)
from tests.film.stories import tell
from tests.rendering.scene import shift, turn


def moving(*xs):
    """Two frames, of which the second is moved to each x in turn."""
    return tell([np.array([np.eye(3), shift(x, 0)]) for x in xs])


def test_the_chain_opens_the_film_and_the_finished_mosaic_is_held():
    timeline = plan_timeline(moving(0, 10, 12, 13), 20.0)
    moments = timeline.moments(25)
    opening = [moment for moment in moments if moment.seconds < OPENING_SECONDS]
    assert {(moment.before, moment.share, moment.has_begun) for moment in opening} == {(0, 0.0, False)}
    held = [moment for moment in moments if (moment.before, moment.share) == (2, 1.0)]
    assert len(held) == pytest.approx(25 * HOLD_SECONDS, abs=1)
    assert held[-1] == moments[-1]
    assert moments[len(opening)].has_begun


def test_time_never_goes_back_nor_skips_a_state():
    moments = plan_timeline(moving(*np.cumsum([0, 9, 1, 0, 30, 2, 5])), 20.0).moments(25)
    progress = np.array([moment.before + moment.share for moment in moments])
    assert (np.diff(progress) >= 0).all()
    assert {moment.before for moment in moments} == set(range(6))


def test_every_step_begins_and_ends_slowly():
    timeline = plan_timeline(moving(0, 10, 20, 30), 20.0)
    begin, end = timeline.begins[1], timeline.ends[1]
    shares = [timeline.moment(begin + part * (end - begin)).share for part in (0.0, 0.1, 0.5, 0.9)]
    assert shares[0] == pytest.approx(0.0, abs=1e-9)
    assert shares[1] < 0.05
    assert shares[2] == pytest.approx(0.5)
    assert shares[3] > 0.95


def test_what_moves_more_gets_more_time():
    times = share_seconds(np.array([8.0, 1.0, 3.0, 0.0]), 2.0)
    assert times.sum() == pytest.approx(2.0)
    assert times[0] > times[2] > times[1] > times[3] == pytest.approx(LEAST_SECONDS, abs=1e-5)
    assert (times[0] - LEAST_SECONDS) / (times[2] - LEAST_SECONDS) == pytest.approx(8 / 3, rel=1e-4)


def test_what_a_giant_move_does_not_need_goes_to_the_others():
    times = share_seconds(np.array([1e6, 3.0, 1.0]), 4.0)
    assert times[0] == LONGEST_SECONDS
    assert times.sum() == pytest.approx(4.0)
    assert times[1] > times[2] > LEAST_SECONDS


def test_few_answers_make_a_short_film():
    assert share_seconds(np.array([5.0, 50.0]), 100.0).tolist() == [LONGEST_SECONDS] * 2
    assert plan_timeline(moving(0, 10, 20, 30), 60.0).seconds < 10


def test_steps_that_move_nothing_share_alike():
    np.testing.assert_allclose(share_seconds(np.zeros(5), 3.0), 0.6)


def test_no_step_at_all_takes_no_time():
    assert len(share_seconds(np.zeros(0), 15.0)) == 0
    assert plan_timeline(moving(0, 10), 20.0).seconds < 5


@pytest.mark.parametrize("seconds", [6.0, 61.5])
def test_a_film_of_as_many_steps_as_it_has_time_for_is_not_longer_than_wanted(seconds):
    steps = most_steps(seconds)
    moves = np.cumsum(np.random.default_rng(4).exponential(3.0, steps + 1))
    timeline = plan_timeline(moving(0, *moves), seconds)
    assert timeline.seconds <= seconds + 1e-9
    assert timeline.seconds > 0.9 * seconds
    assert (timeline.ends - timeline.begins).min() >= LEAST_SECONDS - 1e-9


def test_the_movement_is_the_mean_distance_of_the_corners():
    story = tell([np.array([np.eye(3), np.eye(3)]), np.array([np.eye(3), shift(6, 8)])])
    assert movement_px(story, *story.states) == pytest.approx(5.0)
    turned = tell([np.eye(3)[None], turn(90)[None]], width=41, height=41)
    about_corner = np.array([[-0.5, -0.5], [40.5, -0.5], [40.5, 40.5], [-0.5, 40.5]])
    assert movement_px(turned, *turned.states) == pytest.approx(
        np.sqrt(2) * np.linalg.norm(about_corner, axis=1).mean()
    )


def test_a_frame_that_comes_in_moves_the_film():
    maps = np.array([np.eye(3), shift(30, 0)])
    story = tell([maps, maps], placed=[[True, False], [True, True]])
    assert movement_px(story, *story.states) == pytest.approx((80 + 60) / 4 / 2)
