"""The picture depends on nothing but frames and maps: not on tiles, memory or cores."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest

from smalti.rendering.mosaic import BLENDS, Mosaic
from smalti.rendering.tile_scheduler import MemoryBudget, Tiling
from tests.rendering.scene import Frames, shift, turn
from tests.rendering.worlds import LEAST_BUDGET, WORLDS, disc, mosaic_of, paint_small

ROOMS = {
    "a tile at a time": (64, LEAST_BUDGET),
    "wide tiles": (160, LEAST_BUDGET),
    "tall tiles": (64, MemoryBudget(frames=10**5, chunk=10**5, paintings=10**9, bands=10**9)),
}


@cache
def render_whole(blend: str, masked: bool) -> np.ndarray:
    """Painted in one tile."""
    mosaic = mosaic_of(WORLDS["homographies"], disc() if masked else None)
    return mosaic.render(mosaic.canvas(0.9), blend)


@pytest.mark.parametrize(
    ("blend", "masked", "budget"),
    [
        *((blend, True, "a tile at a time") for blend in BLENDS),
        ("multiband", False, "wide tiles"),
        ("multiband", False, "tall tiles"),
        ("none", False, "tall tiles"),
    ],
)
def test_the_picture_depends_neither_on_the_tiles_nor_on_the_room(monkeypatch, blend, masked, budget):
    whole = render_whole(blend, masked)
    paint_small(monkeypatch, *ROOMS[budget])
    again = mosaic_of(WORLDS["homographies"], disc() if masked else None)
    np.testing.assert_array_equal(again.render(again.canvas(0.9), blend), whole)


def test_six_levels_of_bands_meet_exactly_between_tiles(monkeypatch):
    """Weights of the coarsest levels have more digits than a float32; noise would show any difference."""
    rng = np.random.default_rng(0)
    world = {k: shift(531.7 * (k % 2), 487.3 * (k // 2)) @ turn(3 * k) for k in range(4)}
    frames = {k: rng.integers(0, 256, (1024, 1030, 3), dtype=np.uint8) for k in world}
    mosaic = Mosaic(Frames(frames), world, 1030, 1024)
    canvas = mosaic.canvas()
    whole = mosaic.render(canvas)
    paint_small(monkeypatch, 192, MemoryBudget(frames=0, chunk=1, paintings=1, bands=10**7))
    again = Mosaic(Frames(frames), world, 1030, 1024)
    np.testing.assert_array_equal(again.render(canvas), whole)


@pytest.mark.parametrize("blend", BLENDS)
def test_the_picture_does_not_depend_on_the_number_of_cores(monkeypatch, blend):
    paint_small(monkeypatch, 64, MemoryBudget(frames=10**7, chunk=10**5, paintings=10**9, bands=1))
    pictures = []
    for cores in (1, 7):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        pictures.append(mosaic_of(WORLDS["affine"]).image(blend=blend))
    np.testing.assert_array_equal(*pictures)


def test_the_picture_does_not_depend_on_the_memory():
    pictures = [mosaic_of(WORLDS["affine"], memory_bytes=size).image() for size in (2**29, 2**32)]
    np.testing.assert_array_equal(*pictures)


@pytest.mark.parametrize(
    ("budget", "rows", "bands"), [(1, 64, 80), (24 * 1000 * 64, 128, 40), (24 * 1000 * 500, 512, 10), (10**12, 2048, 3)]
)
def test_bands_are_as_high_as_there_is_room_for(budget, rows, bands):
    canvas = mosaic_of({0: shift(0, 0), 1: shift(840, 5000)}).canvas()
    tiling = Tiling.of(canvas.window, MemoryBudget(0, 0, 0, budget))
    assert (canvas.width, canvas.height) == (1000, 5120)
    assert (tiling.rows, tiling.across, tiling.bands, tiling.tiles) == (rows, 1, bands, bands)


def test_what_memory_is_divided_into_fits_into_it():
    for size in (2**29, 2**30, 2**33):
        budget = MemoryBudget.within(size)
        assert budget.frames + 2 * budget.chunk + budget.paintings + budget.bands < size - 300 * 2**20
