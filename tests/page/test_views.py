"""Every view on screens of every kind; a picture of each is kept in test-artefacts/page, to be looked at."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.page.conftest import PICTURES_MS
from tests.page.correspondence import give_truth
from tests.page.person import Person
from tests.page.rounds import FRAMES, careful_eye

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
SCREENS = {
    "1280x720": {"viewport": {"width": 1280, "height": 720}},
    "1920x1080": {"viewport": {"width": 1920, "height": 1080}},
    "3840x2160": {"viewport": {"width": 3840, "height": 2160}},
    "dark": {"viewport": {"width": 1280, "height": 720}, "color_scheme": "dark"},
    "tablet": {"viewport": {"width": 820, "height": 1180}, "has_touch": True, "device_scale_factor": 2},
    "phone": PHONE,
    "phone-wide": {**PHONE, "viewport": {"width": 844, "height": 390}},
    "tablet-wide": {"viewport": {"width": 1180, "height": 820}, "has_touch": True, "device_scale_factor": 2},
}
ANSWERED = 4
SETTLING_SECONDS = 5.0
IS_ON_TOP = """(name) => {
  const element = document.querySelector(`[data-testid=${name}]`);
  const { left, top, width, height } = element.getBoundingClientRect();
  return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""


SMALL_CONTROLS = """() => [...document.querySelectorAll("button, a, select, summary, [role=tab], [role=radio]")]
  .filter((element) => element.checkVisibility({ visibilityProperty: true }))
  .map((element) => [element.innerText, element.getBoundingClientRect()])
  .filter(([, { width, height }]) => Math.min(width, height) < 43.5)
  .map(([words, { width, height }]) => `${words}: ${width} x ${height}`)"""


@pytest.fixture(scope="module")
def answered(program):
    """The pairs of some answers; tests of this file leave them as they are."""
    return give_truth(program, careful_eye(), ANSWERED)


@pytest.fixture(scope="module", params=SCREENS)
def screen(request):
    return request.param


@pytest.fixture(scope="module")
def onlooker(browser, screen, program, answered):
    with browser.new_context(**SCREENS[screen], reduced_motion="reduce") as context:
        person = Person(context.new_page())
        person.open(program.address)
        yield person


def test_frames_and_answers_are_in_sight_without_scrolling(onlooker, screen, keep_picture):
    expect(onlooker.see("prediction")).to_contain_text("90 % sure")
    keep_picture(onlooker.page, f"screen-{screen}")
    size = SCREENS[screen]["viewport"]
    names = ["verdict-yes", "verdict-no", "verdict-unsure", "saved", "asked"]
    if screen != "phone-wide":  # where the page scrolls, and the answers stay
        names += ["frame-i", "frame-j", "predicted-error"]
    if not screen.startswith("phone"):  # where the overview is opened first
        names += ["prediction", "prediction-sentence"]
    for name in names:
        box = onlooker.see(name).bounding_box()
        assert box is not None, f"{name} is not shown"
        assert 0 <= box["x"] <= size["width"] - box["width"], f"{name} is cut off"
        assert 0 <= box["y"] <= size["height"] - box["height"], f"{name} is beyond the edge"
    assert onlooker.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_whether_to_go_on_is_said_anew_after_an_answer_and_no_words_are_cut_off(onlooker, screen):
    if screen.startswith("phone"):
        pytest.skip("a telephone shows the prediction in the overview only")
    seen = onlooker.answer("verdict-no")
    for name in ("prediction", "prediction-sentence"):
        expect(onlooker.see(name)).not_to_have_class(re.compile("stale"))
        expect(onlooker.see(name)).to_contain_text(re.compile("would help|you can stop|contradict", re.IGNORECASE))
        assert onlooker.see(name).evaluate("element => element.scrollWidth <= element.clientWidth")
    assert onlooker.look() == seen
    onlooker.after(lambda: onlooker.press("z"))


def test_the_frames_have_most_of_the_window(onlooker, screen):
    size = SCREENS[screen]["viewport"]
    boxes = [onlooker.see(name).bounding_box() for name in ("frame-i", "frame-j")]
    share = sum(box["width"] * box["height"] for box in boxes) / (size["width"] * size["height"])
    assert share > 0.3


def test_answers_are_large_enough_to_hit(onlooker, screen):
    for name in ("verdict-yes", "verdict-no", "verdict-unsure"):
        box = onlooker.see(name).bounding_box()
        assert min(box["width"], box["height"]) >= 28


def test_all_controls_are_large_enough_for_a_finger(onlooker, screen):
    if not SCREENS[screen].get("has_touch"):
        pytest.skip("for fingers only")
    expect(onlooker.see("proposal")).to_contain_text("common points")
    onlooker.press("a")
    expect(onlooker.see("landmark").first).to_be_visible()
    for tab in (None, "answers"):
        if tab is not None:
            onlooker.press("o")
            onlooker.see(f"tab-{tab}").click()
        # A view that has just opened may still grow.
        until = time.monotonic() + SETTLING_SECONDS
        while (small := onlooker.page.evaluate(SMALL_CONTROLS)) and time.monotonic() < until:
            onlooker.page.wait_for_timeout(100)
        assert small == []
    onlooker.press("o", "z")


def test_a_screen_without_keys_speaks_of_none(onlooker, screen):
    if not SCREENS[screen].get("has_touch"):
        pytest.skip("for fingers only")
    assert onlooker.page.locator("kbd:visible").count() == 0
    words = onlooker.page.locator("body").inner_text()
    assert not re.search(r"\b(Enter|Esc|Space|press [A-Z]\b)", words), words


def test_text_is_larger_on_a_large_screen(browser, program):
    heights = {}
    for name in ("1280x720", "3840x2160"):
        with browser.new_context(**SCREENS[name]) as context:
            person = Person(context.new_page())
            person.open(program.address)
            heights[name] = person.see("verdict-no").bounding_box()["height"]
    assert heights["3840x2160"] > 1.2 * heights["1280x720"]


def test_dark_is_dark_and_light_is_light(browser, program):
    brightness = {}
    for scheme in ("dark", "light"):
        with browser.new_context(color_scheme=scheme) as context:
            person = Person(context.new_page())
            person.open(program.address)
            colour = person.page.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness[scheme] = np.mean([int(part) for part in colour.strip("rgba()").split(",")[:3]])
    assert brightness["dark"] < 60
    assert brightness["light"] > 200


def test_a_tap_in_each_frame_sets_a_landmark(browser, program):
    with browser.new_context(**SCREENS["tablet"]) as context:
        person = Person(context.new_page())
        pair = person.open(program.address).pair
        true = careful_eye().exact_landmarks(pair)
        for side, point in (("j", true.points_j[0]), ("i", true.points_i[0])):
            person.page.touchscreen.tap(*person.point_at(side, point))
        expect(person.see("landmark")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_mosaic_fills_the_window_and_gives_it_back(browser, program, answered, keep_picture, scheme):
    with browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme=scheme) as context:
        person = Person(context.new_page())
        person.open(program.address)
        small = person.see("mosaic").bounding_box()
        person.press("m")
        keep_picture(person.page, f"mosaic-{scheme}")
        large = person.see("mosaic").bounding_box()
        assert large["width"] * large["height"] > 2 * small["width"] * small["height"]
        person.press("m")
        expect(person.see("frame-i")).to_be_visible()


def test_a_place_of_the_mosaic_tells_its_frames_and_two_of_them_can_be_asked(person_at_work, program, keep_picture):
    person_at_work.press("m")
    # The mosaic is laid out anew as it grows: only then is it known where a frame is.
    person_at_work.page.wait_for_timeout(PICTURES_MS)
    person_at_work.page.mouse.click(*_place_in_mosaic(person_at_work, program, 5))
    here = person_at_work.see("frames-here").get_by_role("option")
    expect(here.filter(has_text="frame 5")).to_be_visible()
    keep_picture(person_at_work.page, "mosaic-frames-here")
    here.filter(has_text="frame 5").click()
    here.filter(has_text="frame 25").click()
    person_at_work.see("ask-pair").click()
    _expect_pair(person_at_work, 5, 25)


def test_the_uncertainty_tells_which_frames_depend_on_a_single_match(person_at_work, program, keep_picture):
    person_at_work.press("m")
    person_at_work.page.get_by_role("radio", name="Uncertainty").click()
    unconfirmed = program.get("api/mosaic")["confirmed"].count(False)
    told = person_at_work.see("unconfirmed")
    expect(told).to_have_count(1 if unconfirmed else 0)
    keep_picture(person_at_work.page, "mosaic-uncertainty")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_overview_shows_each_of_its_tabs(browser, program, answered, keep_picture, scheme):
    with browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme=scheme) as context:
        person = Person(context.new_page())
        person.open(program.address)
        person.press("o")
        expect(person.see("prediction-sentence")).to_contain_text("after 5, 10, 20 more answers")
        expect(person.page.locator(".errors .curve.ahead")).to_be_visible()
        for tab, shown in (("error", "overview"), ("maps", "map-overlap"), ("answers", "answers-table")):
            person.see(f"tab-{tab}").click()
            expect(person.see(shown)).to_be_visible()
            keep_picture(person.page, f"overview-{tab}-{scheme}")


