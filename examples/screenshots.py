"""Take the pictures of the page for the documentation.

    python examples/screenshots.py ../shared/data/caliterra/frames docs/images

The answers are the matcher's landmarks. tests/page writes the picture of a contradiction to test-artefacts/.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)
SEEN = "[data-testid=question][data-seen=true]"
"""A question that can be answered."""

CLICKED = 5
OFF_PX = 12
ANSWERED = 4


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the page that the documentation shows.")
    parser.add_argument("input", help="frames that overlap")
    parser.add_argument("output", type=Path, help="a folder for the pictures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "smalti.cli.main", "annotate", options.input, "-o", f"{folder}/site.smalti"]
        command += ["--max-size", "800", "--target-px", "3", "--no-browser", "-q"]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert program.stdout is not None
        try:
            take(program.stdout.readline().strip(), options.output)
        finally:
            program.terminate()
            program.wait()
            program.stdout.close()


def take(address: str, output: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 860})
        page.goto(address)
        page.wait_for_selector(SEEN, timeout=600_000)
        for _ in range(ANSWERED):
            page.wait_for_selector("[data-testid=proposal]")
            page.keyboard.press("a")
            confirm(page)
        lay_by_hand(page)
        page.screenshot(path=output / "annotate-by-hand.png")
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        click_landmarks(page)
        page.wait_for_timeout(1500)
        page.screenshot(path=output / "annotate-landmarks.png")
        page.keyboard.press("o")
        page.click("[data-testid=tab-maps]")
        page.wait_for_timeout(2500)
        page.screenshot(path=output / "annotate-maps.png")
        browser.close()


def lay_by_hand(page: Page) -> None:
    """Lay the later frame a little beside its place."""
    page.keyboard.press("h")
    for key in (*["ArrowRight"] * OFF_PX, "]", "]"):
        page.keyboard.press(key)
    page.wait_for_timeout(1500)


def click_landmarks(page: Page) -> None:
    """Click some of the matcher's landmarks in both frames."""
    question = page.get_by_test_id("question")
    i, j = question.get_attribute("data-i"), question.get_attribute("data-j")
    proposal = page.request.get(f"{page.url}api/pairs/{i}/{j}/proposal").json()
    for mark in proposal["landmarks"][:CLICKED]:
        page.keyboard.press("0")
        for side in ("i", "j"):
            page.wait_for_timeout(400)
            page.mouse.click(*place(page, side, mark[f"x_{side}"], mark[f"y_{side}"]))
    page.keyboard.press("0")


def place(page: Page, side: str, x: float, y: float) -> tuple[float, float]:
    """Return the position of a point of a frame on the screen."""
    frame = page.get_by_test_id(f"frame-{side}")
    a, b, c, d, e, f = (float(number) for number in (frame.get_attribute("data-screen-from-frame") or "").split(","))
    box = frame.bounding_box()
    assert box is not None
    return box["x"] + a * x + b * y + c, box["y"] + d * x + e * y + f


def confirm(page: Page) -> None:
    """Confirm, and wait for the next question."""
    before = page.get_by_test_id("question").get_attribute("data-revision")
    page.get_by_test_id("confirm").click()
    page.wait_for_function(
        "before => document.querySelector('[data-testid=question]').dataset.revision !== before", arg=before
    )
    page.wait_for_selector(SEEN)
    keep = page.get_by_test_id("contradiction-keep")
    if keep.is_visible():
        keep.click()


if __name__ == "__main__":
    main()
