"""The first minute: three steps on the person's own frames, once, and not for those who do not want them."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import expect

from smalti.records import Landmarks
from tests.page.axe import serious
from tests.page.person import Person
from tests.page.program import Program
from tests.page.rounds import careful_eye


@pytest.fixture(scope="module")
def unanswered(prepared, tmp_path_factory):
    """A program that nobody has answered yet."""
    with Program(shutil.copytree(prepared, tmp_path_factory.mktemp("guide") / "rounds.smalti")) as running:
        running.wait_until_asking()
        yield running


def test_it_can_be_skipped_and_does_not_come_back(page, unanswered):
    person = Person(page)
    person.open(unanswered.address)
    expect(page.locator("#landmark-remark")).to_contain_text("Step 1 of 3")
    page.get_by_role("button", name="skip").click()
    expect(page.locator("#landmark-remark")).not_to_contain_text("Step")
    page.reload()
    person.look()
    expect(page.locator("#landmark-remark")).not_to_contain_text("Step")


def test_it_leads_to_the_first_answer_and_ends_there(page, unanswered, keep_picture):
    person = Person(page)
    pair = person.open(unanswered.address).pair
    true = careful_eye().exact_landmarks(pair)
    person.click("j", true.points_j[5])
    expect(page.locator("#landmark-remark")).to_contain_text("Step 2 of 3")
    person.press("Escape")
    person.mark(Landmarks(pair, true.points_i[5:6], true.points_j[5:6]))
    expect(page.locator("#landmark-remark")).to_contain_text("Step 3 of 3")
    keep_picture(page, "guide")
    assert serious(page) == []
    person.answer("confirm")
    expect(page.locator("#landmark-remark")).not_to_contain_text("Step")