def test_a_cell_of_each_map_opens_its_pair(person_at_work):
    for kind, i, j in (("overlap", 2, 30), ("informativeness", 4, 17), ("reward", 8, 33)):
        person_at_work.press("o")
        person_at_work.see("tab-maps").click()
        cells = person_at_work.see(f"map-{kind}")
        expect(cells).to_be_visible()
        # The maps get their places as they come: only then is it known where a cell is.
        person_at_work.page.wait_for_timeout(PICTURES_MS)
        box = cells.bounding_box()
        x, y = ((number + 0.5) / FRAMES for number in (j, i))
        cells.click(position={"x": x * box["width"], "y": y * box["height"]})
        _expect_pair(person_at_work, i, j)


def test_the_table_has_a_row_for_every_answer(person_at_work, answered):
    person_at_work.press("o")
    person_at_work.see("tab-answers").click()
    for pair in answered:
        expect(_row_of(person_at_work, pair)).to_be_visible()


def test_a_row_of_the_table_opens_its_pair_with_what_was_set(person_at_work, answered):
    person_at_work.press("o")
    person_at_work.see("tab-answers").click()
    _row_of(person_at_work, answered[1]).get_by_test_id("answer-open").click()
    _expect_pair(person_at_work, answered[1].i, answered[1].j)
    known = careful_eye().answer(answered[1]).landmarks
    expect(person_at_work.see("landmark")).to_have_count(len(known))


