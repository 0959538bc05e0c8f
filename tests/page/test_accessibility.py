"""axe-core finds nothing serious in any view, light or dark, on a desk and on a telephone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.page.correspondence import give_truth
from tests.page.person import Person
from tests.page.rounds import careful_eye
from tests.page.test_views import PHONE

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = {"serious", "critical"}
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
    if not AXE.is_file():
        pytest.skip(f"{AXE}: not installed; `make page` installs it")
    with browser.new_context(**SCREENS[request.param], reduced_motion="reduce") as context:
        person = Person(context.new_page())
        person.open(program.address)
        person.page.evaluate(AXE.read_text())
        yield person


def serious(page):
    """Return what axe-core calls serious or worse, a line each."""
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['html'][:160]}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]


def test_a_question_with_landmarks(visitor):
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
