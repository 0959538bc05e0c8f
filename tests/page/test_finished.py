"""The last view: the finished mosaic over the whole window, to be looked at, compared, opened and taken away."""

from __future__ import annotations

import base64
import io
import re
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from playwright.sync_api import expect

from tests.page.axe import serious
from tests.page.conftest import SCREEN
from tests.page.correspondence import give_truth
from tests.page.person import PATIENCE_MS, Person
from tests.page.rounds import careful_eye

PIXEL = """([x, y]) => {
  const canvas = document.querySelector('[data-testid="finished-mosaic"]');
  const box = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio;
  const place = [Math.floor((x - box.left) * ratio), Math.floor((y - box.top) * ratio)];
  return [...canvas.getContext('2d').getImageData(...place, 1, 1).data];
}"""


@pytest.fixture(scope="module")
def finished(program):
    """The program after "stop here", and the folder of the project."""
    give_truth(program, careful_eye(), 3)
    return program, Path(program.get("api/state")["folder"])


@pytest.fixture
def viewer(page, finished):
    """Somebody before the finished mosaic."""
    person = Person(page)
    person.open(finished[0].address)
    if not finished[0].get("api/finished"):
        person.see("finish").click()
    else:
        person.see("show-finished").click()
    expect(person.see("finished")).to_be_visible(timeout=4 * PATIENCE_MS)
    complete(page)
    return person


def complete(page):
    """Wait until everything on the screen is there in full detail."""
    expect(page.get_by_test_id("finished-mosaic")).to_have_attribute("data-complete", "true", timeout=PATIENCE_MS)


def test_finishing_shows_the_mosaic_over_the_whole_window(viewer, keep_picture):
    box = viewer.see("finished").bounding_box()
    assert (box["width"], box["height"]) == (SCREEN["viewport"]["width"], SCREEN["viewport"]["height"])
    canvas = viewer.see("finished-mosaic").bounding_box()
    assert canvas["height"] > 0.6 * SCREEN["viewport"]["height"]
    expect(viewer.see("finished")).to_contain_text("with the chain alone")
    keep_picture(viewer.page, "finished-mosaic")


def test_at_full_resolution_the_pixels_are_those_of_the_file(viewer, finished, keep_picture):
    mosaic = cv2.cvtColor(cv2.imread(str(finished[1] / "mosaic.png"), cv2.IMREAD_UNCHANGED), cv2.COLOR_BGRA2RGBA)
    viewer.page.keyboard.press("1")
    expect(viewer.see("finished-status")).to_contain_text("100 %")
    complete(viewer.page)
    box = viewer.see("finished-mosaic").bounding_box()
    different = set()
    for across, down in [(0.3, 0.3), (0.5, 0.5), (0.62, 0.4), (0.45, 0.71)]:
        place = [box["x"] + int(across * box["width"]), box["y"] + int(down * box["height"])]
        viewer.page.mouse.move(*place)
        expect(viewer.see("finished-status")).to_contain_text("pixel")
        x, y = map(int, re.search(r"pixel (\d+), (\d+)", viewer.see("finished-status").inner_text()).groups())
        seen = viewer.page.evaluate(PIXEL, place)
        assert seen == mosaic[y, x].tolist()
        different.add(tuple(seen))
    assert len(different) > 1
    keep_picture(viewer.page, "finished-full-resolution")


def test_the_mosaic_by_the_chain_alone_is_beside_it(viewer, finished, keep_picture):
    now = picture(viewer)
    slider = viewer.see("before-slider")
    slider.fill("500")
    complete(viewer.page)
    both = picture(viewer)
    half = now.shape[1] // 2
    assert (both[:, half + 4 :] == now[:, half + 4 :]).all()
    assert (both[:, : half - 4] != now[:, : half - 4]).any(axis=2).mean() > 0.05
    keep_picture(viewer.page, "finished-before-and-after")
    handle = viewer.see("before-handle").bounding_box()
    viewer.page.mouse.move(handle["x"] + 20, handle["y"] + 10)
    viewer.page.mouse.down()
    viewer.page.mouse.move(handle["x"] - 300, handle["y"] + 10, steps=3)
    viewer.page.mouse.up()
    assert 0 < int(slider.input_value()) < 400
    slider.fill("0")
    viewer.see("finished-mosaic").focus()
    viewer.page.keyboard.down("b")
    complete(viewer.page)
    assert (picture(viewer) != now).any()
    viewer.page.keyboard.up("b")
    assert (picture(viewer) == now).all()


