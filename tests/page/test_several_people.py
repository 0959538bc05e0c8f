"""Several people at once: different questions, and a name with every answer."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from tests.page.person import Person

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
