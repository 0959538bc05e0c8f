from __future__ import annotations

import json

import numpy as np
import pytest
import tifffile
from scipy.ndimage import gaussian_filter, map_coordinates

from smalti.errors import UnknownNameError, UsageError
from smalti.rendering.mosaic import Mosaic
from smalti.rendering.tone_curve import shown
from tests.rendering.scene import Frames, mapped
from tests.rendering.worlds import HEIGHT, WIDTH, WORLDS, canvas_points, count_views, disc, mosaic_of, reader_of


def unlike_frames(world) -> dict[int, np.ndarray]:
    """Smooth noise, another for each frame: every pixel tells the frame that it is from."""
    frames = {}
    for number in world:
        noise = np.random.default_rng(number).normal(0, 1, (HEIGHT, WIDTH, 3))
        smooth = gaussian_filter(noise, (3, 3, 0))
        frames[number] = np.rint(128 + 40 * smooth / smooth.std()).clip(20, 235).astype(np.uint8)
    return frames


def spread_of(world) -> dict[int, np.ndarray]:
    """Positive definite forms, another for each frame."""
    forms = {}
    for number in world:
        root = np.random.default_rng(number).normal(0, 1, (6, 6)) * [1.0, 0.01, 0.01, 1e-4, 1e-4, 1e-4]
        forms[number] = root.T @ root
    return forms


@pytest.mark.parametrize(
    ("scale", "region", "masked"), [(1.0, None, True), (1.3, None, False), (1.0, (61, 33, 150, 99), False)]
)
def test_the_source_map_leads_back_to_the_pixel_that_is_shown(tmp_path, scale, region, masked):
    world, mask = WORLDS["homographies"], disc() if masked else None
    frames = unlike_frames(world)
    mosaic = Mosaic(Frames(frames), world, WIDTH, HEIGHT, mask)
    image = tifffile.imread(mosaic.save(tmp_path / "m.tif", blend="none", scale=scale, region=region))
    source_path, json_path = mosaic.save_maps(tmp_path / "m.tif", ["source"], scale=scale, region=region)
    source, way = tifffile.imread(source_path), json.loads(json_path.read_text())
    np.testing.assert_array_equal(source > 0, image[..., 3] > 0)
    assert (way["width"], way["height"]) == (image.shape[1], image.shape[0])
    assert (way["frame_width"], way["frame_height"]) == (WIDTH, HEIGHT)
    gains = mosaic._layout.plan().exposure
    wrong = total = 0
    for entry in way["frames"]:
        rows, columns = np.nonzero(source == entry["value"])
        u, v = mapped(np.array(entry["frame_from_canvas"]), columns, rows)
        light = gains.light(list(world).index(entry["frame"]))
        table = light.table_from_pixels(np.eye(3))
        at = [table[1, 0] * v + table[1, 1], table[0, 0] * u + table[0, 1]]
        bright = map_coordinates(light.flatness, at, order=1)
        inner = (u > 2) & (u < WIDTH - 3) & (v > 2) & (v < HEIGHT - 3)
        if masked:
            assert disc()[np.rint(v).astype(int), np.rint(u).astype(int)].all()
            inner &= np.hypot(u - 80, v - 60) < 52
        for channel in range(3):
            plane = frames[entry["frame"]][..., channel].astype(float)
            corrected = map_coordinates(plane, [v, u], order=3) * bright * light.gains[channel]
            expected = np.array([shown(value, gains.white) for value in corrected.astype(np.float32)]).clip(0, 255)
            wrong += (abs(image[rows, columns, channel] - expected) > 2)[inner].sum()
            total += inner.sum()
    assert total > 10_000
    assert wrong < 1e-3 * total


def test_the_source_map_counts_from_one_and_zero_is_no_frame(tmp_path):
    world = WORLDS["affine"]
    mosaic = mosaic_of(world)
    canvas = mosaic.canvas()
    source = tifffile.imread(mosaic.save_maps(tmp_path / "m.png", ["source"])[0])
    assert source.dtype == np.uint32
    np.testing.assert_array_equal(source.astype(int) - 1, mosaic.maps(canvas).source)
    assert set(np.unique(source)) <= {0} | {number + 1 for number in world}


