from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest
import tifffile
from PIL import Image

from smalti.errors import InputError, OutputError, UsageError
from smalti.rendering.mosaic import Mosaic
from tests.rendering.scene import Frames, colour_at, frame_of, mapped, psnr, shift, tilt, turn

WIDTH, HEIGHT = 160, 120

WORLDS = {
    "shifts": {k: shift(70.0 * (k % 4), 50.0 * (k // 4)) for k in range(12)},
    "affine": {
        5 * k: shift(60.3 * (k % 4) - 40, 47.7 * (k // 4) + 12.2) @ turn(9 * k, 1 + 0.03 * k) for k in range(12)
    },
    "homographies": {
        k: shift(55.1 * (k % 4), 40.9 * (k // 4)) @ turn(5 * k - 20) @ tilt(8e-4 * (k % 3 - 1), 6e-4 * (k % 2))
        for k in range(12)
    },
}


def mosaic_of(world, mask=None, **options) -> Mosaic:
    frames = Frames({number: frame_of(matrix, WIDTH, HEIGHT) for number, matrix in world.items()})
    return Mosaic(frames, world, WIDTH, HEIGHT, mask, **options)


def canvas_points(canvas) -> tuple[np.ndarray, np.ndarray]:
    """Mosaic coordinates of every pixel's centre, from the definition."""
    x = canvas.left + (np.arange(canvas.width) + 0.5) / canvas.scale - 0.5
    y = canvas.top + (np.arange(canvas.height) + 0.5) / canvas.scale - 0.5
    return np.meshgrid(x, y)


def coverage(world, canvas, mask=None) -> np.ndarray:
    """Whether a pixel's centre lies in a pixel of a frame that counts."""
    mask = np.ones((HEIGHT, WIDTH), dtype=bool) if mask is None else mask
    covered = np.zeros((canvas.height, canvas.width), dtype=bool)
    for matrix in world.values():
        u, v = mapped(np.linalg.inv(matrix), *canvas_points(canvas))
        column, row = np.floor(u + 0.5), np.floor(v + 0.5)
        within = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT)
        covered[within] |= mask[row[within].astype(int), column[within].astype(int)]
    return covered


def disc() -> np.ndarray:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return (x - 80) ** 2 + (y - 60) ** 2 < 55**2


@pytest.mark.parametrize("scale", [1.0, 0.73, 1.9])
@pytest.mark.parametrize("world", WORLDS)
def test_the_mosaic_is_the_scene_and_its_alpha_the_coverage(tmp_path, world, scale):
    mosaic = mosaic_of(WORLDS[world])
    canvas = mosaic.canvas(scale)
    image = tifffile.imread(mosaic.save(tmp_path / "m.tif", scale=scale))
    assert image.shape == (canvas.height, canvas.width, 4)
    covered = coverage(WORLDS[world], canvas)
    np.testing.assert_array_equal(image[..., 3], np.where(covered, 255, 0))
    assert not image[~covered].any()
    assert psnr(image[covered][:, :3], colour_at(*canvas_points(canvas))[covered]) > 45


def test_a_reduced_mosaic_is_the_scene_seen_smaller(tmp_path):
    mosaic = mosaic_of(WORLDS["affine"])
    canvas = mosaic.canvas(0.4)
    image = tifffile.imread(mosaic.save(tmp_path / "m.tif", scale=0.4))
    covered = coverage(WORLDS["affine"], canvas)
    np.testing.assert_array_equal(image[..., 3] > 0, covered)
    # The mean over 2.5 pixels flattens waves of 19 pixels by 3 %.
    assert psnr(image[covered][:, :3], colour_at(*canvas_points(canvas))[covered]) > 33


def test_one_frame_is_copied_to_the_last_bit(tmp_path):
    frame = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    mosaic = Mosaic(Frames({7: frame}), {7: shift(-30, 12)}, WIDTH, HEIGHT)
    image = np.asarray(Image.open(mosaic.save(tmp_path / "m.png")))
    np.testing.assert_array_equal(image[..., :3], frame)
    assert (image[..., 3] == 255).all()


def test_there_is_no_fringe_at_the_border_nor_where_frames_meet():
    world = WORLDS["homographies"]
    grey = Frames({number: np.full((HEIGHT, WIDTH, 3), 180, dtype=np.uint8) for number in world})
    image = Mosaic(grey, world, WIDTH, HEIGHT).image()
    assert (image[image[..., 3] > 0][:, :3] == 180).all()


def test_what_the_mask_hides_does_not_bleed_into_the_mosaic(tmp_path):
    world = WORLDS["affine"]
    frames = {number: np.where(disc()[..., None], np.uint8(180), np.uint8(0)).repeat(3, axis=2) for number in world}
    for scale in (1.0, 0.3):
        mosaic = Mosaic(Frames(frames), world, WIDTH, HEIGHT, disc())
        image = tifffile.imread(mosaic.save(tmp_path / "m.tif", scale=scale))
        covered = coverage(world, mosaic.canvas(scale), disc())
        np.testing.assert_array_equal(image[..., 3] > 0, covered)
        assert (image[covered][:, :3] == 180).all()


def test_frames_that_differ_in_brightness_are_mixed_without_a_step():
    world = {0: shift(0, 0), 1: shift(60, 0)}
    frames = {k: np.full((HEIGHT, WIDTH, 3), 100 + 60 * k, dtype=np.uint8) for k in world}
    row = Mosaic(Frames(frames), world, WIDTH, HEIGHT).image()[60, :, 0].astype(int)
    assert (row[:60] == 100).all()
    assert (row[160:] == 160).all()
    # 60 levels over 100 pixels, all upwards; where the far border rules, the ramp is up to three times as steep.
    assert (np.diff(row) >= 0).all()
    assert np.diff(row).max() <= 3


@pytest.mark.parametrize("name", ["m.png", "m.tif"])
@pytest.mark.parametrize("options", [{"tile_pixels": 1}, {"tile_pixels": 300 * 128}, {"cache_bytes": 0}])
def test_the_file_depends_neither_on_the_tiles_nor_on_the_cache(tmp_path, name, options):
    world = WORLDS["homographies"]
    pictures = [
        np.asarray(Image.open(mosaic_of(world, disc(), **chosen).save(tmp_path / name, scale=1.2)))
        for chosen in ({}, options)
    ]
    np.testing.assert_array_equal(*pictures)


def test_the_picture_does_not_depend_on_the_number_of_cores(monkeypatch):
    pictures = []
    for cores in (1, 7):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        pictures.append(mosaic_of(WORLDS["affine"]).image())
    np.testing.assert_array_equal(*pictures)


def test_neighbouring_tiles_decode_a_frame_once(tmp_path):
    world = WORLDS["affine"]
    reader = Frames({number: frame_of(matrix, WIDTH, HEIGHT) for number, matrix in world.items()})
    Mosaic(reader, world, WIDTH, HEIGHT, tile_pixels=1).save(tmp_path / "m.tif")
    assert sorted(reader.decoded) == sorted(world)


def test_a_tile_reads_only_the_frames_that_touch_it(tmp_path):
    world = {k: shift(0, 1000.0 * k) for k in range(5)}
    reader = Frames({number: frame_of(matrix, WIDTH, HEIGHT) for number, matrix in world.items()})
    Mosaic(reader, world, WIDTH, HEIGHT, tile_pixels=WIDTH * 64, cache_bytes=0).save(tmp_path / "m.png")
    # 64 rows a tile: frame k lies in rows 1000 k to 1000 k + 119.
    expected = [k for k in range(5) for _ in range(1000 * k // 64, (1000 * k + 119) // 64 + 1)]
    assert set(reader.decoded) == set(world)
    assert len(expected) <= len(reader.decoded) <= len(expected) + 5


@pytest.mark.parametrize("name", ["m.png", "m.tif"])
def test_memory_does_not_grow_with_the_mosaic(tmp_path, name):
    frame = frame_of(np.eye(3), WIDTH, HEIGHT)

    class Endless:
        def read_many(self, indices):
            return ((index, frame.copy()) for index in indices)

    def peak(side: int) -> int:
        world = {k: shift(140.0 * (k % side), 100.0 * (k // side)) for k in range(side * side)}
        mosaic = Mosaic(Endless(), world, WIDTH, HEIGHT, cache_bytes=20 * frame.nbytes, tile_pixels=2**18)
        tracemalloc.start()
        mosaic.save(tmp_path / name)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(2)
    assert peak(12) < 1.2 * peak(6)


@pytest.mark.parametrize(("max_size", "expected"), [(100, 100), (37, 37), (1, 1), (10**6, None)])
def test_a_preview_is_as_large_as_asked_but_never_enlarged(max_size, expected):
    mosaic = mosaic_of(WORLDS["shifts"])
    image = mosaic.image(max_size)
    assert max(image.shape[:2]) == (expected or mosaic.canvas().width)
    assert image.shape[2] == 4


def test_progress_counts_the_tiles_to_the_end(tmp_path):
    calls = []
    mosaic_of(WORLDS["shifts"], tile_pixels=2**14).save(
        tmp_path / "m.png", on_progress=lambda done, tiles: calls.append((done, tiles))
    )
    # 370 × 220 pixels in tiles of 256 × 64.
    assert calls == [(k, 8) for k in range(1, 9)]


def test_nothing_is_rendered_before_it_is_asked_for(tmp_path):
    world = WORLDS["shifts"]
    reader = Frames({})
    mosaic = Mosaic(reader, world, WIDTH, HEIGHT)
    mosaic.canvas()
    with pytest.raises(UsageError, match=r"\.png, \.tif"):
        mosaic.save(tmp_path / "m.gif")
    with pytest.raises(OutputError, match="absent"):
        mosaic.save(tmp_path / "absent" / "m.png")
    assert reader.decoded == []


def test_what_cannot_be_rendered_is_refused_in_one_line(tmp_path):
    reader = Frames({})
    with pytest.raises(UsageError, match=r"frame 3: its map has shape \(2, 3\)"):
        Mosaic(reader, {3: np.eye(2, 3)}, WIDTH, HEIGHT)
    with pytest.raises(UsageError, match="the mask has shape"):
        Mosaic(reader, {3: np.eye(3)}, WIDTH, HEIGHT, np.ones((3, 3), dtype=bool))
    with pytest.raises(InputError, match="the mask hides every pixel"):
        Mosaic(reader, {3: np.eye(3)}, WIDTH, HEIGHT, np.zeros((HEIGHT, WIDTH), dtype=bool))
    with pytest.raises(UsageError, match="no frames"):
        Mosaic(reader, {}, WIDTH, HEIGHT).save(tmp_path / "m.png")
    with pytest.raises(UsageError, match="max_size"):
        Mosaic(reader, {3: np.eye(3)}, WIDTH, HEIGHT).image(0)
    with pytest.raises(OutputError, match=r"frame 3: .*infinity"):
        Mosaic(reader, {3: tilt(-0.01, 0)}, WIDTH, HEIGHT).save(tmp_path / "m.png")
    assert list(tmp_path.iterdir()) == []
