from __future__ import annotations

import re

import numpy as np
import pytest

from smalti.project.entries import Role
from smalti.rendering.canvas import Canvas
from smalti.report.findings import Findings
from smalti.report.frame_sections import _nice_length, rotation_and_scale
from smalti.report.markup import (
    count,
    draw_dots,
    draw_lines,
    draw_outlines,
    say_number,
    say_px,
    say_ranges,
    say_seconds,
)
from smalti.report.mosaic_section import draw_overlay
from smalti.report.report_pictures import FEWEST_BYTES, FEWEST_MAPS, Share, encode_preview, share_page
from tests.rendering.scene import shift, tilt, turn
from tests.report.projects import Plan, make_project, reject, report_of


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with make_project(tmp_path_factory.mktemp("drawn"), reject(Plan(), 1, 4, Role.LOOP)) as project:
        yield report_of(project)


def course(drawing, kind):
    (path,) = [path for path in drawing.all("path") if path.attributes["class"] == kind]
    return path.attributes["d"]


def test_the_overlay_has_frames_path_and_links_in_pixels_of_the_canvas(page):
    overlay = page.root.one("div", class_="stage").one("svg")
    assert overlay.attributes["viewbox"] == "-0.5 -0.5 165 40"
    assert course(overlay, "outline").startswith("M-0.5 -0.5L59.5 -0.5L59.5 39.5L-0.5 39.5ZM20.5 -0.5L")
    assert course(overlay, "outline").count("Z") == 6
    assert course(overlay, "way").startswith("M29.5 19.5L50.5 19.5M50.5 19.5L71.5 19.5")
    assert course(overlay, "rejected") == "M50.5 19.5L113.5 19.5"
    assert course(overlay, "link").count("M") == 7


def test_the_overlay_follows_the_canvas_wherever_it_begins(tmp_path):
    with make_project(tmp_path) as project:
        findings = Findings.of(project)
    drawn = draw_overlay(findings, findings.parts[0], Canvas(-10.0, -5.0, 200, 80))
    assert 'd="M9.5 4.5L69.5 4.5L69.5 44.5L9.5 44.5Z' in drawn
    assert 'd="M39.5 24.5L60.5 24.5M' in drawn


def test_a_link_of_the_chain_that_was_rejected_is_drawn_over_the_path(tmp_path):
    plan = Plan(yes=[(n, n + 1, Role.CHAIN) for n in (0, 1, 3, 4)])
    with make_project(tmp_path, reject(plan, 2, 3, Role.CHAIN)) as project:
        page = report_of(project)
    for drawing in (page.part("drift").all("svg")[1], page.root.one("div", class_="stage").one("svg")):
        kinds = [path.attributes["class"] for path in drawing.all("path")]
        assert kinds.index("rejected") > kinds.index("way")


def test_each_switch_shows_what_it_names(page):
    figure = page.root.one("figure", class_="mosaic")
    labels = figure.one("fieldset", class_="switches checkbox").all("label")
    assert [label.one("input").attributes["class"] for label in labels] == ["show-outlines", "show-path", "show-links"]
    assert [label.text for label in labels] == ["Outlines of the frames", "Path of the camera", "Links"]
    assert not any("checked" in label.one("input").attributes for label in labels)
    for kind in ("outlines", "path", "links"):
        assert f".mosaic:has(.show-{kind}:checked) .{kind}" in page.root.one("style").text
        assert figure.one("g", class_=kind)


def test_drift_shows_the_chain_and_the_end_at_one_scale(page):
    before, after = page.part("drift").all("svg")
    assert before.attributes["viewbox"] == after.attributes["viewbox"]
    assert course(before, "way").endswith("L134.5 39.5")  # 4 px of drift a frame
    assert course(after, "way").endswith("L134.5 19.5")
    assert course(before, "reference dot") == course(after, "reference dot") == "M29.5 19.5h.01"


def test_drift_draws_loops_at_the_end_only_and_rejected_ones_apart(page):
    before, after = page.part("drift").all("svg")
    assert {path.attributes["class"] for path in before.all("path")} == {"way", "way dot", "reference dot", "bar"}
    assert course(after, "loop") == "M29.5 19.5L134.5 19.5"
    assert course(after, "rejected") == "M50.5 19.5L113.5 19.5"


def test_drift_tells_how_far_the_frames_moved(page):
    # By 0, 4, 8, 12, 16 and 20 px.
    assert (
        "moved the frames by 12.1 px (RMS). Frame 5 moved most: 20.0 px. Frame 0 stays fixed."
        in page.part("drift").text
    )


