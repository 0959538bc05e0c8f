"""Frames seen through a lens: the mosaic shows the scene as if there were none."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.canvas import Canvas
from smalti.rendering.mosaic import BLENDS, Mosaic
from smalti.rendering.sampling_kernels import bending_of, distorted_position
from tests.rendering.scene import Frames, colour_at, displacement, frame_of, mapped, psnr, shift, turn
from tests.rendering.worlds import HEIGHT, WIDTH, WORLDS, canvas_points, disc, paint_small

OUTLINE = Outline.of_pixels(WIDTH, HEIGHT)
LENSES = {
    "barrel": Lens(OUTLINE, 0.09),
    "pincushion": Lens(OUTLINE, -0.07),
    "both": Lens(OUTLINE, 0.12, -0.04),
}
WORLD = WORLDS["homographies"]


def seen_through(lens: Lens, world=WORLD) -> Frames:
    return Frames({number: frame_of(matrix, WIDTH, HEIGHT, lens) for number, matrix in world.items()})


@cache
def mosaic_through(name: str) -> Mosaic:
    return Mosaic(seen_through(LENSES[name]), WORLD, WIDTH, HEIGHT, lens=LENSES[name])


def count_views(lens: Lens, canvas: Canvas, mask: np.ndarray | None = None, world=WORLD) -> np.ndarray:
    """How many frames see each pixel of a canvas, from the definition."""
    mask = np.ones((HEIGHT, WIDTH), dtype=bool) if mask is None else mask
    views = np.zeros((canvas.height, canvas.width), dtype=int)
    for matrix in world.values():
        straight = np.stack(mapped(np.linalg.inv(matrix), *canvas_points(canvas)), axis=-1)
        column, row = np.moveaxis(np.floor(lens.distort(straight) + 0.5), -1, 0)
        within = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT)
        views[within] += mask[row[within].astype(int), column[within].astype(int)]
    return views


@pytest.mark.parametrize(
    ("blend", "scale", "name"),
    [*((blend, 1.0, "both") for blend in BLENDS), ("none", 1.0, "barrel"), ("multiband", 0.5, "pincushion")],
)
def test_the_mosaic_is_the_scene_and_its_alpha_the_coverage(blend, scale, name):
    mosaic = mosaic_through(name)
    canvas = mosaic.canvas(scale)
    image = mosaic.render(canvas, blend, even_light=False)
    covered = count_views(LENSES[name], canvas) > 0
    # Pixels within a hair of a frame's border fall on either side of it.
    assert (image[..., 3] > 0).sum() == pytest.approx(covered.sum(), abs=3)
    assert ((image[..., 3] > 0) != covered).sum() <= 3
    shown = covered & (image[..., 3] > 0)
    x, y = canvas_points(canvas)
    assert psnr(image[shown][:, :3], colour_at(x, y)[shown]) > (44 if scale == 1.0 else 40)
    assert abs(displacement(image[shown][:, :3], x[shown], y[shown])).max() * scale < 0.005


def test_without_the_lens_it_is_clearly_worse():
    mosaic = Mosaic(seen_through(LENSES["barrel"]), WORLD, WIDTH, HEIGHT)
    canvas = mosaic.canvas()
    image = mosaic.render(canvas, "none", even_light=False)
    shown = image[..., 3] > 0
    x, y = canvas_points(canvas)
    assert psnr(image[shown][:, :3], colour_at(x, y)[shown]) < 25


@pytest.mark.parametrize("blend", BLENDS)
def test_a_lens_that_bends_nothing_changes_no_bit(blend):
    mask = disc()
    reader = seen_through(Lens(OUTLINE))
    without = Mosaic(reader, WORLD, WIDTH, HEIGHT, mask)
    straight = Mosaic(reader, WORLD, WIDTH, HEIGHT, mask, lens=Lens(OUTLINE))
    assert straight.canvas(0.7) == without.canvas(0.7)
    canvas = without.canvas(0.7)
    np.testing.assert_array_equal(straight.render(canvas, blend), without.render(canvas, blend))


@pytest.mark.parametrize("blend", BLENDS)
def test_tiles_meet_without_a_trace(monkeypatch, blend):
    mosaic = mosaic_through("both")
    canvas = mosaic.canvas()
    whole = mosaic.render(canvas, blend)
    paint_small(monkeypatch)
    lens = LENSES["both"]
    tiled = Mosaic(seen_through(lens), WORLD, WIDTH, HEIGHT, lens=lens).render(canvas, blend)
    np.testing.assert_array_equal(tiled, whole)


def test_the_canvas_holds_all_of_the_bent_frames():
    lens = LENSES["pincushion"]  # whose straight frames bulge between their corners
    canvas = Mosaic(seen_through(lens), {0: shift(0, 0)}, WIDTH, HEIGHT, lens=lens).canvas()
    wide = Canvas(canvas.left - 5, canvas.top - 5, canvas.width + 10, canvas.height + 10)
    seen = count_views(lens, wide, world={0: shift(0, 0)})
    assert seen.sum() == seen[5:-5, 5:-5].sum()
    corners_only = Canvas.around(np.eye(3)[None], WIDTH, HEIGHT, rim=lens.undistort(OUTLINE.corners))
    assert corners_only.width < canvas.width


def test_vignetting_of_what_is_seen_is_evened_out():
    lens = LENSES["barrel"]
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    dark = 1.0 - 0.35 * ((x - 79.5) ** 2 + (y - 59.5) ** 2) / 100.0**2
    world = {k: shift(28.0 * (k % 6), 21.0 * (k // 6)) @ turn(2.0 * k) for k in range(36)}
    frames = {k: np.rint(frame_of(m, WIDTH, HEIGHT, lens) * dark[..., None]).astype(np.uint8) for k, m in world.items()}
    mosaic = Mosaic(Frames(frames), world, WIDTH, HEIGHT, lens=lens)
    canvas = mosaic.canvas()
    image = mosaic.render(canvas)
    shown = image[..., 3] > 0
    truth = colour_at(*canvas_points(canvas))[shown]
    seen = image[shown][:, :3].astype(float)
    gain = (truth * seen).sum() / (seen * seen).sum()
    assert psnr(gain * seen, truth) > 36


@pytest.mark.parametrize("masked", [False, True])
def test_coverage_counts_the_frames_that_see_a_place(masked):
    mask = disc() if masked else None
    lens = LENSES["both"]
    mosaic = Mosaic(seen_through(lens), WORLD, WIDTH, HEIGHT, mask, lens=lens)
    canvas = mosaic.canvas()
    assert (mosaic.maps(canvas).coverage != count_views(lens, canvas, mask)).sum() <= 5


def test_who_follows_the_way_back_gets_the_pixel_that_is_seen(tmp_path):
    mosaic = mosaic_through("barrel")
    mosaic.save_maps(tmp_path / "m.png", ["source"])
    content = json.loads((tmp_path / "m.frames.json").read_text())
    lens = Lens(OUTLINE, content["lens"]["k1"], content["lens"]["k2"])
    canvas = mosaic.canvas()
    source = mosaic.maps(canvas).source
    row, column = 60, 90
    back = next(one for one in content["frames"] if one["frame"] == source[row, column])
    straight = mapped(np.array(back["frame_from_canvas"]), np.array(column), np.array(row))
    x, y = lens.distort(np.array(straight))
    place = mapped(WORLD[back["frame"]], *lens.undistort(np.array([x, y])))
    assert place == pytest.approx((column + canvas.left, row + canvas.top))


@pytest.mark.parametrize("k1", [0.3, -0.15])
def test_the_table_of_the_kernels_is_the_lens(k1):
    lens = Lens(Outline.of_pixels(4000, 3000), k1, 0.01)
    level_from_frame = np.array([[0.31, 0.0, 0.2], [0.0, 0.28, -0.1], [0.0, 0.0, 1.0]])
    rng = np.random.default_rng(1)
    seen = rng.uniform((0, 0), (3999, 2999), (500, 2))
    for (x, y), straight in zip(seen, lens.undistort(seen), strict=True):
        found = distorted_position(np.eye(3), bending_of(lens), *straight)
        assert found == pytest.approx((x, y), abs=1e-4)
        found = distorted_position(level_from_frame, bending_of(lens, level_from_frame), *straight)
        assert found == pytest.approx((0.31 * x + 0.2, 0.28 * y - 0.1), abs=1e-4)


def test_beyond_the_corner_nothing_is_seen():
    for lens in LENSES.values():
        corner = lens.undistort(OUTLINE.corners[2])
        for factor in (1.001, 2.0, 1e6, np.inf):
            x, y = distorted_position(
                np.eye(3), bending_of(lens), *(OUTLINE.centre + factor * (corner - OUTLINE.centre))
            )
            assert not (x <= OUTLINE.right and y <= OUTLINE.bottom)


@pytest.mark.parametrize("lens", [Lens(Outline.of_pixels(30, 20), 0.1), Lens(OUTLINE, -0.5), Lens(OUTLINE, np.nan)])
def test_a_lens_of_other_frames_or_of_no_camera_is_refused(lens):
    with pytest.raises(UsageError, match="lens"):
        Mosaic(seen_through(Lens(OUTLINE)), WORLD, WIDTH, HEIGHT, lens=lens)
