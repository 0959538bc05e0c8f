"""What the film tells of a project."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.building.build_results import residual_px
from smalti.errors import ProjectError
from smalti.film.film_story import LoopResiduals, spread_answers, tell_story
from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.project.entries import Role
from smalti.records import Answer, Landmarks, Pair
from tests.film.projects import CHAIN, CURL, FINAL, LOOPS, OUTLINE, REFERENCE, TRUTH, Plan, landmarks_of, make_project
from tests.rendering.scene import turn

STRAIGHT = Lens(OUTLINE)


def story_of(folder, plan=None, *, part=0, most_steps=50):
    with make_project(folder, plan) as project:
        return tell_story(project, part, most_steps)


def apart_px(maps, others):
    """The largest distance between the corners of frames by two sets of maps."""
    corners = OUTLINE.corners
    return np.linalg.norm(project_points(maps, corners) - project_points(others, corners), axis=-1).max()


def adjusted(plan, chain, loops):
    """The engine's maps of a chain and some answers, in the pixels of the reference frame."""
    start = ActiveLoop.start(
        8, OUTLINE, [landmarks_of(plan, i, j) for i, j in chain], lens=STRAIGHT, reference=REFERENCE
    )
    maps = start.replay(Answer.yes(landmarks_of(plan, i, j)) for i, j in loops).mosaic_from_frame
    return np.linalg.inv(maps[REFERENCE]) @ maps


def test_the_first_state_is_the_chain_followed_link_by_link(tmp_path):
    maps = [np.eye(3)]
    for i, j in CHAIN:
        maps.append(maps[-1] @ np.linalg.inv(TRUTH[i]) @ TRUTH[j] @ CURL)
    by_chain = np.linalg.inv(maps[REFERENCE]) @ np.array(maps)
    state = story_of(tmp_path).states[0]
    assert apart_px(state.maps, by_chain) < 1e-3
    assert state.is_placed.all()
    assert state.newest is None


def test_every_answer_has_its_state_in_the_order_in_which_they_were_given(tmp_path):
    order = [(1, 6), (2, 5), (0, 7)]
    plan = Plan()
    plan.answers = [*((i, j, Role.LOOP) for i, j in order), *((i, j, Role.CHAIN) for i, j in CHAIN)]
    states = story_of(tmp_path, plan).states
    assert [state.newest for state in states] == [None, *(Pair(i, j) for i, j in order), None]
    assert [state.answers for state in states] == [0, 1, 2, 3, 3]
    for count in range(4):
        assert apart_px(states[count].maps, adjusted(plan, CHAIN, order[:count])) < 1e-6


def test_the_last_state_is_the_finished_mosaic_to_the_last_bit(tmp_path):
    with make_project(tmp_path) as project:
        finished = [placement.final for placement in project.placements]
        np.testing.assert_array_equal(tell_story(project, 0, 50).states[-1].maps, finished)
    assert np.abs(np.array(finished)[:, 2, :2]).max() > 1e-5


def test_bridges_and_checks_count_to_the_chain(tmp_path):
    plan = Plan()
    plan.answers = [(i, j, Role.BRIDGE if (i, j) == (0, 7) else role) for i, j, role in plan.answers]
    story = story_of(tmp_path, plan)
    assert story.answers == 2
    assert apart_px(story.states[0].maps, adjusted(plan, [*CHAIN, (0, 7)], [])) < 1e-6


def test_what_is_rejected_bends_nothing(tmp_path):
    plan = Plan()
    honest = [*LOOPS, (0, 6), (1, 5), (1, 7), (2, 6)]
    plan.answers += [(i, j, Role.LOOP) for i, j in [*honest[3:], (0, 5)]]
    plan.lies = {(0, 5): np.array([[1.0, 0, 40], [0, 1, 25], [0, 0, 1]])}
    plan.held = {(0, 5)}
    story = story_of(tmp_path, plan)
    assert story.answers == len(honest)
    assert apart_px(story.states[-2].maps, adjusted(plan, CHAIN, honest)) < 1e-6


def test_frames_come_in_when_a_loop_joins_them(tmp_path):
    plan = Plan()
    plan.answers = [(i, j, role) for i, j, role in plan.answers if (i, j) != (3, 4)]
    plan.answers = [(4, 6, Role.LOOP), *plan.answers]
    states = story_of(tmp_path, plan).states
    first = np.arange(8) <= 3
    np.testing.assert_array_equal(states[0].is_placed, first)
    np.testing.assert_array_equal(states[1].is_placed, first)
    assert states[2].is_placed.all()
    chain = [(i, j) for i, j in CHAIN if (i, j) != (3, 4)]
    assert apart_px(states[2].maps, adjusted(plan, chain, [(4, 6), (0, 7)])) < 1e-6


