"""Where each frame shows the scene: its disc where discs change, without highlights and tools; else everywhere."""

import functools
import time
from dataclasses import replace

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.frames.occlusions import Highlights
from smalti.frames.visibility import FrameMasks
from tests.frames.scenes import make_scene

SIDE = 240
FRAMES = 20
TISSUE = (np.array([190, 110, 95]) * (0.7 + 0.3 * (make_scene(500, 700, colours=1)[..., None] / 255.0))).astype(
    np.uint8
)
STREET = make_scene(500, 700, seed=3)
STEEL = np.array([150, 155, 162], np.uint8)
ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE]


def disc(x=120.0, y=120.0, radius=110.0):
    return np.hypot(COLUMNS - x, ROWS - y) < radius


def view(n, scene=TISSUE):
    rng = np.random.default_rng([7, n])
    y, x = rng.integers(0, 500 - SIDE), rng.integers(0, 700 - SIDE)
    noise = rng.normal(0, 2, (SIDE, SIDE, 3))
    return np.clip(scene[y : y + SIDE, x : x + SIDE] + noise, 0, 255).astype(np.uint8)


def through(n, field, scene=TISSUE):
    return np.where(field[..., None], view(n, scene), np.uint8(5))


def drifting(n):
    return disc(120 + 9 * np.cos(n), 120 + 9 * np.sin(1.7 * n), 95 + 10 * np.sin(0.6 * n))


def turning(n):
    angle = 0.9 * n
    return disc() & (np.hypot(COLUMNS - 120 - 110 * np.cos(angle), ROWS - 120 - 110 * np.sin(angle)) > 14)


def glints(n):
    rng = np.random.default_rng([8, n])
    spots = np.zeros((SIDE, SIDE), np.uint8)
    for x, y in rng.integers(60, 180, (6, 2)):
        cv2.circle(spots, (int(x), int(y)), 3, 1, -1)
    return spots.astype(bool)


def tool(n):
    """A rod that comes in from the left."""
    return (np.abs(ROWS - 120 - 0.2 * COLUMNS) < 16) & (COLUMNS < 150) & disc()


def masks_of(draw, **options):
    return FrameMasks.of_sample((draw(n) for n in range(FRAMES)), **options)


@functools.cache
def masks_at_rest():
    return masks_of(lambda n: through(n, disc()))


@functools.cache
def masks_with_glints():
    return masks_of(lambda n: shine(n, glints(n)))


@pytest.mark.parametrize("field_of", [drifting, turning], ids=["drifts and zooms", "turns with a notch"])
def test_a_disc_that_changes_is_followed_frame_by_frame(field_of):
    masks = masks_of(lambda n: through(n, field_of(n)))
    assert masks.disc_changes
    for n in range(FRAMES, FRAMES + 6):
        field, found = field_of(n), masks.of(through(n, field_of(n)))
        assert (found & field).sum() / field.sum() > 0.93
        assert (found & ~field).sum() < 0.001 * field.sum()


def test_a_disc_that_stays_is_the_same_in_all_frames():
    masks = masks_at_rest()
    assert not masks.disc_changes
    np.testing.assert_array_equal(masks.of(through(30, disc())), masks.field)
    assert (masks.field & disc()).sum() > 0.93 * disc().sum()


def test_a_disc_that_trembles_by_less_than_the_margin_stays_the_same():
    assert not masks_of(lambda n: through(n, disc(120 + 0.8 * np.cos(n), 120 + 0.8 * np.sin(2 * n)))).disc_changes


@pytest.mark.parametrize("scene", [TISSUE, STREET], ids=["tissue", "colourful"])
def test_a_sequence_without_surround_and_highlights_is_all_scene(scene):
    masks = masks_of(lambda n: view(n, scene))
    assert all(masks.of(view(n, scene)).all() for n in range(FRAMES, FRAMES + 4))


def shine(n, spots):
    image = through(n, disc())
    image[spots] = 252
    return cv2.GaussianBlur(image, (0, 0), 0.6)


