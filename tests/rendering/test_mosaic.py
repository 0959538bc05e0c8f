from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tifffile
from PIL import Image

from smalti.errors import InputError, OutputError, UsageError
from smalti.rendering.mosaic import BLENDS, Mosaic
from tests.rendering.scene import Frames, colour_at, displacement, psnr, shift, tilt
from tests.rendering.worlds import (
    HEIGHT,
    WIDTH,
    WORLDS,
    canvas_points,
    count_views,
    disc,
    mosaic_of,
    paint_small,
    reader_of,
)


@cache
def looked_at(world: str) -> Mosaic:
    """A mosaic whose frames need not be looked at again."""
    return mosaic_of(WORLDS[world])


# The mean over 2.5 pixels flattens waves of 19 pixels by 3 %.
VIEWS = [
    *((blend, "homographies", 0.73, 44) for blend in BLENDS),
    ("none", "shifts", 1.0, 55),
    ("multiband", "affine", 1.9, 45),
]


@pytest.mark.parametrize(("blend", "world", "scale", "least_psnr"), VIEWS)
def test_the_mosaic_is_the_scene_and_its_alpha_the_coverage(blend, world, scale, least_psnr):
    mosaic = looked_at(world)
    canvas = mosaic.canvas(scale)
    image = mosaic.render(canvas, blend, even_light=False)
    covered = count_views(WORLDS[world], canvas) > 0
    np.testing.assert_array_equal(image[..., 3], np.where(covered, 255, 0))
    assert not image[~covered].any()
    x, y = canvas_points(canvas)
    shown = image[covered][:, :3]
    assert psnr(shown, colour_at(x, y)[covered]) > least_psnr
    assert abs(displacement(shown, x[covered], y[covered])).max() * scale < 0.003


@pytest.mark.parametrize("blend", BLENDS)
def test_light_that_is_even_already_is_left_as_it_is(blend):
    mosaic = looked_at("homographies")
    canvas = mosaic.canvas()
    image = mosaic.render(canvas, blend)
    x, y = canvas_points(canvas)
    covered = image[..., 3] > 0
    assert psnr(image[covered][:, :3], colour_at(x, y)[covered]) > 44


@pytest.mark.parametrize("blend", BLENDS)
def test_one_frame_is_copied_to_the_last_bit(tmp_path, blend):
    frame = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    mosaic = Mosaic(Frames({7: frame}), {7: shift(-30, 12)}, WIDTH, HEIGHT)
    image = np.asarray(Image.open(mosaic.save(tmp_path / "m.png", blend=blend)))
    np.testing.assert_array_equal(image[..., :3], frame)
    assert (image[..., 3] == 255).all()


def test_frames_on_whole_pixels_are_copied_where_they_are_shown():
    rng = np.random.default_rng(4)
    world = WORLDS["shifts"]
    frames = {k: rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8) for k in world}
    mosaic = Mosaic(Frames(frames), world, WIDTH, HEIGHT)
    image = mosaic.render(mosaic.canvas(), "none", even_light=False)[..., :3]
    copied = np.zeros(image.shape[:2], dtype=bool)
    for k, matrix in world.items():
        x, y = matrix[:2, 2].astype(int)
        copied[y : y + HEIGHT, x : x + WIDTH] |= (image[y : y + HEIGHT, x : x + WIDTH] == frames[k]).all(axis=2)
    assert copied.all()


@pytest.mark.parametrize("blend", BLENDS)
def test_there_is_no_fringe_at_the_border_nor_where_frames_meet(blend):
    world = WORLDS["homographies"]
    grey = Frames({number: np.full((HEIGHT, WIDTH, 3), 180, dtype=np.uint8) for number in world})
    image = Mosaic(grey, world, WIDTH, HEIGHT).image(blend=blend)
    assert (image[image[..., 3] > 0][:, :3] == 180).all()


@pytest.mark.parametrize("blend", BLENDS)
def test_what_the_mask_hides_does_not_bleed_into_the_mosaic(blend):
    world = WORLDS["affine"]
    frames = {number: np.where(disc()[..., None], np.uint8(180), np.uint8(0)).repeat(3, axis=2) for number in world}
    mosaic = Mosaic(Frames(frames), world, WIDTH, HEIGHT, disc())
    canvas = mosaic.canvas(0.3)
    image = mosaic.render(canvas, blend)
    covered = count_views(world, canvas, disc()) > 0
    np.testing.assert_array_equal(image[..., 3] > 0, covered)
    assert (image[covered][:, :3] == 180).all()


def test_feathered_frames_that_differ_in_brightness_are_mixed_without_a_step():
    world = {0: shift(0, 0), 1: shift(60, 0)}
    frames = {k: np.full((HEIGHT, WIDTH, 3), 100 + 60 * k, dtype=np.uint8) for k in world}
    mosaic = Mosaic(Frames(frames), world, WIDTH, HEIGHT)
    row = mosaic.render(mosaic.canvas(), "feather", even_light=False)[60, :, 0].astype(int)
    assert (row[:60] == 100).all()
    assert (row[160:] == 160).all()
    # 60 levels over 100 pixels, all upwards; where the far border rules, the ramp is up to three times as steep.
    assert (np.diff(row) >= 0).all()
    assert np.diff(row).max() <= 3


@pytest.mark.parametrize("blend", BLENDS)
def test_a_map_times_a_number_is_the_same_map(blend):
    world = WORLDS["homographies"]
    factors = {number: (-3.0, 0.2, 8.0)[number % 3] for number in world}
    pictures = [
        Mosaic(reader_of(world), maps, WIDTH, HEIGHT).image(blend=blend)
        for maps in (world, {number: factors[number] * world[number] for number in world})
    ]
    # The order of multiplications differs.
    assert np.mean(pictures[0] != pictures[1]) < 1e-3


