from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import ndimage

from smalti.rendering.canvas import Window
from smalti.rendering.mosaic import Mosaic
from smalti.rendering.seams import patchwork as patchworks
from smalti.rendering.seams.patchwork import Patchwork
from smalti.rendering.seams.seam_candidates import NONE
from tests.rendering.scene import Frames, mapped
from tests.rendering.worlds import HEIGHT, WIDTH, WORLDS, canvas_points, count_views, disc, mosaic_of


def patchwork_of(mosaic: Mosaic, scale: float = 1.0) -> tuple[Patchwork, Window]:
    canvas = mosaic.canvas(scale)
    return mosaic._layout.patchwork(canvas, even_light=True), canvas.window


@pytest.mark.parametrize(
    ("world", "scale", "masked"), [("shifts", 1.0, False), ("affine", 0.3, False), ("homographies", 1.0, True)]
)
def test_windows_of_any_partition_say_the_same(world, scale, masked):
    mosaic = mosaic_of(WORLDS[world], disc() if masked else None)
    patchwork, everything = patchwork_of(mosaic, scale)
    whole = patchwork.indices(everything)
    rng = np.random.default_rng(0)
    for _ in range(30):
        left, right = np.sort(rng.integers(-20, everything.width + 20, 2)).tolist()
        top, bottom = np.sort(rng.integers(-20, everything.height + 20, 2)).tolist()
        window = Window.between(left, top, right + 1, bottom + 1)
        expected = np.pad(whole, 40, constant_values=NONE)[top + 40 : bottom + 41, left + 40 : right + 41]
        np.testing.assert_array_equal(patchwork.indices(window), expected)


def test_the_size_of_blocks_does_not_matter(monkeypatch):
    mosaics = [mosaic_of(WORLDS["affine"]) for _ in range(3)]
    patchwork, everything = patchwork_of(mosaics[0])
    whole = patchwork.indices(everything)
    # Cells are 2 pixels, so that there are several blocks.
    monkeypatch.setattr(patchworks, "BLOCK", 64)
    np.testing.assert_array_equal(patchwork_of(mosaics[1])[0].indices(everything), whole)
    few, _ = patchwork_of(mosaics[2])
    few._most_blocks = 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        few.prepare(everything, pool)
    np.testing.assert_array_equal(few.indices(everything), whole)


@pytest.mark.parametrize(
    ("world", "mask"), [("shifts", None), ("affine", disc()), ("homographies", None), ("homographies", disc())]
)
def test_a_pixel_is_shown_by_a_frame_that_covers_it_and_by_one_if_any_does(world, mask):
    mosaic = mosaic_of(WORLDS[world], mask)
    canvas = mosaic.canvas()
    places = patchwork_of(mosaic)[0].indices(canvas.window)
    np.testing.assert_array_equal(places != NONE, count_views(WORLDS[world], canvas, mask) > 0)
    for place, number in enumerate(sorted(WORLDS[world])):
        shown = places == place
        assert (count_views({number: WORLDS[world][number]}, canvas, mask)[shown] == 1).all()


def test_frames_that_agree_are_each_shown_in_one_piece():
    mosaic = mosaic_of(WORLDS["shifts"])
    patchwork, everything = patchwork_of(mosaic)
    places = patchwork.indices(everything)
    pieces = [ndimage.label(places == place)[1] for place in range(12)]
    assert pieces == [1] * 12


def test_the_rim_of_a_round_field_of_view_is_not_preferred():
    rng = np.random.default_rng(1)
    texture = np.rint(128 + 12 * ndimage.gaussian_filter(rng.normal(0, 6, (400, 600)), 1.5)).clip(0, 255)
    world = {k: WORLDS["shifts"][k] for k in (0, 1, 4, 5)}
    frames = {}
    for number, matrix in world.items():
        x, y = matrix[:2, 2].astype(int)
        seen = np.where(disc(), texture[y : y + HEIGHT, x : x + WIDTH], 0)
        frames[number] = np.repeat(seen[..., None], 3, axis=2).astype(np.uint8)
    mosaic = Mosaic(Frames(frames), world, WIDTH, HEIGHT, disc())
    canvas = mosaic.canvas()
    places = mosaic._layout.patchwork(canvas, even_light=True).indices(canvas.window)
    depths = []
    for number in sorted(world):
        u, v = mapped(np.linalg.inv(world[number]), *canvas_points(canvas))
        depths.append(55 - np.hypot(u - 80, v - 60))
    chosen = np.take_along_axis(np.array(depths), np.maximum(places, 0)[None], axis=0)[0]
    # Within 4 pixels of its rim a frame is shown only where no other sees the place 16 pixels from its own.
    assert not ((places != NONE) & (chosen < 4) & (np.max(depths, axis=0) > 16)).any()