def test_no_path_leads_over_frames_of_another_mosaic(tmp_path):
    plan = Plan(parts=[0, 0, 1, 1, 0, None], yes=[(0, 1, Role.CHAIN), (2, 3, Role.CHAIN), (1, 4, Role.LOOP)])
    with make_project(tmp_path, plan) as project:
        first, second = report_of(project).root.all("div", class_="stage")
    assert course(first.one("svg"), "way").count("M") == 1
    assert course(second.one("svg"), "way").count("M") == 1


def test_a_camera_that_stood_still_can_be_drawn(tmp_path):
    with make_project(tmp_path) as project:
        placements = [type(place)(place.number, 0, np.eye(3), np.eye(3), 0.0) for place in project.placements]
        project.store.keep_result(placements, project.links, project.outcome)
        drawing = report_of(project).part("drift").all("svg")[0]
    left, top, width, height = map(float, drawing.attributes["viewbox"].split())
    assert left < 29.5 < left + width
    assert top < 19.5 < top + height


def test_rotation_and_scale_are_those_of_the_map_at_the_centre():
    centre = np.array([29.5, 19.5])
    angle, scale = rotation_and_scale(shift(500, -30) @ turn(33, 1.25), centre)
    assert (angle, scale) == (pytest.approx(33), pytest.approx(1.25))
    bent = shift(*centre) @ tilt(0.002, -0.001) @ turn(-120, 0.5) @ shift(*-centre)
    angle, scale = rotation_and_scale(bent, centre)  # the tilt acts about the centre, where it changes nothing
    assert (angle, scale) == (pytest.approx(-120), pytest.approx(0.5))
    away, _ = rotation_and_scale(bent, centre + 20)
    assert abs(away + 120) > 0.1


def test_a_picture_that_is_too_large_gets_worse_and_smaller_until_it_fits():
    noise = np.random.default_rng(1).integers(0, 256, (300, 400, 4), dtype=np.uint8)
    noise[..., 3] = 255
    best, small = encode_preview(noise, 10**7), encode_preview(noise, 8000)
    assert len(best) > 60_000
    assert len(small) < 8000 * 4 / 3 + 40


def test_the_page_is_shared_by_frames_with_a_floor():
    large, small, least = share_page([400, 200, 1])
    assert large.preview_bytes == pytest.approx(2 * small.preview_bytes, abs=2)
    assert large.map_characters == pytest.approx(2 * small.map_characters, abs=2)
    assert large.preview_bytes + small.preview_bytes <= 1_400_000
    assert least == Share(FEWEST_BYTES, FEWEST_MAPS)


def test_strokes_are_short_and_empty_ones_are_left_out():
    assert draw_lines(np.array([[[0.0, 1.04], [2.26, -3.0]]]), "k") == '<path d="M0 1L2.3 -3" class="k"></path>'
    assert draw_dots(np.array([[0.0, 1.0]]), "k") == '<path d="M0 1h.01" class="k dot"></path>'
    assert draw_outlines(np.zeros((0, 4, 2)), "k") == ""


def test_a_bar_of_scale_has_a_round_length():
    assert [_nice_length(about) for about in (0.7, 1.0, 19.0, 99.0, 100.0, 4321.0)] == [0.5, 1, 10, 50, 100, 2000]


def test_numbers_are_told_as_people_write_them():
    assert [say_px(value) for value in (0.554, 9.996, 26.845, 99.96, 1234.4, None, np.inf)] == (
        ["0.55 px", "10.0 px", "26.8 px", "100 px", "1234 px", "–", "–"]
    )
    assert [say_number(value, 2) for value in (-0.001, 1.0, np.nan)] == ["0.00", "1.00", "–"]
    assert [say_seconds(value) for value in (0.04, 99.94, 125.0, 7200.0)] == ["0.0 s", "99.9 s", "2 min", "2 h 00 min"]
    assert say_ranges([7, 0, 4, 5, 6, 9, 10]) == "0, 4–7, 9, 10"
    assert (count(1, "frame"), count(2, "frame"), count(0, "answer was", "answers were")) == (
        "1 frame",
        "2 frames",
        "0 answers were",
    )


def test_colours_are_set_for_a_light_and_a_dark_scheme(page):
    style = page.root.one("style").text
    used = set(re.findall(r"var\((--[\w-]+)\)", style))
    light, dark = re.findall(r":root \{([^}]*)\}", style)[:2]
    assert "prefers-color-scheme: dark" in style
    for colours in (light, dark):
        assert used <= set(re.findall(r"(--[\w-]+):", colours))
