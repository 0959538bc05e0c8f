"""One frame is laid over the other by hand: dragged, turned, finished by all pixels, or used as it is."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import expect

from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import compose, invert, square
from smalti.records import Pair
from tests.page.rounds import HEIGHT, WIDTH, rounds

PAIR = Pair(2, 22)
CORNERS = np.array([[40.0, 30.0], [WIDTH - 41.0, 30.0], [40.0, HEIGHT - 31.0], [WIDTH - 41.0, HEIGHT - 31.0]])


@pytest.fixture
def laying(person):
    """Somebody who lays one frame over the other."""
    person.go_to(PAIR)
    person.wipe()
    person.press("h")
    expect(person.see("laying")).to_be_visible()
    return person


def laid_map(person):
    """Where frame j lies over frame i by what is painted."""
    person.page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    numbers = person.see("overlay").locator("canvas").get_attribute("data-i-from-j")
    return np.array([float(number) for number in numbers.split(",")]).reshape(3, 3)


def true_map():
    truth = rounds().mosaic_from_frame
    return square(compose(invert(truth[PAIR.i]), truth[PAIR.j]))


def middle(person):
    box = person.see("overlay").bounding_box()
    return np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])


def drag(person, start, end):
    mouse = person.page.mouse
    mouse.move(*start)
    mouse.down()
    for share in (0.2, 0.5, 1.0):
        mouse.move(*(start + share * (end - start)))
    mouse.up()


def landmarks(person):
    kept = person.page.evaluate(f"""() => Object.entries(localStorage)
        .find(([key]) => key.startsWith("smalti:draft:") && key.endsWith(":{PAIR.i}:{PAIR.j}"))[1]""")
    return json.loads(kept)["landmarks"]


def points(drawn, side):
    return np.array([(one[f"x_{side}"], one[f"y_{side}"]) for one in drawn])


def test_a_drag_moves_the_frame_as_far_as_the_pointer(laying):
    before, start = laid_map(laying), middle(laying)
    # Ten steps of the keys tell how wide a pixel of the frame is on the screen.
    laying.press(*["ArrowRight"] * 10)
    moved = apply_map(laid_map(laying), CORNERS) - apply_map(before, CORNERS)
    np.testing.assert_allclose(moved, [[10.0, 0.0]] * 4, atol=1e-6)
    drag(laying, start, start + np.array([60.0, -40.0]))
    moved = (apply_map(laid_map(laying), CORNERS) - apply_map(before, CORNERS))[0] - [10.0, 0.0]
    assert moved[0] > 0 > moved[1]
    assert moved[1] / moved[0] == pytest.approx(-40 / 60, abs=0.02)


def test_with_shift_it_turns_about_its_middle(laying):
    before, start = laid_map(laying), middle(laying)
    centre = np.array([[(WIDTH - 1) / 2, (HEIGHT - 1) / 2]])
    laying.page.keyboard.down("Shift")
    drag(laying, start + np.array([150.0, 0.0]), start + np.array([140.0, 60.0]))
    laying.page.keyboard.up("Shift")
    after = laid_map(laying)
    np.testing.assert_allclose(apply_map(after, centre), apply_map(before, centre), atol=0.5)
    turn = (after @ np.linalg.inv(before))[:2, :2]
    assert 0.2 < np.arctan2(turn[1, 0], turn[0, 0]) < 0.7
    laying.press("]", "]", "[")
    turn = (laid_map(laying) @ np.linalg.inv(after))[:2, :2]
    assert np.arctan2(turn[1, 0], turn[0, 0]) == pytest.approx(np.radians(0.5), rel=0.01)


def test_all_pixels_finish_it_and_one_key_confirms(laying, keep_picture):
    laying.press(*["ArrowRight"] * 5, *["ArrowDown"] * 4, "]", "]")
    keep_picture(laying.page, "by-hand")
    laying.press("f")
    expect(laying.see("landmark").first).to_be_visible()
    expect(laying.see("laying")).to_be_hidden()
    drawn = landmarks(laying)
    assert {one["origin"] for one in drawn} == {"aligned"}
    errors = apply_map(true_map(), points(drawn, "j")) - points(drawn, "i")
    assert np.sqrt(np.mean(np.sum(errors**2, axis=1))) < 1.5
    keep_picture(laying.page, "by-hand-aligned")
    laying.after(lambda: laying.press("Enter"))


def test_without_a_landmark_one_key_aligns_the_frames_from_where_they_are_expected(person):
    person.go_to(PAIR)
    person.wipe()
    person.press("f")
    expect(person.see("landmark").first).to_be_visible()
    assert {one["origin"] for one in landmarks(person)} == {"aligned"}
    errors = apply_map(true_map(), points(landmarks(person), "j")) - points(landmarks(person), "i")
    assert np.sqrt(np.mean(np.sum(errors**2, axis=1))) < 1.5


def test_it_is_used_as_it_is_where_nothing_can_be_matched(laying):
    laying.press("ArrowLeft", "ArrowUp")
    laid = laid_map(laying)
    laying.press("Enter")
    expect(laying.see("landmark")).to_have_count(4)
    drawn = landmarks(laying)
    assert {one["origin"] for one in drawn} == {"laid"}
    np.testing.assert_allclose(apply_map(laid, points(drawn, "j")), points(drawn, "i"), atol=1e-6)


def test_escape_leaves_everything_as_it_was(laying):
    laying.press("ArrowRight", "Escape")
    expect(laying.see("laying")).to_be_hidden()
    expect(laying.see("overlay")).to_be_hidden()
    expect(laying.see("landmark")).to_have_count(0)
    assert laying.look().pair == PAIR
