"""The pose that is shown is that of mosaic and landmarks together: a wrong click is told and moves nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import expect

from smalti.records import Landmarks, Pair
from tests.page.rounds import careful_eye

PAIR = Pair(1, 21)
WRONG_BY_PX = 60.0


@pytest.fixture
def at_pair(person):
    """Somebody before two frames that share nearly everything."""
    person.go_to(PAIR)
    person.wipe()
    return person


def some(count):
    """Return landmarks far apart, where they are."""
    known = careful_eye().exact_landmarks(PAIR)
    corners = [np.argmin(np.abs(known.points_j - corner).sum(axis=1)) for corner in CORNERS[:count]]
    return Landmarks(PAIR, known.points_i[corners], known.points_j[corners])


CORNERS = np.array([[90.0, 70.0], [230.0, 70.0], [90.0, 180.0], [230.0, 180.0]])


def drawn(page):
    """Return the landmarks that are not confirmed yet, as the browser keeps them."""
    kept = page.evaluate(f"""() => Object.entries(localStorage)
        .find(([key]) => key.startsWith("smalti:draft:") && key.endsWith(":{PAIR.i}:{PAIR.j}"))[1]""")
    return json.loads(kept)["landmarks"]


def test_a_third_landmark_at_its_expected_place_moves_nothing(at_pair):
    at_pair.mark(some(2))
    before = {side: at_pair.screen_from_frame(side) for side in "ij"}
    at_pair.click("j", some(3).points_j[2])
    at_pair.press("Space")
    expect(at_pair.see("landmark")).to_have_count(3)
    corners = np.array([[0.0, 0.0, 1.0], [319.0, 0.0, 1.0], [0.0, 239.0, 1.0], [319.0, 239.0, 1.0]])
    for side in "ij":
        moved = corners @ (at_pair.screen_from_frame(side) - before[side]).T
        assert np.abs(moved).max() < 1.0, f"frame {side} jumped"


def test_a_wrong_third_landmark_leaves_the_fourth_near_its_place(at_pair):
    known = some(4)
    off = known.points_i.copy()
    off[2] += [WRONG_BY_PX, -WRONG_BY_PX]
    at_pair.mark(Landmarks(PAIR, off[:3], known.points_j[:3]))
    expect(at_pair.see("landmark").nth(2)).to_have_attribute("data-tone", "bad")
    at_pair.click("j", known.points_j[3])
    at_pair.press("Space")
    expect(at_pair.see("landmark")).to_have_count(4)
    fourth = drawn(at_pair.page)[3]
    assert np.hypot(fourth["x_i"] - known.points_i[3, 0], fourth["y_i"] - known.points_i[3, 1]) < WRONG_BY_PX / 4


def test_a_single_landmark_is_not_called_good_where_nothing_checks_it(at_pair):
    at_pair.mark(some(1))
    expect(at_pair.see("landmark")).to_have_attribute("data-tone", "unchecked")


def test_the_page_says_what_one_more_landmark_would_bring(at_pair):
    at_pair.page.get_by_role("button", name="skip").click()
    at_pair.mark(some(1))
    expect(at_pair.page.locator("#landmark-remark")).to_contain_text("One more landmark")
    expect(at_pair.see("predicted-error")).to_contain_text("px")
