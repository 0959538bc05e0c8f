"""A browser, and a project that is prepared once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.page.person import Person
from tests.page.program import Program
from tests.page.rounds import write_rounds

ARTEFACTS = Path(__file__).parents[2] / "test-artefacts" / "page"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)
PICTURES_MS = 600
"""Until small pictures have come and the pane has come to rest."""

SCREEN = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce"}


@pytest.fixture(scope="module")
def browser():
    """Chromium; of a module, because its driver keeps an event loop that tests of other modules must not meet."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on PATH: `make test` installs it as root; Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def context(browser):
    with browser.new_context(**SCREEN) as opened:
        yield opened


@pytest.fixture
def page(context):
    return context.new_page()


@pytest.fixture(scope="session")
def film(tmp_path_factory):
    return write_rounds(tmp_path_factory.mktemp("film"))


@pytest.fixture(scope="session")
def prepared(film, tmp_path_factory):
    """The folder of a project about which nothing has been asked yet, and whose chain drifts: by keypoints."""
    folder = tmp_path_factory.mktemp("prepared") / "rounds.smalti"
    with Program(film, "-o", folder, "--registration", "keypoints") as program:
        program.wait_until_asking()
        program.stop()
    return folder


@pytest.fixture
def folder(prepared, tmp_path):
    """A copy of it for one test alone."""
    return Path(shutil.copytree(prepared, tmp_path / "rounds.smalti"))


@pytest.fixture(scope="module")
def program(prepared, tmp_path_factory):
    """A program for all tests of a module, since to start one takes seconds: each finds what others have answered."""
    with Program(shutil.copytree(prepared, tmp_path_factory.mktemp("shared") / "rounds.smalti")) as running:
        running.wait_until_asking()
        yield running


@pytest.fixture
def person(page, program):
    """Somebody before a question."""
    somebody = Person(page)
    somebody.open(program.address)
    return somebody


@pytest.fixture(scope="session")
def keep_picture():
    """Return what keeps a picture of the page among the artefacts, to be looked at."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)

    def keep(page, name):
        page.wait_for_timeout(PICTURES_MS)
        page.screenshot(path=ARTEFACTS / f"{name}.png")

    return keep