def test_highlights_are_left_out_and_little_around_them():
    masks = masks_with_glints()
    for n in (40, 41):
        found, spots = masks.of(shine(n, glints(n))), glints(n)
        assert not (found & spots).any()
        around = cv2.dilate(spots.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(bool)
        np.testing.assert_array_equal(found[~around], masks.field[~around])


def test_a_large_white_thing_is_no_highlight():
    masks = masks_with_glints()
    sheet = (np.abs(ROWS - 120) < 30) & (np.abs(COLUMNS - 120) < 40)
    assert masks.of(shine(40, sheet))[sheet].all()


def test_a_scene_that_is_white_in_places_has_no_highlights():
    bright = np.clip(STREET.astype(int) * 1.6, 0, 255).astype(np.uint8)
    assert masks_of(lambda n: view(n, bright)).of(view(30, bright)).all()


def test_a_scene_that_thins_out_towards_white_has_no_highlights():
    levels = [np.clip(60 + np.random.default_rng(n).exponential(22, 9000), 0, 255).astype(np.uint8) for n in range(20)]
    assert Highlights.of(levels) == Highlights(256)


def test_frames_full_of_haze_do_not_hide_the_highlights():
    rng = np.random.default_rng(2)
    clear = [np.append(rng.normal(110, 15, 9000), np.full(40, 250.0)).astype(np.uint8) for _ in range(14)]
    haze = [rng.normal(215, 12, 9000).clip(0, 239).astype(np.uint8) for _ in range(6)]
    assert Highlights.of(clear + haze) == Highlights.of(clear)
    assert Highlights.of(clear).level < 250


def obstructed(n, region, colour=STEEL):
    image = through(n, disc())
    image[region] = colour
    return image


def test_a_tool_that_comes_in_from_the_rim_is_left_out():
    masks = masks_of(lambda n: obstructed(n, tool(n)) if n % 7 == 3 else through(n, disc()))
    found = masks.of(obstructed(40, tool(40)))
    assert (found & tool(40)).sum() < 0.05 * tool(40).sum()
    rest = masks.field & ~cv2.dilate(tool(40).astype(np.uint8), np.ones((15, 15), np.uint8)).astype(bool)
    assert found[rest].all()


IN_DOUBT = {
    "inside, not at the rim": (disc(120, 120, 30), STEEL),
    "small": (disc(225, 120, 12) & disc(), STEEL),
    "all of the field": (disc(), STEEL),
    "of the scene's colour": (tool(0), TISSUE.reshape(-1, 3).mean(axis=0) * 0.8),
}


@pytest.mark.parametrize("kind", IN_DOUBT)
def test_in_doubt_it_is_scene(kind):
    region, colour = IN_DOUBT[kind]
    masks = masks_at_rest()
    np.testing.assert_array_equal(masks.of(obstructed(40, region, colour)), masks.field)


def test_a_strange_thing_without_a_surround_is_scene():
    masks = masks_of(view)
    image = view(40)
    image[100:140, :150] = STEEL
    assert masks.of(image).all()


def test_a_field_that_is_given_is_taken_as_it_is():
    painted = disc(100, 120, 60)
    masks = masks_of(lambda n: through(n, drifting(n)), field=painted)
    assert not masks.disc_changes
    np.testing.assert_array_equal(masks.of(through(40, drifting(40))), painted)


def test_no_frames_are_refused():
    with pytest.raises(UsageError, match="without frames"):
        FrameMasks.of_sample([])


def test_a_mask_takes_some_milliseconds_at_most():
    masks = masks_of(lambda n: obstructed(n, glints(n), 252) if n % 2 else through(n, drifting(n)))
    assert masks.disc_changes
    image = np.tile(through(30, drifting(30)), (2, 2, 1))
    large = replace(
        masks,
        field=np.ones((2 * SIDE, 2 * SIDE), bool),
        disc_changes=True,
        overlays=np.zeros((2 * SIDE, 2 * SIDE), bool),
    )
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        large.of(image)
        best = min(best, time.perf_counter() - start)
    assert best < 0.03  # 5 ms on an idle machine