@pytest.mark.parametrize(("scale", "region"), [(0.5, (36, 22, 333, 42))])
@pytest.mark.parametrize("blend", BLENDS)
def test_a_region_is_the_crop_of_the_whole(tmp_path, blend, scale, region):
    mosaic = looked_at("affine")
    canvas = mosaic.canvas(scale)
    whole = mosaic.render(canvas, blend)
    window = canvas.part(region)
    crop = whole[window.top : window.bottom, window.left : window.right]
    # Another mosaic, which has not seen the whole.
    path = mosaic_of(WORLDS["affine"]).save(tmp_path / "m.tif", blend=blend, scale=scale, region=region)
    np.testing.assert_array_equal(tifffile.imread(path), crop)


@pytest.mark.parametrize(("max_size", "expected"), [(100, 100), (1, 1), (10**6, None)])
def test_a_preview_is_as_large_as_asked_but_never_enlarged(max_size, expected):
    mosaic = mosaic_of(WORLDS["shifts"])
    image = mosaic.image(max_size)
    assert max(image.shape[:2]) == (expected or mosaic.canvas().width)
    assert image.shape[2] == 4


def test_progress_counts_frames_and_tiles_to_the_end(tmp_path, monkeypatch):
    paint_small(monkeypatch, 256)
    calls = []
    mosaic = mosaic_of(WORLDS["shifts"])
    for _ in range(2):
        mosaic.save(tmp_path / "m.png", on_progress=lambda done, steps: calls.append((done, steps)))
        # 12 frames, and 370 × 220 pixels in tiles of 256 × 64.
        assert calls == [(k, 20) for k in range(1, 21)]
        calls.clear()


def test_nothing_is_rendered_before_it_is_asked_for(tmp_path):
    reader = Frames({})
    mosaic = Mosaic(reader, WORLDS["shifts"], WIDTH, HEIGHT)
    mosaic.canvas()
    with pytest.raises(UsageError, match=r"m\.gif: .*\.png, .*\.tif"):
        mosaic.save(tmp_path / "m.gif")
    with pytest.raises(UsageError, match="unknown blend 'poisson': choose from multiband, feather, median, none"):
        mosaic.save(tmp_path / "m.png", blend="poisson")
    with pytest.raises(UsageError, match="region 999,0,10,10: the mosaic has 370 × 220"):
        mosaic.save(tmp_path / "m.png", region=(999, 0, 10, 10))
    assert reader.calls == []


@pytest.mark.parametrize("name", ["absent/m.png", "folder.png"])
def test_a_file_that_cannot_be_written_is_refused_before_frames_are_read(tmp_path, name):
    (tmp_path / "folder.png").mkdir()
    reader = reader_of(WORLDS["shifts"])
    with pytest.raises(OutputError, match=name):
        Mosaic(reader, WORLDS["shifts"], WIDTH, HEIGHT).save(tmp_path / name)
    assert reader.decoded == []


def test_what_cannot_be_rendered_is_refused_in_one_line(tmp_path):
    reader = Frames({})
    with pytest.raises(UsageError, match=r"frame 3: its map has shape \(2, 3\)"):
        Mosaic(reader, {3: np.eye(2, 3)}, WIDTH, HEIGHT)
    with pytest.raises(UsageError, match="the mask has shape"):
        Mosaic(reader, {3: np.eye(3)}, WIDTH, HEIGHT, np.ones((3, 3), dtype=bool))
    with pytest.raises(InputError, match="the mask hides every pixel"):
        Mosaic(reader, {3: np.eye(3)}, WIDTH, HEIGHT, np.zeros((HEIGHT, WIDTH), dtype=bool))
    with pytest.raises(UsageError, match="memory 100 MB: give 512 to 1048576"):
        Mosaic(reader, {3: np.eye(3)}, WIDTH, HEIGHT, memory_bytes=100 * 2**20)
    with pytest.raises(UsageError, match="no frames"):
        Mosaic(reader, {}, WIDTH, HEIGHT).save(tmp_path / "m.png")
    with pytest.raises(UsageError, match="max_size"):
        Mosaic(reader, {3: np.eye(3)}, WIDTH, HEIGHT).image(0)
    with pytest.raises(OutputError, match=r"frame 3: .*infinity"):
        Mosaic(reader, {3: tilt(-0.01, 0)}, WIDTH, HEIGHT).save(tmp_path / "m.png")
    assert list(tmp_path.iterdir()) == []


def test_a_video_that_does_not_fit_is_refused_by_the_frame_and_leaves_no_file(tmp_path):
    small = Frames({3: np.zeros((HEIGHT, WIDTH - 1, 3), dtype=np.uint8)})
    with pytest.raises(InputError, match=r"^frame 3: is uint8 of shape \(120, 159, 3\), expected uint8 of \(120, 160"):
        Mosaic(small, {3: np.eye(3)}, WIDTH, HEIGHT).save(tmp_path / "m.png")

    class Another:
        def read_many(self, indices):
            return ((index + 1, np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)) for index in indices)

    with pytest.raises(InputError, match=r"^frame 3: the reader gave frame 4 instead"):
        Mosaic(Another(), {3: np.eye(3)}, WIDTH, HEIGHT).save(tmp_path / "m.png")
    assert list(tmp_path.iterdir()) == []
