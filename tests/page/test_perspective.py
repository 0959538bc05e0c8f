"""A frame that lies in perspective, seen through a lens, is laid over the other one as the map between them says."""

from __future__ import annotations

import json
from functools import partial

import cv2
import numpy as np
import pytest
from playwright.sync_api import expect

from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from tests.page.person import Person
from tests.page.rounds import HEIGHT, WIDTH, rounds

TILTED = np.array([[1.02, -0.05, 14.0], [0.06, 0.97, -9.0], [6e-4, -4e-4, 1.0]])
LENS = Lens(rounds().outline, 0.08)


@pytest.fixture
def tilted(page, program):
    """A page on which frame j of the question is frame i, tilted and bent."""
    question = program.get("api/question")
    with_frame_i = page.request.get(f"{program.address}api/frames/{question['i']}.jpg").body()
    frame = cv2.imdecode(np.frombuffer(with_frame_i, np.uint8), cv2.IMREAD_COLOR)
    # Noise to the last pixel correlates with nothing once it is resampled.
    frame = cv2.GaussianBlur(frame, (0, 0), 2.0)
    x, y = np.meshgrid(np.arange(WIDTH, dtype=np.float64), np.arange(HEIGHT, dtype=np.float64))
    points = np.stack([x, y], axis=-1).reshape(-1, 2)
    seen = LENS.distort(apply_map(TILTED, LENS.undistort(points))).reshape(HEIGHT, WIDTH, 2).astype(np.float32)
    moved = cv2.remap(frame, seen[..., 0], seen[..., 1], cv2.INTER_CUBIC)
    names = ("centre_x", "centre_y", "unit_px", "k1", "k2")

    def show(i_from_j, lens):
        numbers = None if lens is None else dict(zip(names, lens.numbers, strict=True))
        page.route("**/api/question?*", lambda route: _change(route, i_from_j=i_from_j.ravel().tolist()))
        page.route("**/api/state", lambda route: _change(route, lens=numbers))
        for number, image in ((question["i"], frame), (question["j"], moved)):
            _, encoded = cv2.imencode(".png", image)
            page.route(f"**/api/frames/{number}.jpg", partial(_serve, encoded.tobytes()))
        person = Person(page)
        person.open(program.address)
        return person

    return show


def _serve(body, route):
    route.fulfill(body=body)


def _change(route, **changed):
    message = route.fetch().json()
    route.fulfill(body=json.dumps({**message, **changed}), content_type="application/json")


def difference(person, keep=None):
    """Return how bright the difference of the two frames is where both are shown, 0 to 255."""
    person.see("question")
    person.press("v", "v", "v")
    overlay = person.see("overlay")
    expect(overlay).to_be_visible()
    person.page.wait_for_timeout(400)
    if keep is not None:
        keep(person.page, "perspective")
    shot = cv2.imdecode(np.frombuffer(overlay.screenshot(), np.uint8), cv2.IMREAD_GRAYSCALE)
    height, width = shot.shape
    return float(shot[height // 4 : 3 * height // 4, 3 * width // 10 : 2 * width // 3].mean())


def test_the_overlay_follows_perspective_and_lens(tilted, keep_picture):
    assert difference(tilted(TILTED, LENS), keep_picture) < 0.8


@pytest.mark.parametrize(("flat", "lens"), [(True, LENS), (False, None)], ids=["affine", "no lens"])
def test_without_one_of_them_the_frames_differ(tilted, flat, lens):
    i_from_j = TILTED * [[1.0], [1.0], [0.0]] + np.diag([0.0, 0.0, float(flat)]) if flat else TILTED
    assert difference(tilted(i_from_j, lens)) > 2.4
