"""A picture of the film."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.film.film_frames import FilmFrames, read_film_frames
from smalti.film.film_pictures import (
    ANSWER,
    BACKGROUND,
    Caption,
    Drawing,
    blend_states,
    describe_error,
    describe_step,
    lay_lines,
)
from smalti.film.film_timeline import Moment, View, plan_timeline
from smalti.geometry.homographies import project_points
from tests.film.stories import tell
from tests.film.test_film_frames import Source, plain
from tests.rendering.scene import shift, turn

GREY = 120
BEFORE = np.array([shift(0, 0), shift(70, 40), shift(140, 0) @ turn(20)])
AFTER = np.array([shift(0, 0), shift(70, 20), shift(140, 0)])
STORY = tell([BEFORE, AFTER, AFTER, AFTER], width=120, height=90)
TIMELINE = plan_timeline(STORY, 12.0)


@pytest.fixture(scope="module")
def stock() -> FilmFrames:
    source = Source({n: plain(GREY) for n in range(3)})
    return read_film_frames(source, range(3), np.arange(3), None, STORY.lens, 1.5, lambda: None)


@pytest.fixture(scope="module")
def drawing(stock) -> Drawing:
    return Drawing(STORY, TIMELINE, View.of(STORY, 480), stock)


def near(picture, colour, tolerance=40):
    return (np.abs(picture.astype(int) - colour) <= tolerance).all(axis=-1)


def middle_of(step):
    return TIMELINE.moment((TIMELINE.begins[step] + TIMELINE.ends[step]) / 2)


def test_the_picture_has_the_size_of_its_view(drawing):
    view = View.of(STORY, 480)
    assert drawing.draw(TIMELINE.moment(0.0)).shape == (view.height + view.caption_height, view.width, 3)


def test_the_frames_of_the_newest_answer_are_outlined(drawing):
    view = View.of(STORY, 480)
    moment = middle_of(0)
    maps, _ = blend_states(*STORY.states[:2], moment.share)
    picture = drawing.draw(moment)
    for frame, is_outlined in ((0, True), (1, True), (2, False)):
        corners = project_points(view.canvas_from_mosaic() @ maps[frame], STORY.lens.outline.corners)
        along = np.linspace(corners, np.roll(corners, -1, axis=0), 20)[4:-4].reshape(-1, 2)
        x, y = np.round(along).astype(int).T
        assert (near(picture[y, x], ANSWER).mean() > 0.6) == is_outlined


@pytest.mark.parametrize("seconds", [0.5, TIMELINE.seconds - 0.5])
def test_nothing_is_outlined_at_the_beginning_nor_at_the_end(drawing, seconds):
    height = View.of(STORY, 480).height
    assert not near(drawing.draw(TIMELINE.moment(seconds))[:height], ANSWER).any()


def test_outlines_fade_after_their_step(drawing):
    height = View.of(STORY, 480).height
    end = TIMELINE.ends[1]
    strong, weak, gone = (
        near(drawing.draw(TIMELINE.moment(end + after))[:height], ANSWER, 60).sum() for after in (0.0, 0.25, 0.55)
    )
    assert strong > 5 * weak
    assert gone == 0


def test_the_path_leads_through_the_middles_of_the_frames_until_the_mosaic_is_finished(drawing):
    view = View.of(STORY, 480)
    for moment, closeness, is_there in ((TIMELINE.moment(0.0), 0.0, True), (TIMELINE.moment(99.0), 1.0, False)):
        maps, _ = blend_states(*STORY.states[moment.before : moment.before + 2], moment.share)
        centres = project_points(view.canvas_from_mosaic(closeness) @ maps, STORY.lens.outline.centre[None])[:, 0]
        x, y = np.round(np.linspace(centres[0], centres[1], 30)).astype(int).T
        assert (drawing.draw(moment)[y, x].mean(axis=1) > GREY + 15).mean() == pytest.approx(float(is_there), abs=0.2)


def test_halfway_between_two_states_a_frame_is_halfway():
    maps, strengths = blend_states(*STORY.states[:2], 0.5)
    corners = STORY.lens.outline.corners
    np.testing.assert_allclose(
        project_points(maps, corners), (project_points(BEFORE, corners) + project_points(AFTER, corners)) / 2
    )
    assert (strengths == 1).all()


def test_frames_that_fit_together_before_and_after_do_so_all_the_way():
    i_from_j = shift(60, 5) @ turn(12)
    story = tell([np.array([one, one @ i_from_j]) for one in (shift(9, 4) @ turn(70), turn(-10, 1.3))])
    maps, _ = blend_states(*story.states, 0.3)
    np.testing.assert_allclose(maps[0] @ i_from_j, maps[1], atol=1e-12)


def test_a_frame_that_comes_in_fades_in_where_it_will_be():
    story = tell([BEFORE, AFTER], placed=[[True, True, False], [True] * 3])
    maps, strengths = blend_states(*story.states, 0.25)
    np.testing.assert_array_equal(maps[2], AFTER[2])
    np.testing.assert_allclose(strengths, [1, 1, 0.25])


def test_frames_that_are_not_placed_are_neither_painted_nor_outlined(stock):
    story = tell([AFTER] * 3, width=120, height=90, placed=[[True, False, True]] * 2 + [[True] * 3])
    timeline = plan_timeline(story, 12.0)
    view = View.of(story, 480)
    picture = Drawing(story, timeline, view, stock).draw(timeline.moment(timeline.begins[0] + 0.05))
    x, y = np.round(project_points(view.canvas_from_mosaic() @ AFTER[1], np.array([[60.0, 86.0]]))[0]).astype(int)
    assert (picture[y, x] == BACKGROUND).all()
    x, y = np.round(project_points(view.canvas_from_mosaic() @ AFTER[1], np.array([[60.0, 89.5]]))[0]).astype(int)
    assert (picture[y - 2 : y + 3, x - 2 : x + 3] == BACKGROUND).all()


def test_words_tell_the_answer_by_the_frames_numbers_in_the_source():
    story = tell([AFTER] * 4)
    numbered = type(story)((5, 71, 80), story.lens, 150, story.states)
    assert describe_step(numbered, *story.states[:2]) == "answer 1 of 150: frames 5 and 71 overlap"
    assert describe_step(numbered, story.states[0], story.states[2]) == "answers 1 to 2 of 150: frames 5 and 71 overlap"
    assert describe_step(numbered, *story.states[2:]) == "finished: 3 frames, 2 answers"


@pytest.mark.parametrize(("px", "words"), [(9.96, "10 px error"), (1.62, "1.6 px error")])
def test_how_far_it_is_off_is_said_shortly(px, words):
    assert describe_error(px) == words


def test_words_and_number_have_room_beside_each_other_in_a_narrow_film():
    story = tell([AFTER] * 4)
    wordy = type(story)((12345, 23456, 34567), story.lens, 98765, story.states)
    strip = Caption(wordy, 300, 40).write(Moment(3.0, 1, 0.5, True))
    written = np.flatnonzero(strip[4:].max(axis=(0, 2)) > 50)
    gaps = np.diff(written)
    assert gaps.max() > 20
    assert np.sum(gaps > 10) == 1
    assert written.min() > 10
    assert written.max() < 290


def test_the_rail_grows_with_the_answers():
    story = tell([AFTER] * 6)
    caption = Caption(story, 400, 40)
    lengths = [near(caption.write(Moment(3.0, n, 1.0, True))[0], ANSWER, 5).sum() for n in range(5)]
    np.testing.assert_allclose(lengths, [100, 200, 300, 400, 400], atol=1)
    assert not near(caption.write(Moment(0.0, 0, 0.0, False)), ANSWER, 5).any()


def test_lines_far_out_of_the_picture_are_drawn_as_far_as_it_goes():
    picture = np.zeros((50, 60, 3), dtype=np.uint8)
    line = np.array([[-1e12, 20.0], [1e12, 20.0]])
    lay_lines(picture, [(line, 0.5)], (200, 100, 50), thickness=1, is_closed=False)
    np.testing.assert_allclose(picture[20, 2:-2, 0], 100, atol=12)
    assert not picture[:18].any()
