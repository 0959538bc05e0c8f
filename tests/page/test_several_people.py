"""Several people at once: different questions, and a name with every answer."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from tests.page.correspondence import give_truth
from tests.page.person import Person
from tests.page.program import Program
from tests.page.rounds import careful_eye

PATIENCE_SECONDS = 40.0


def test_two_people_are_asked_different_questions_until_one_leaves(person, program, context):
    mine = person.look().pair
    other = Person(context.new_page())
    theirs = other.open(program.address).pair
    assert theirs != mine
    person.page.reload()
    assert person.look().pair == mine
    other.page.close()
    # The program hears of it when it writes to the closed page next.
    until = time.monotonic() + PATIENCE_SECONDS
    while (given_back := program.get("api/question?page=third"))["i"] != theirs.i or given_back["j"] != theirs.j:
        assert time.monotonic() < until, f"{theirs} is asked nobody"
        time.sleep(0.5)


def test_a_name_stands_with_every_answer_and_outlives_a_reload(person, program):
    person.press("o")
    person.see("tab-answers").click()
    person.see("person").fill("Ann Other")
    person.press("Enter", "o")
    answered = person.look().pair
    person.after(lambda: person.press("u"))
    row = next(row for row in program.get("api/answers") if (row["i"], row["j"]) == (answered.i, answered.j))
    assert row["person"] == "Ann Other"
    person.page.reload()
    person.look()
    person.press("o")
    person.see("tab-answers").click()
    expect(person.see("person")).to_have_value("Ann Other")
    shown = person.page.locator(f'[data-testid="answer-row"][data-i="{answered.i}"][data-j="{answered.j}"]')
    expect(shown).to_contain_text("Ann Other")


def test_known_pairs_are_asked_by_name_and_what_they_measure_is_shown_with_left_out_landmarks(page, folder):
    with Program(folder, "--known-share", "0.5") as program:
        program.wait_until_asking()
        answered = give_truth(program, careful_eye(), 4)  # by somebody without a name
        page.add_init_script("localStorage.setItem('smalti:person', 'Ann')")
        person = Person(page)
        person.open(program.address)
        for _ in range(8):
            person.after(lambda: person.press("u"))
            people = program.get("api/state")["people"]
            if people:
                break
        assert [(one["person"], one["known"], one["unsure"]) for one in people] == [("Ann", 0, 1)]
        expect(person.see("proposal")).to_have_class("matcher silent")
        person.go_to(next(pair for pair in answered if careful_eye().answer(pair).landmarks is not None))
        person.press("]")
        page.get_by_role("button", name="check only").click()
        expect(person.see("landmark").first).to_contain_text("check only")
        person.press("o")
        person.see("tab-answers").click()
        expect(person.see("people")).to_have_text("Ann: 0 of 0 known pairs answered right (and 1 “cannot tell”).")