def test_a_reference_that_nothing_joins_yet_stands_alone(tmp_path):
    plan = Plan()
    plan.answers = [(i, j, role) for i, j, role in plan.answers if REFERENCE not in (i, j)]
    plan.answers.append((3, 4, Role.LOOP))
    states = story_of(tmp_path, plan).states
    np.testing.assert_array_equal(states[0].is_placed, np.arange(8) == REFERENCE)
    np.testing.assert_allclose(states[0].maps[REFERENCE], np.eye(3), atol=1e-12)
    assert states[-2].is_placed.all()


def test_a_frame_that_was_set_aside_goes_with_the_nearest(tmp_path):
    plan = Plan(asides={7})
    plan.answers = [(i, j, role) for i, j, role in plan.answers if 7 not in (i, j)]
    plan.answers.append((6, 7, Role.ASIDE))
    states = story_of(tmp_path, plan).states
    for state in states[:-1]:
        beside = np.linalg.inv(state.maps[6]) @ state.maps[7]
        assert apart_px(beside[None], (np.linalg.inv(FINAL[6]) @ FINAL[7])[None]) < 1e-6
        assert state.is_placed[7]


def test_each_part_has_a_story_of_its_own(tmp_path):
    plan = Plan(parts={n: int(n > 3) for n in range(8)}, references=[3, 5])
    plan.answers = [(i, j, role) for i, j, role in plan.answers if (i > 3) == (j > 3)] + [(4, 7, Role.LOOP)]
    story = story_of(tmp_path, plan, part=1)
    assert story.frames == (4, 5, 6, 7)
    assert story.states[1].newest == Pair(0, 3)
    for state in story.states:
        np.testing.assert_allclose(state.maps[1], np.eye(3), atol=1e-12)


def test_how_far_it_is_off_is_the_rms_over_the_loops(tmp_path):
    story = story_of(tmp_path)
    for state in story.states:
        squares = [residual_px(state.maps, landmarks_of(Plan(), i, j), STRAIGHT) ** 2 for i, j in LOOPS]
        assert state.loop_error_px == pytest.approx(np.sqrt(np.mean(squares)))
    assert story.states[0].loop_error_px > 10 * story.states[-1].loop_error_px


def test_loops_to_frames_that_are_not_placed_yet_are_not_missed():
    records = [landmarks_of(Plan(), i, j) for i, j in LOOPS]
    maps = np.array([turn(5 * n) for n in range(8)])
    is_placed = np.arange(8) < 7
    squares = [residual_px(maps, record, STRAIGHT) ** 2 for record in records[1:]]
    assert LoopResiduals(records, STRAIGHT).rms_px(maps, is_placed) == pytest.approx(np.sqrt(np.mean(squares)))
    assert LoopResiduals(records, STRAIGHT).rms_px(maps, np.arange(8) < 5) is None


def test_without_loops_the_story_goes_from_the_chain_to_the_end(tmp_path):
    plan = Plan()
    plan.answers = [(i, j, role) for i, j, role in plan.answers if role is Role.CHAIN]
    story = story_of(tmp_path, plan)
    assert len(story.states) == 2
    assert [state.loop_error_px for state in story.states] == [None, None]


@pytest.mark.parametrize(("answers", "steps"), [(1, 1), (1, 80), (3, 2), (80, 80), (81, 80), (1500, 1), (1500, 7)])
def test_many_answers_share_steps_and_the_last_ones_most(answers, steps):
    given = spread_answers(answers, steps)
    assert len(given) <= steps
    assert given[-1] == answers
    sizes = np.diff([0, *given])
    assert (sizes >= 1).all()
    if steps > 1:
        assert sizes[0] == 1
        assert sizes[-1] == sizes.max() or sizes[-1] == sizes.max() - 1
    if answers <= steps:
        assert (sizes == 1).all()


def test_answers_that_share_a_step_come_together(tmp_path):
    states = story_of(tmp_path, most_steps=2).states
    assert [state.answers for state in states] == [0, 1, 3, 3]
    assert states[2].newest == Pair(2, 5)


def test_a_project_that_is_not_finished_is_refused(tmp_path):
    with pytest.raises(ProjectError, match="the build is not finished; run the same smalti build command"):
        story_of(tmp_path, Plan(is_finished=False))


@pytest.mark.parametrize("part", [-1, 1])
def test_a_part_that_is_not_there_is_refused(tmp_path, part):
    with pytest.raises(ProjectError, match=f"no mosaic of part {part}; it has parts 0 to 0"):
        story_of(tmp_path, part=part)


def test_a_project_without_any_mosaic_is_refused(tmp_path):
    with pytest.raises(ProjectError, match="nothing was placed"):
        story_of(tmp_path, Plan(parts={}))


def test_what_is_missed_is_measured_where_it_is_seen():
    lens = Lens(OUTLINE, 0.1)
    points = np.array([[5.0, 6.0], [40.0, 31.0], [70.0, 12.0]])
    moved = project_points(turn(3), lens.undistort(points))
    record = Landmarks(Pair(0, 1), lens.distort(moved) + np.array([0.3, 0.4]), points)
    maps = np.array([np.eye(3), turn(3)])
    assert LoopResiduals([record], lens).rms_px(maps, np.ones(2, dtype=bool)) == pytest.approx(0.5)
