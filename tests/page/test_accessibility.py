"""axe-core finds nothing serious in any view, light or dark, on a desk and on a telephone."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from smalti.records import Landmarks, Pair
from tests.page.axe import serious
from tests.page.correspondence import give_truth
from tests.page.person import Person
from tests.page.rounds import careful_eye
from tests.page.test_views import PHONE

WRONG = Pair(3, 23)
"""A round apart: these two frames share nearly everything."""

WRONG_BY_PX = 60.0
SCREENS = {
    "light": {"viewport": {"width": 1280, "height": 720}},
    "dark": {"viewport": {"width": 1280, "height": 720}, "color_scheme": "dark"},
    "phone": PHONE,
}


@pytest.fixture(scope="module")
def answered(program):
    return give_truth(program, careful_eye(), 2)


@pytest.fixture(scope="module", params=SCREENS)
def visitor(request, browser, program, answered):
    with browser.new_context(**SCREENS[request.param], reduced_motion="reduce") as context:
        person = Person(context.new_page())
        person.open(program.address)
        yield person


def test_a_question_with_landmarks(visitor):
    expect(visitor.see("proposal")).to_contain_text("common points")
    visitor.press("a")
    expect(visitor.see("landmark").first).to_be_visible()
    assert serious(visitor.page) == []
    visitor.press("z")


def test_a_comparison(visitor):
    visitor.press("v", "v")
    expect(visitor.see("overlay")).to_be_visible()
    assert serious(visitor.page) == []
    visitor.press("v", "v")


def test_the_reasons(visitor):
    visitor.see("reasons").get_by_text("why?").click()
    assert serious(visitor.page) == []
    visitor.press("Escape")


def test_the_light_of_the_frames(visitor):
    visitor.page.locator("summary", has_text="light").click()
    assert serious(visitor.page) == []
    visitor.page.locator("summary", has_text="light").click()


def test_one_frame_laid_over_the_other(visitor):
    visitor.press("h")
    expect(visitor.see("laying")).to_be_visible()
    assert serious(visitor.page) == []
    visitor.press("Escape")


@pytest.mark.parametrize(("key", "name"), [("?", "help"), ("d", "export-menu"), ("g", None)])
def test_what_lies_over_the_page(visitor, key, name):
    visitor.press(key)
    if name is not None:
        expect(visitor.see(name)).to_be_visible()
    assert serious(visitor.page) == []
    visitor.press("Escape")


@pytest.mark.parametrize("mode", ["Picture", "Uncertainty", "Answers"])
def test_the_mosaic(visitor, mode):
    visitor.press("m")
    visitor.page.get_by_role("radio", name=mode).click()
    assert serious(visitor.page) == []
    visitor.press("m")


@pytest.mark.parametrize("tab", ["error", "maps", "answers"])
def test_the_overview(visitor, tab):
    visitor.press("o")
    visitor.see(f"tab-{tab}").click()
    visitor.page.wait_for_timeout(300)
    assert serious(visitor.page) == []
    visitor.press("o")


def test_an_answer_that_contradicts_the_others(visitor, keep_picture):
    visitor.go_to(WRONG)
    true = careful_eye().exact_landmarks(WRONG)
    wrong = Landmarks(WRONG, true.points_i[5:7] + np.array([WRONG_BY_PX, 0.0]), true.points_j[5:7])
    visitor.mark(wrong)
    visitor.after(lambda: visitor.press("Enter"))
    expect(visitor.see("contradiction")).to_be_visible()
    width = visitor.page.viewport_size["width"]
    scheme = "dark" if visitor.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    keep_picture(visitor.page, f"contradiction-{width}-{scheme}")
    assert serious(visitor.page) == []
    visitor.after(lambda: visitor.see("contradiction").get_by_role("button", name="undo").click())
