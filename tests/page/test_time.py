"""A frame is seen with its neighbours in time, and a landmark is never set on one of them."""

from __future__ import annotations

import cv2
import numpy as np
from playwright.sync_api import expect

from smalti.records import Pair

PAIR = Pair(5, 30)


def test_neighbours_in_time_are_shown_and_named(person):
    person.go_to(PAIR)
    frame = person.see("frame-i")
    before = shot_of(person)
    person.see("frame-i").hover()
    person.page.keyboard.down("Alt")
    for _ in range(3):
        person.page.mouse.wheel(0, 100)
    person.page.keyboard.up("Alt")
    expect(frame).to_contain_text("3 later")
    later = shot_of(person)
    assert np.abs(later - before).mean() > 3.0
    person.press("Escape")
    expect(frame).not_to_contain_text("later")
    assert np.abs(shot_of(person) - before).mean() < 1.0


def test_one_goes_no_farther_than_the_first_frame_and_twenty_away(person):
    person.go_to(PAIR)
    person.see("frame-i").focus()
    for _ in range(8):
        person.press(",")
    expect(person.see("frame-i")).to_contain_text("5 earlier")
    for _ in range(40):
        person.press(".")
    expect(person.see("frame-i")).to_contain_text("20 later")


def test_a_click_on_a_neighbour_shows_the_frame_again_and_sets_nothing(person):
    person.go_to(PAIR)
    person.see("frame-i").focus()
    person.press(".")
    expect(person.see("frame-i")).to_contain_text("1 later")
    person.see("frame-i").click()
    expect(person.see("frame-i")).not_to_contain_text("later")
    expect(person.see("landmark")).to_have_count(0)
    assert person.page.evaluate("Object.keys(localStorage).filter((key) => key.includes(':draft:')).length") == 0


def shot_of(person):
    person.page.wait_for_timeout(500)
    shot = cv2.imdecode(np.frombuffer(person.see("frame-i").screenshot(), np.uint8), cv2.IMREAD_GRAYSCALE)
    height, width = shot.shape
    # Without the label and the magnifier.
    return shot[height // 3 : 2 * height // 3, width // 4 : 3 * width // 4].astype(np.float64)
