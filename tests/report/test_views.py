"""What can be shown of a mosaic, and read from it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest

from smalti.project.entries import Role
from smalti.project.uncertainty import Uncertainty
from smalti.report.report_pictures import MOST_PICTURES, STEPS
from tests.report.projects import HEIGHT, STEP, Plan, make_project, report_of
from tests.report.test_maps import decode

KINDS = ["uncertainty", "source", "coverage"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with make_project(tmp_path_factory.mktemp("views")) as project:
        yield project


@pytest.fixture(scope="module")
def page(project):
    return report_of(project)


def test_one_of_four_views_is_chosen_and_the_picture_first(page):
    figure = page.root.one("figure", class_="mosaic")
    choices = figure.one("fieldset", class_="switches radio").all("label")
    assert [choice.text for choice in choices] == ["Picture", "± px", "Frames", "Coverage"]
    switches = [choice.one("input", type="radio", name_="view-0") for choice in choices]
    assert [switch.attributes["class"] for switch in switches] == [f"show-{kind}" for kind in ("picture", *KINDS)]
    assert ["checked" in switch.attributes for switch in switches] == [True, False, False, False]


def test_a_choice_shows_its_map_over_the_picture_and_its_meaning_below(page):
    figure, style = page.root.one("figure", class_="mosaic"), page.root.one("style").text
    stage = [child for child in figure.one("div", class_="stage").children if child.name == "img"]
    assert [tag.attributes["class"] for tag in stage] == [f"map {kind}" for kind in KINDS]
    for kind in KINDS:
        assert f".mosaic:has(.show-{kind}:checked) .{kind}" in style
        assert figure.one("div", class_=f"meaning {kind}").text
    assert ".stage .map, .meaning { display: none; }" in style


def test_every_mosaic_has_switches_of_its_own(tmp_path):
    plan = Plan(parts=[0, 0, 0, 1, 1, 1], yes=[(n, n + 1, Role.CHAIN) for n in (0, 1, 3, 4)])
    with make_project(tmp_path, plan) as project:
        figures = report_of(project).root.all("figure", class_="mosaic")
    groups = [{switch.attributes["name"] for switch in figure.all("input", type="radio")} for figure in figures]
    assert groups == [{"view-0"}, {"view-1"}]
    assert ["frame 0." in figures[0].text, "frame 3." in figures[1].text] == [True, True]


def test_the_map_of_uncertainty_tells_that_of_the_project(project, page):
    image = page.root.one("img", class_="map uncertainty")
    indices = np.asarray(decode(image.attributes["src"]))
    assert indices.shape == (40, 165)
    top = float(image.attributes["data-top"])
    known = Uncertainty.of(project)
    assert image.attributes["data-frame"] == str(known.relative_to) == "0"
    numbers = np.array(page.root.one("img", class_="map source").attributes["data-frames"].split(), dtype=int)
    colours = np.asarray(decode(page.root.one("img", class_="map source").attributes["src"]))
    taken_from = numbers[(colours & 31) @ np.array([1024, 32, 1]) - 1]
    for x, y in ((3, 7), (80, 20), (160, 38)):
        frame = int(taken_from[y, x])
        (expected,) = known.at(frame, np.array([[x - STEP * frame, y]]))
        told = top * ((int(indices[y, x]) - 1) / (STEPS - 1)) ** 2
        assert told == pytest.approx(min(expected, top), abs=1.1 * top / STEPS)


def test_maps_of_many_mosaics_take_at_most_400_kb(tmp_path):
    plan = Plan(
        names=[f"{n}.jpg" for n in range(2 * MOST_PICTURES)],
        parts=[n // 2 for n in range(2 * MOST_PICTURES)],
        yes=[(2 * n, 2 * n + 1, Role.CHAIN) for n in range(MOST_PICTURES)],
    )
    with make_project(tmp_path, plan) as project:
        page = report_of(project)
    maps = [image for image in page.part("mosaic").all("img") if "map" in image.attributes.get("class", "")]
    assert len(maps) == 3 * MOST_PICTURES
    assert sum(len(image.attributes["src"]) for image in maps) < 400_000


BROWSER = """
const window = globalThis;
class Part {
  constructor() { this.on = {}; }
  addEventListener(name, act) { this.on[name] = act; }
  getBoundingClientRect() { return { left: 10, top: 20, width: 330, height: 80 }; }
}
const stage = new Part(), reading = { hidden: true };
const figure = {
  querySelectorAll: () => IMAGES.map(({ src, kind, dataset }) => ({ src, dataset, classList: ["map", kind] })),
  querySelector: (name) => (name === ".stage" ? stage : reading),
};
const document = { querySelectorAll: () => [figure] };
"""

POINTING = """
(async () => {
  const said = [[reading.hidden, reading.textContent]];
  for (const [clientX, clientY] of POINTS) {
    await stage.on.pointermove({ clientX, clientY });
    said.push(reading.textContent);
  }
  stage.on.pointerleave();
  said.push(reading.textContent);
  console.log(JSON.stringify(said));
})();
"""


def read_places(images: list[dict], places: list[tuple[float, float]]) -> list:
    """Run the page's script on maps, point at places (from 0 to 1), and return what it says."""
    script = files("smalti.report").joinpath("reading.js").read_text(encoding="utf-8").removeprefix('"use strict";')
    points = [(10 + 330 * x, 20 + 80 * y) for x, y in places]
    code = f"const IMAGES = {json.dumps(images)}, POINTS = {json.dumps(points)};" + BROWSER + script + POINTING
    run = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node to run the page's script")
def test_pointing_at_a_place_tells_what_the_maps_say_of_it(project, page):
    images = [
        {
            "kind": kind,
            "src": page.root.one("img", class_=f"map {kind}").attributes["src"],
            "dataset": {
                name.removeprefix("data-"): value or ""
                for name, value in page.root.one("img", class_=f"map {kind}").attributes.items()
                if name.startswith("data-")
            },
        }
        for kind in KINDS
    ]
    first, *said, last = read_places(images, [(3.5 / 165, 7.5 / 40), (80.5 / 165, 20.5 / 40), (1.5, 0.5)])
    assert first == [False, last]
    assert last.startswith("Point at a place of the mosaic")
    known = Uncertainty.of(project)
    for place, (x, y) in zip(said, ((3, 7), (80, 20)), strict=False):
        deviation, relative_to, frame, seen = re.fullmatch(
            r"± ([\d.]+) px(?: or more)? relative to frame (\d+) · taken from frame (\d+) · seen in (\d+) frames?",
            place,
        ).groups()
        (expected,) = known.at(int(frame), np.array([[x - STEP * int(frame), y]]))
        assert float(deviation) == pytest.approx(expected, rel=0.05, abs=0.01)
        assert relative_to == "0"
        # Frames are 60 px wide and 21 px apart.
        assert int(seen) == sum(-0.5 < x - STEP * n < 59.5 for n in range(6))
    assert said[2] == "No frame shows this place."
    assert HEIGHT == 40
