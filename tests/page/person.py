"""A person before the page: sees what it shows, moves the mouse, presses keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from smalti.geometry.linear_maps import apply, invert
from smalti.records import Landmarks, Pair

PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@dataclass(frozen=True)
class SurveyedPairs:
    """The question on the screen; the revision is that of the answers that it was chosen by."""

    pair: Pair
    revision: int


class Person:
    def __init__(self, page: Page) -> None:
        page.set_default_timeout(PATIENCE_MS)
        self.page = page

    def open(self, address: str) -> SurveyedPairs:
        self.page.goto(address)
        return self.look()

    def look(self) -> SurveyedPairs:
        """Wait until a question was painted for long enough to be seen, and return it."""
        host = self.see("question")
        expect(host).to_have_attribute("data-revision", re.compile(r"\d+"))
        expect(host).to_have_attribute("data-seen", "true")
        i, j, revision = (int(host.get_attribute(f"data-{name}") or -1) for name in ("i", "j", "revision"))
        return SurveyedPairs(Pair(i, j), revision)

    def see(self, name: str) -> Locator:
        """Return what the page promises to show under a name."""
        return self.page.get_by_test_id(name)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def point_at(self, side: str, point: NDArray[np.float64]) -> tuple[float, float]:
        """Return where on the screen a point (2,) of a frame is, after bringing it into sight."""
        x, y = self._place(side, point)
        if not self._is_inside(side, x, y):
            self.press("0")
            x, y = self._place(side, point)
            assert self._is_inside(side, x, y), f"{point} of frame {side} cannot be brought into sight"
        return x, y

    def click(self, side: str, point: NDArray[np.float64]) -> None:
        self.page.mouse.click(*self.point_at(side, point))

    def mark(self, landmarks: Landmarks) -> None:
        """Set landmarks one by one, by a click in frame j and one in frame i."""
        for at, (point_i, point_j) in enumerate(zip(landmarks.points_i, landmarks.points_j, strict=True)):
            self.click("j", point_j)
            self.click("i", point_i)
            expect(self.see("landmark")).to_have_count(at + 1)

    def wipe(self) -> None:
        """Delete all landmarks."""
        rows = self.see("landmark")
        for left in range(rows.count() - 1, -1, -1):
            self.press("]", "x")
            expect(rows).to_have_count(left)

    def answer(self, name: str) -> SurveyedPairs:
        """Click on a verdict or on confirm, and return the next question."""
        return self.after(lambda: self.see(name).click())

    def after(self, act: object) -> SurveyedPairs:
        """Do something that changes the answers; wait until it is saved and the next question is painted."""
        before = self.look().revision
        act()  # type: ignore[operator]
        expect(self.see("question")).not_to_have_attribute("data-revision", str(before))
        self.wait_until_saved()
        return self.look()

    def wait_until_saved(self) -> None:
        expect(self.see("saved")).to_contain_text("saved")

    def go_to(self, pair: Pair) -> SurveyedPairs:
        """Ask for a pair by its numbers."""
        self.press("g")
        self.page.keyboard.type(f"{pair.i}")
        self.press("Tab")
        self.page.keyboard.type(f"{pair.j}")
        self.press("Enter")
        expect(self.see("question")).to_have_attribute("data-i", str(pair.i))
        expect(self.see("question")).to_have_attribute("data-j", str(pair.j))
        return self.look()

    def screen_from_frame(self, side: str) -> NDArray[np.float64]:
        """Return the map (2, 3) from pixels of a frame to those of the window."""
        host = self.see(f"frame-{side}")
        numbers = [float(number) for number in (host.get_attribute("data-screen-from-frame") or "").split(",")]
        box = host.bounding_box()
        assert box is not None
        return np.array(numbers).reshape(2, 3) + np.array([[0, 0, box["x"]], [0, 0, box["y"]]])

    def frame_from_screen(self, side: str) -> NDArray[np.float64]:
        return invert(self.screen_from_frame(side))

    def _place(self, side: str, point: NDArray[np.float64]) -> tuple[float, float]:
        x, y = apply(self.screen_from_frame(side), np.asarray(point, np.float64)[None])[0]
        return float(x), float(y)

    def _is_inside(self, side: str, x: float, y: float) -> bool:
        box = self.see(f"frame-{side}").bounding_box()
        assert box is not None
        return box["x"] < x < box["x"] + box["width"] and box["y"] < y < box["y"] + box["height"]
