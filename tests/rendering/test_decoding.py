"""Frames are decoded once a pass: one pass looks at them, one paints."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from smalti.rendering.canvas import Window
from smalti.rendering.mosaic import BLENDS, Mosaic
from smalti.rendering.tile_scheduler import MemoryBudget
from tests.rendering.scene import shift
from tests.rendering.worlds import HEIGHT, LEAST_BUDGET, WIDTH, WORLDS, paint_small, reader_of

FEW_FRAMES = MemoryBudget(frames=3 * 10**5, chunk=10**5, paintings=1, bands=1)


@pytest.mark.parametrize("budget", [None, LEAST_BUDGET], ids=["ample", "none"])
@pytest.mark.parametrize("blend", BLENDS)
def test_every_frame_is_decoded_once_to_look_and_once_to_paint(tmp_path, monkeypatch, blend, budget):
    if budget is not None:
        paint_small(monkeypatch, 64, budget)
    world = WORLDS["affine"]
    reader = reader_of(world)
    mosaic = Mosaic(reader, world, WIDTH, HEIGHT)
    mosaic.save(tmp_path / "m.tif", blend=blend)
    assert Counter(reader.decoded) == dict.fromkeys(world, 2)
    assert reader.calls[0] == sorted(world)
    mosaic.save(tmp_path / "m.tif", blend=blend)
    assert Counter(reader.decoded) == dict.fromkeys(world, 3)


@pytest.mark.parametrize("blend", BLENDS)
def test_frames_are_asked_for_in_ascending_order(tmp_path, monkeypatch, blend):
    paint_small(monkeypatch, 64, LEAST_BUDGET)
    world = WORLDS["homographies"]
    reader = reader_of(world)
    Mosaic(reader, world, WIDTH, HEIGHT).save(tmp_path / "m.png", blend=blend)
    assert len(reader.calls) > 3
    assert all(call == sorted(call) for call in reader.calls)


def test_only_the_frames_of_a_region_are_painted(monkeypatch):
    world = {k: shift(0, 1000.0 * k) for k in range(5)}
    reader = reader_of(world)
    mosaic = Mosaic(reader, world, WIDTH, HEIGHT)
    image = mosaic.render(mosaic.canvas(), "feather", window=Window(0, 1900, WIDTH, 300))
    assert reader.calls[1:] == [[2]]
    np.testing.assert_array_equal(image[..., 3].any(axis=1), (np.arange(300) >= 100) & (np.arange(300) < 220))


def test_bands_without_frames_ask_for_none(tmp_path, monkeypatch):
    paint_small(monkeypatch, 64, LEAST_BUDGET)
    world = {0: shift(0, 0), 1: shift(0, 2000)}
    reader = reader_of(world)
    Mosaic(reader, world, WIDTH, HEIGHT).save(tmp_path / "m.png")
    assert [call for call in reader.calls[1:] if call] == [[0], [1]]


@pytest.mark.parametrize("top", [1, 2])
def test_a_region_that_begins_anywhere_decodes_no_frame_twice(monkeypatch, top):
    paint_small(monkeypatch, 64, LEAST_BUDGET)
    # Every few rows a frame ends: some end just so far above a band that they hardly matter to it.
    world = {k: shift(90.0 * (k % 3), 23.0 * (k // 3)) for k in range(30)}
    reader = reader_of(world)
    mosaic = Mosaic(reader, world, WIDTH, HEIGHT)
    canvas = mosaic.canvas()
    mosaic.render(canvas, window=Window.between(top, top, canvas.width, canvas.height))
    assert max(Counter(reader.decoded).values()) == 2
