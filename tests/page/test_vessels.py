"""Vessels are drawn along in both frames: found, told what they determine, and confirmed like landmarks."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from smalti.geometry.homographies import apply_map
from smalti.records import Pair
from smalti_lab.synthetic.synthetic_files import write_frames
from tests.page.person import Person
from tests.page.program import Program
from tests.vessels import HAND_PX, bare_place, true_map, vessel_walk, vessels_in

PAIR = next(pair for i in range(10) for j in range(i + 3, 10) for pair in (Pair(i, j),) if len(vessels_in(pair)) >= 2)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program about tissue that has vessels and no corners."""
    folder = tmp_path_factory.mktemp("vessels")
    write_frames(vessel_walk(), folder / "walk", ".png")
    with Program(folder / "walk", "-o", folder / "walk.smalti", "--registration", "keypoints") as running:
        running.wait_until_asking()
        yield running


@pytest.fixture
def drawing(page, program):
    """Somebody who is about to draw along a vessel."""
    person = Person(page)
    person.open(program.address)
    person.go_to(PAIR)
    person.wipe()
    person.press("k")
    expect(person.see("drawing-vessel")).to_be_visible()
    return person


def stroke(line, seed):
    """A line as a quick hand draws it: off by 3 px, which wander along it."""
    corners = line[:: max(1, len(line) // 9)]
    return corners + np.random.default_rng(seed).normal(0, HAND_PX, corners.shape)


def drag(person, side, line):
    places = [person.point_at(side, point) for point in line]
    mouse = person.page.mouse
    mouse.move(*places[0])
    mouse.down()
    for place in places[1:]:
        mouse.move(*place, steps=3)
    mouse.up()


def kept_landmarks(person):
    kept = person.page.evaluate(f"""() => Object.entries(localStorage)
        .find(([key]) => key.startsWith("smalti:draft:") && key.endsWith(":{PAIR.i}:{PAIR.j}"))?.[1] ?? null""")
    return [] if kept is None else json.loads(kept)["landmarks"]


def test_two_vessels_are_found_reloaded_and_confirmed(drawing, keep_picture):
    (first_i, first_j), (_, second_j) = vessels_in(PAIR)[:2]
    drag(drawing, "j", stroke(first_j, 1))
    keep_picture(drawing.page, "vessel-stroke")
    drag(drawing, "i", stroke(first_i, 2))
    expect(drawing.see("landmark")).to_have_count(1)
    expect(drawing.see("drawing-vessel")).to_be_hidden()
    expect(drawing.page.get_by_text(re.compile(r"Across the vessel ± .* px, along it ± .* px")).first).to_be_visible()
    # The second one by clicks from bend to bend, and where the page expects it in the other frame.
    drawing.press("k")
    for corner in stroke(second_j, 3):
        drawing.click("j", corner)
    drawing.press("Enter")
    expect(drawing.see("landmark")).to_have_count(2)
    drawn = kept_landmarks(drawing)
    assert {one["origin"] for one in drawn} == {"traced"}
    points_i, points_j = (np.array([(one[f"x_{side}"], one[f"y_{side}"]) for one in drawn]) for side in "ij")
    angles = np.radians([one["along_deg"] for one in drawn])
    off = apply_map(true_map(PAIR), points_j) - points_i
    assert np.sqrt(np.mean((off[:, 1] * np.cos(angles) - off[:, 0] * np.sin(angles)) ** 2)) < 0.8
    drawing.page.reload()
    drawing.look()
    drawing.go_to(PAIR)
    expect(drawing.see("landmark")).to_have_count(2)
    keep_picture(drawing.page, "vessels")
    # Undo takes a whole vessel, and redo brings it back.
    drawing.press("[", "x")
    expect(drawing.see("landmark")).to_have_count(1)
    drawing.press("z")
    expect(drawing.see("landmark")).to_have_count(2)
    drawing.after(lambda: drawing.press("Enter"))
    # The answer reopened shows the vessels again.
    drawing.go_to(PAIR)
    expect(drawing.see("landmark")).to_have_count(2)


def test_on_bare_tissue_the_page_says_so_and_moves_nothing(drawing):
    bare = bare_place(PAIR) + np.array([[-3.0, -18.0], [2.0, -6.0], [-1.0, 6.0], [3.0, 18.0]])
    drag(drawing, "i", bare)
    drawing.press("Enter")
    expect(drawing.page.get_by_text("Nothing moved:").first).to_be_visible()
    expect(drawing.see("landmark")).to_have_count(0)


def test_undo_takes_a_stroke_and_escape_leaves_everything_as_it_was(drawing):
    drag(drawing, "i", stroke(vessels_in(PAIR)[0][0], 4))
    expect(drawing.page.get_by_text("Now draw along the same vessel").first).to_be_visible()
    drawing.press("z")
    expect(drawing.see("find-vessel")).to_be_disabled()
    drawing.press("Escape")
    expect(drawing.see("drawing-vessel")).to_be_hidden()
    expect(drawing.see("landmark")).to_have_count(0)
    assert drawing.look().pair == PAIR