def picture(viewer: Person) -> np.ndarray:
    """Return the canvas as pixels (h, w, 4)."""
    viewer.page.wait_for_timeout(200)
    address = viewer.see("finished-mosaic").evaluate("canvas => canvas.toDataURL()")
    content = base64.b64decode(address.partition(",")[2])
    return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED).astype(int)


def test_the_report_opens_with_its_pictures_and_scripts(viewer, context):
    with context.expect_page() as opened:
        viewer.see("finished-report").click()
    report = opened.value
    problems = []
    report.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    report.reload()
    expect(report.get_by_text("Smalti report")).to_be_visible()
    assert report.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
    assert not problems


def test_the_finished_mosaic_can_be_taken_away_in_every_format(viewer, finished):
    mosaic = cv2.imread(str(finished[1] / "mosaic.png"), cv2.IMREAD_UNCHANGED)
    menu = viewer.see("finished-export")
    for name in ("mosaic.png", "mosaic.jpg", "mosaic.tif", "mosaic.dzi.zip", "mosaic.zarr.zip"):
        link = menu.locator(f'[data-export="{name}"]')
        if not link.is_visible():
            menu.locator("summary").click()
        with viewer.page.expect_download() as download:
            link.click()
        content = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == name
        if name.endswith(".zip"):
            inner = zipfile.ZipFile(io.BytesIO(content)).namelist()
            assert ("mosaic.dzi" in inner) if "dzi" in name else ("mosaic.zarr/.zattrs" in inner)
        elif name.endswith(".tif"):
            assert content[:2] in (b"II", b"MM")
        else:
            read = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
            assert read.shape[:2] == mosaic.shape[:2]


def test_the_folder_is_named_and_its_files_are_links(viewer, finished):
    assert viewer.see("finished-folder").inner_text() == str(finished[1])
    with viewer.page.expect_download() as download:
        viewer.see("finished").get_by_role("link", name="landmarks.csv").click()
    assert Path(download.value.path()).read_bytes() == (finished[1] / "landmarks.csv").read_bytes()


def test_escape_leads_back_to_the_question(viewer):
    viewer.page.keyboard.press("Escape")
    expect(viewer.see("finished")).to_be_hidden()
    expect(viewer.see("show-finished")).to_be_visible()


@pytest.mark.parametrize(
    ("name", "screen"),
    [
        ("dark", {"color_scheme": "dark"}),
        ("light", {"color_scheme": "light"}),
        ("phone", {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}),
    ],
)
def test_it_fits_every_screen(browser, viewer, finished, keep_picture, name, screen):
    with browser.new_context(**{**SCREEN, **screen}) as context:
        page = context.new_page()
        page.goto(finished[0].address)
        page.get_by_test_id("show-finished").click(timeout=PATIENCE_MS)
        complete(page)
        keep_picture(page, f"finished-{name}")
        assert page.get_by_test_id("finished").evaluate("one => one.scrollWidth <= innerWidth")
        canvas = page.get_by_test_id("finished-mosaic").bounding_box()
        assert canvas["height"] > 0.4 * page.viewport_size["height"]
        back = page.get_by_role("button", name="back").bounding_box()
        assert back["x"] + back["width"] <= page.viewport_size["width"]
        assert serious(page) == []
        page.get_by_test_id("finished-export").locator("summary").click()
        assert serious(page) == []
        keep_picture(page, f"finished-export-{name}")
