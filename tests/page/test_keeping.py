"""Nothing is lost: not by a reload, not by a restart, not by another tab, not by a server that is gone for a while."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.page.correspondence import give_truth, given, truth_on
from tests.page.person import Person
from tests.page.program import Program
from tests.page.rounds import careful_eye


def test_landmarks_that_are_not_confirmed_outlive_a_reload(person):
    pair = person.look().pair
    person.mark(careful_eye().answer(pair).landmarks)
    drawn = person.see("landmark").count()
    person.page.reload()
    assert person.look().pair == pair
    expect(person.see("landmark")).to_have_count(drawn)


def test_undo_and_redo_outlive_a_reload(person, program):
    give_truth(program, careful_eye(), 2)
    rows = given(program)
    for left in (rows[:-1], rows[:-2]):
        person.page.reload()
        person.answer("undo")
        assert given(program) == left
    person.page.reload()
    person.answer("redo")
    assert given(program) == rows[:-1]


def test_another_tab_shows_an_answer_without_being_asked(person, program, context):
    other = Person(context.new_page())
    before = other.open(program.address)
    person.after(lambda: person.press("n"))
    expect(other.see("question")).not_to_have_attribute("data-revision", str(before.revision))
    assert program.get("api/state")["revision"] == other.look().revision


def test_the_later_of_two_answers_on_a_pair_is_told_of_the_earlier(program, context):
    """The page of the later one has not heard of it: its events are held back, as by a slow network."""
    page = context.new_page()
    page.route("**/api/events?*", lambda route: route.abort())
    later = Person(page)
    seen = later.open(program.address)
    program.post("api/answers", truth_on(careful_eye(), seen.pair, seen.revision))
    later.press("n")
    expect(later.see("conflict")).to_be_visible()
    expect(later.see("conflict")).to_contain_text("yes, ")
    last = given(program)[-1]
    assert (last["i"], last["j"], last["verdict"]) == (seen.pair.i, seen.pair.j, "yes")


def test_what_is_being_drawn_survives_an_answer_from_another_tab(person, program):
    seen = person.look()
    person.mark(careful_eye().answer(seen.pair).landmarks)
    drawn = person.see("landmark").count()
    with person.page.expect_response("**/api/state"):
        program.post("api/answers", {"i": 3, "j": 13, "verdict": "no", "seen_revision": seen.revision})
    assert person.look().pair == seen.pair
    expect(person.see("landmark")).to_have_count(drawn)


def test_undo_and_redo_outlive_a_restart_of_the_program(page, folder):
    with Program(folder) as program:
        program.wait_until_asking()
        give_truth(program, careful_eye(), 2)
        rows, mosaic = given(program), program.get("api/mosaic")
        program.stop()
    with Program(folder) as program:
        program.wait_until_asking()
        person = Person(page)
        person.open(program.address)
        person.answer("undo")
        assert given(program) == rows[:-1]
        person.answer("redo")
        assert program.get("api/mosaic")["maps"] == mosaic["maps"]


def test_answers_before_and_while_the_program_is_killed_are_there_when_it_is_back(page, folder):
    with Program(folder) as program:
        program.wait_until_asking()
        person = Person(page)
        person.open(program.address)
        person.after(lambda: person.press("u"))
        rows, asked = given(program), person.look().pair
        program.kill()
        person.press("n")
        expect(person.see("saved")).not_to_contain_text("saved")
    port = program.address.rstrip("/").rsplit(":", 1)[1]
    with Program(folder, "--port", port) as program:
        program.wait_until_asking()
        person.wait_until_saved()
        *before, last = given(program)
        assert before == rows
        assert (last["i"], last["j"], last["verdict"]) == (asked.i, asked.j, "no")