@pytest.mark.parametrize(
    ("world", "mask"), [("shifts", None), ("affine", disc()), ("homographies", None), ("homographies", disc())]
)
def test_the_coverage_is_the_number_of_frames_that_see_a_pixel(world, mask):
    mosaic = mosaic_of(WORLDS[world], mask)
    canvas = mosaic.canvas(0.8)
    np.testing.assert_array_equal(mosaic.maps(canvas).coverage, count_views(WORLDS[world], canvas, mask))


def test_the_uncertainty_is_the_root_of_the_quadratic_form_of_the_frame_that_is_shown():
    world = WORLDS["homographies"]
    mosaic, spread = mosaic_of(world), spread_of(world)
    del spread[5]
    canvas = mosaic.canvas(0.9)
    maps = mosaic.maps(canvas, spread)
    expected = np.full(maps.source.shape, np.nan)
    for number, form in spread.items():
        u, v = mapped(np.linalg.inv(world[number]), *canvas_points(canvas))
        point = np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=-1)
        expected = np.where(maps.source == number, np.sqrt(np.einsum("hwi,ij,hwj->hw", point, form, point)), expected)
    assert (maps.source == 5).any()
    np.testing.assert_allclose(maps.uncertainty, expected, rtol=1e-5)


def test_maps_have_the_geometry_of_the_picture(tmp_path, monkeypatch):
    monkeypatch.setattr("smalti.rendering.mosaic.MAP_ROWS", 64)
    world = WORLDS["affine"]
    mosaic, spread = mosaic_of(world), spread_of(world)
    options = {"scale": 0.7, "region": (40.0, 30.0, 200.0, 180.0)}
    canvas = mosaic.canvas(0.7)
    window = canvas.part(options["region"]).slices_in(canvas.window)
    written = mosaic.save_maps(tmp_path / "m.png", ["coverage", "uncertainty", "source"], spread=spread, **options)
    assert [path.name for path in written] == ["m.coverage.tif", "m.uncertainty.tif", "m.source.tif", "m.frames.json"]
    maps = mosaic.maps(canvas, spread)
    rasters = [tifffile.imread(path) for path in written[:3]]
    assert [raster.dtype for raster in rasters] == [np.uint16, np.float32, np.uint32]
    np.testing.assert_array_equal(rasters[0], maps.coverage[window])
    np.testing.assert_array_equal(rasters[1], maps.uncertainty[window])
    np.testing.assert_array_equal(rasters[2].astype(int) - 1, maps.source[window])


def test_maps_stand_beside_files_with_two_extensions(tmp_path):
    mosaic = mosaic_of({0: np.eye(3)})
    assert mosaic.save_maps(tmp_path / "m.ome.tif", ["coverage"]) == [tmp_path / "m.coverage.tif"]


def test_maps_of_different_pictures_have_different_names(tmp_path):
    mosaic = mosaic_of({0: np.eye(3)})
    assert mosaic.save_maps(tmp_path / "m.1.png", ["coverage"]) != mosaic.save_maps(tmp_path / "m.2.png", ["coverage"])


def test_maps_of_coverage_read_no_frames(tmp_path):
    reader = reader_of(WORLDS["affine"])
    Mosaic(reader, WORLDS["affine"], WIDTH, HEIGHT).save_maps(tmp_path / "m.png", ["coverage"])
    assert reader.decoded == []


def test_a_map_that_there_is_not_is_refused_in_one_line(tmp_path):
    mosaic = Mosaic(Frames({}), WORLDS["shifts"], WIDTH, HEIGHT)
    with pytest.raises(UnknownNameError, match="unknown map 'depth': choose from source, uncertainty, coverage"):
        mosaic.save_maps(tmp_path / "m.png", ["coverage", "depth"])
    with pytest.raises(UsageError, match="uncertainty needs the spread"):
        mosaic.save_maps(tmp_path / "m.png", ["uncertainty"])
    assert list(tmp_path.iterdir()) == []
