"""Whoever has no mouse can do everything."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from smalti.records import Landmarks, Pair
from tests.page.correspondence import given, truth_on
from tests.page.rounds import careful_eye

OVERLAPPING = Pair(2, 22)
"""A round apart: these two frames share nearly everything."""

CORNERED = Pair(5, 25)
"""The fifth place that the careful eye knows here is a corner."""


def test_landmarks_are_set_by_the_cursor_and_confirmed(person, program):
    # A round apart: these two frames share nearly everything.
    person.go_to(Pair(0, 20))
    person.press("y")
    person.see("frame-j").focus()
    for at, way in enumerate((["Shift+ArrowUp"], ["Shift+ArrowLeft", "ArrowDown"], ["Shift+ArrowRight", "ArrowDown"])):
        # Space sets the point in one frame and takes the expected place in the other; Escape lets go of the landmark.
        person.press(*way, "Space", "Space")
        expect(person.see("landmark")).to_have_count(at + 1)
        person.press("Escape")
    person.after(lambda: person.press("Enter"))
    last = given(program)[-1]
    assert (last["verdict"], last["landmarks"]) == ("yes", 3)


def test_one_landmark_is_an_answer(person, program):
    person.go_to(Pair(3, 23))
    person.press("y")
    person.see("frame-j").focus()
    person.press("ArrowUp", "Space", "Space")
    expect(person.see("landmark")).to_have_count(1)
    expect(person.see("predicted-error")).to_contain_text("px")
    person.press("Escape")
    person.after(lambda: person.press("y"))
    last = given(program)[-1]
    assert (last["verdict"], last["landmarks"]) == ("yes", 1)


@pytest.mark.parametrize(("key", "verdict"), [("n", "no"), ("u", "unsure")])
def test_an_answer_is_one_key(person, program, key, verdict):
    asked = person.look().pair
    person.after(lambda: person.press(key))
    last = given(program)[-1]
    assert (last["i"], last["j"], last["verdict"]) == (asked.i, asked.j, verdict)


def test_undo_and_redo_are_one_key_each(person, program):
    person.after(lambda: person.press("u"))
    with_it = given(program)
    person.after(lambda: person.press("z"))
    assert given(program) == with_it[:-1]
    person.after(lambda: person.press("Shift+z"))
    assert given(program) == with_it


def test_a_key_that_is_held_answers_one_question_only(person, program):
    before = len(given(program))
    person.after(lambda: person.page.keyboard.down("n"))
    # Down again without having been up: what a keyboard sends while a key is held.
    for _ in range(3):
        person.page.keyboard.down("n")
    person.page.keyboard.up("n")
    person.wait_until_saved()
    assert len(given(program)) == before + 1


def test_two_quick_presses_answer_one_question_only(person, program):
    before = len(given(program))

    def press_until_the_next_pair_comes():
        asked = person.see("question").get_attribute("data-i"), person.see("question").get_attribute("data-j")
        for _ in range(400):
            person.press("n")
            if (
                person.see("question").get_attribute("data-i"),
                person.see("question").get_attribute("data-j"),
            ) != asked:
                person.press("n", "u", "n")
                return
        raise AssertionError("the next pair did not come")

    person.after(press_until_the_next_pair_comes)
    assert len(given(program)) == before + 1


def test_a_landmark_snaps_by_itself_and_z_sets_it_back(person):
    person.go_to(CORNERED)
    seen = careful_eye().answer(CORNERED).landmarks
    person.mark(Landmarks(CORNERED, seen.points_i[4:5], seen.points_j[4:5]))
    expect(person.see("landmark")).to_contain_text("snapped")
    person.press("z")
    expect(person.see("landmark")).not_to_contain_text("snapped")


def test_enter_after_a_click_on_blink_confirms(person, program):
    person.go_to(OVERLAPPING)
    person.mark(careful_eye().answer(OVERLAPPING).landmarks)
    person.page.get_by_role("button", name="blink").click()
    expect(person.see("overlay")).to_be_visible()
    person.after(lambda: person.press("Enter"))
    assert last_given(program) == (OVERLAPPING, "yes")


def test_enter_after_a_click_on_open_confirms(person, program):
    seen = person.look()
    program.post("api/answers", truth_on(careful_eye(), OVERLAPPING, seen.revision))
    expect(person.see("question")).not_to_have_attribute("data-revision", str(seen.revision))
    person.press("o")
    person.see("tab-answers").click()
    row = f"[data-testid=answer-row][data-i='{OVERLAPPING.i}'][data-j='{OVERLAPPING.j}']"
    person.page.locator(row).get_by_test_id("answer-open").click()
    expect(person.see("question")).to_have_attribute("data-j", str(OVERLAPPING.j))
    before = person.look().revision
    person.after(lambda: person.press("Enter"))
    assert last_given(program) == (OVERLAPPING, "yes")
    assert program.get("api/state")["revision"] == before + 1


def test_a_button_that_keys_have_reached_is_pressed_by_enter(person):
    person.see("verdict-unsure").focus()
    before = person.look()
    person.after(lambda: person.press("Enter"))
    assert person.look().pair != before.pair


def test_help_names_every_key_and_goes_away(person):
    person.press("?")
    keys = person.see("help")
    expect(keys).to_be_visible()
    for words in ("no common place", "cannot tell", "undo", "redo", "snap"):
        expect(keys).to_contain_text(words)
    person.press("Escape")
    expect(keys).to_be_hidden()


def test_keys_typed_into_a_field_are_no_answers(person, program):
    before = person.look()
    for key in ("y", "n", "u", "z", "Enter"):
        person.press("g")
        expect(person.page.get_by_role("dialog").locator("input").first).to_be_focused()
        person.press(key, "Escape")
        expect(person.page.get_by_role("dialog")).to_have_count(0)
        assert program.get("api/state")["revision"] == before.revision, key
        assert person.look() == before, key


def test_every_part_can_be_reached_by_tab(person):
    reached = set()
    for _ in range(80):
        person.press("Tab")
        reached.add(
            person.page.evaluate(
                "() => document.activeElement?.closest('[data-testid]')?.getAttribute('data-testid') ?? ''"
            )
        )
    assert {"verdict-yes", "verdict-no", "verdict-unsure", "frame-i", "frame-j", "mosaic", "overview"} <= reached


def test_every_control_has_a_name(person):
    nameless = person.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [role=button], [role=tab]")]
            .filter((element) => element.checkVisibility({ visibilityProperty: true }))
            .filter((element) => !(element.innerText || element.getAttribute("aria-label") || element.title
                || element.labels?.length || element.getAttribute("aria-labelledby")))
            .map((element) => element.outerHTML)"""
    )
    assert nameless == []


def test_a_screen_reader_finds_the_landmarks_of_the_page(person):
    for role in ("banner", "main", "navigation"):
        expect(person.page.get_by_role(role).first).to_be_attached()


def last_given(program):
    last = given(program)[-1]
    return Pair(last["i"], last["j"]), last["verdict"]