def test_a_removed_answer_is_gone_and_comes_back_by_undo(person_at_work, answered):
    person_at_work.press("o")
    person_at_work.see("tab-answers").click()
    row = _row_of(person_at_work, answered[2])
    row.get_by_test_id("answer-remove").click()
    expect(row).to_have_count(0)
    person_at_work.press("z")
    expect(row).to_be_visible()


def test_help_lies_over_the_page(person_at_work, keep_picture):
    person_at_work.press("?")
    expect(person_at_work.see("help")).to_be_visible()
    keep_picture(person_at_work.page, "help")


def test_every_export_comes_as_a_file(person_at_work, keep_picture):
    person_at_work.press("d")
    links = person_at_work.see("export-menu").get_by_role("link")
    expect(links).to_have_count(4)
    keep_picture(person_at_work.page, "export")
    names = set()
    for at in range(4):
        if not links.nth(at).is_visible():
            person_at_work.press("d")
        with person_at_work.page.expect_download() as download:
            links.nth(at).click()
        names.add(download.value.suggested_filename.rsplit(".", 1)[-1])
        assert download.value.path().stat().st_size > 100
    assert names == {"csv", "json", "png", "zip"}


@pytest.fixture
def person_at_work(page, program, answered):
    person = Person(page)
    person.open(program.address)
    return person


def _row_of(person, pair):
    return person.page.locator(f"[data-testid=answer-row][data-i='{pair.i}'][data-j='{pair.j}']")


def _expect_pair(person, i, j):
    expect(person.see("question")).to_have_attribute("data-i", str(i))
    expect(person.see("question")).to_have_attribute("data-j", str(j))
    # In sight, not behind the large mosaic or overview from which it was asked for.
    person.page.wait_for_function(IS_ON_TOP, arg="frame-i")


def _place_in_mosaic(person, program, number):
    """Return where on the screen the middle of a frame is in the mosaic."""
    mosaic = program.get("api/mosaic")
    maps = np.array(mosaic["maps"]).reshape(-1, 3, 3)
    at = maps[mosaic["numbers"].index(number)] @ [159.5, 119.5, 1.0]
    host = person.see("mosaic")
    screen = np.array([float(part) for part in host.get_attribute("data-screen-from-mosaic").split(",")]).reshape(2, 3)
    box = host.bounding_box()
    x, y = screen @ (at / at[2])
    return box["x"] + x, box["y"] + y
