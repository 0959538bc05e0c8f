"""The page minds the field of view of a scope, and shows what is faint."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from playwright.sync_api import expect

from tests.page.person import Person
from tests.page.rounds import HEIGHT, WIDTH

RADIUS = 80.0
PARTS = ("blink", "swipe", "difference")


@pytest.fixture
def at_scope(page, program):
    """A page whose frames show the scene in a disc, and something bright and wrong around it."""
    state = program.get("api/state")
    sheets = state["sheets"]
    scale = sheets["width"] / WIDTH
    mask = np.zeros((sheets["height"], sheets["width"]), np.uint8)
    centre = (round(scale * WIDTH / 2), round(scale * HEIGHT / 2))
    cv2.circle(mask, centre, round(scale * RADIUS), 255, -1)
    _, encoded = cv2.imencode(".png", mask)
    page.route("**/api/mask.png", lambda route: route.fulfill(body=encoded.tobytes(), content_type="image/png"))
    page.route("**/api/state", _say_masked)
    _, white = cv2.imencode(".png", np.full((HEIGHT, WIDTH, 3), 255, np.uint8))
    page.route("**/api/frames/*.jpg", lambda route: route.fulfill(body=white.tobytes()))
    person = Person(page)
    person.open(program.address)
    return person


def _say_masked(route):
    route.fulfill(body=json.dumps({**route.fetch().json(), "masked": True}), content_type="application/json")


def shot_of(person, name):
    """Return a part of the page as it is on the screen, gray."""
    person.page.wait_for_timeout(400)
    return cv2.imdecode(np.frombuffer(person.see(name).screenshot(), np.uint8), cv2.IMREAD_GRAYSCALE)


@pytest.mark.parametrize("comparison", ["blink", "swipe"])
def test_comparisons_show_the_field_of_view_alone(at_scope, comparison, keep_picture):
    at_scope.page.get_by_role("button", name=comparison).click()
    expect(at_scope.see("overlay")).to_be_visible()
    shot = shot_of(at_scope, "overlay")
    keep_picture(at_scope.page, f"scope-{comparison}")
    height, width = shot.shape
    scale = at_scope.screen_from_frame("i")[0, 0]
    white = float((shot > 250).sum()) / scale**2
    # A disc, not a frame of 320 by 240; blink shows one of the two, swipe half of each.
    assert white == pytest.approx(np.pi * RADIUS**2, rel=0.25)
    assert shot[height // 2, width // 2 - 8] > 250


def test_the_outline_of_the_other_frame_is_round(at_scope):
    shot = cv2.imdecode(np.frombuffer(at_scope.see("frame-i").screenshot(), np.uint8), cv2.IMREAD_COLOR)
    # Blue on white: the dashes of frame j in frame i.
    rows, columns = np.nonzero((shot[..., 0] > 150) & (shot[..., 2] < 140) & (shot[..., 1] > 120))
    dashes = np.stack([columns, rows], axis=1)[rows > 40]
    assert len(dashes) > 100
    middle = (dashes.max(axis=0) + dashes.min(axis=0)) / 2
    radii = np.hypot(*(dashes - middle).T)
    assert radii.std() < 0.12 * radii.mean()


def test_one_key_brings_out_what_is_faint(page, program):
    texture = np.kron(np.indices((HEIGHT // 4, WIDTH // 4)).sum(axis=0) % 2, np.ones((4, 4), int))
    faint = (np.linspace(30, 150, WIDTH)[None] + 6 * texture).astype(np.uint8)
    _, encoded = cv2.imencode(".png", faint)
    page.route("**/api/frames/*.jpg", lambda route: route.fulfill(body=encoded.tobytes()))
    person = Person(page)
    person.open(program.address)

    def contrast():
        shot = shot_of(person, "frame-i").astype(np.float64)
        height, width = shot.shape
        part = shot[2 * height // 5 : 3 * height // 5, width // 4 : width // 3]
        return float((part - cv2.blur(part, (25, 25))).std())

    before = contrast()
    person.press("w")
    assert contrast() > 2.5 * before
    person.press("w")
    assert contrast() == pytest.approx(before, rel=0.1)
