"""Maps over the mosaic, as rasters and as colours."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from smalti.rendering.pixel_maps import MosaicMaps
from smalti.report.report_pictures import (
    COVERAGE,
    MOST_NUMBERS,
    STEPS,
    UNCERTAINTY,
    _round_up,
    colour_numbers,
    encode_raster,
    make_maps,
    shade,
)


def decode(address: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,"))))


def rasters(height: int = 60, width: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frames 3, 7 and 40 side by side below a strip that none shows; surer on the left."""
    source = np.repeat(np.array([3, 7, 40], dtype=np.int32), width // 3)[None].repeat(height, axis=0)
    coverage = np.tile(np.arange(width) % 4 + 1, (height, 1)).astype(np.uint16)
    uncertainty = np.tile(np.linspace(0.0, 8.0, width), (height, 1)).astype(np.float32)
    source[:5], coverage[:5], uncertainty[:5] = -1, 0, np.nan
    return source, coverage, uncertainty


def by_kind(*layers: np.ndarray, most_bytes: int = 10**6) -> dict:
    return {one.kind: one for one in make_maps(MosaicMaps(*layers), relative_to=7, most_bytes=most_bytes)}


def test_an_indexed_raster_is_what_went_in_and_0_is_transparent():
    rng = np.random.default_rng(1)
    indices, palette = rng.integers(0, 9, (20, 31), dtype=np.uint8), rng.integers(0, 256, (9, 3), dtype=np.uint8)
    found = np.asarray(decode(encode_raster(indices, palette)).convert("RGBA"))
    assert np.array_equal(found[..., :3], palette[indices])
    assert np.array_equal(found[..., 3] > 0, indices > 0)


def test_a_coloured_raster_is_what_went_in_and_black_is_transparent():
    colours = np.random.default_rng(2).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    colours[2, 3] = 0
    found = np.asarray(decode(encode_raster(colours)).convert("RGBA"))
    assert np.array_equal(found[..., :3], colours)
    assert np.array_equal(np.argwhere(found[..., 3] == 0), [[2, 3]])


@pytest.mark.parametrize("name", [UNCERTAINTY, COVERAGE])
def test_scales_grow_lighter_from_one_end_to_the_other(name):
    lightness = shade(name, np.linspace(0.0, 1.0, 32)) @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(lightness) > 0).all()


def test_a_frames_number_can_be_read_from_its_colour():
    colours = colour_numbers(MOST_NUMBERS + 1).astype(int) & 31
    assert np.array_equal(colours @ [1024, 32, 1], np.arange(MOST_NUMBERS + 1))


def test_frames_that_follow_each_other_differ_in_colour():
    colours = colour_numbers(300).astype(float)[1:]
    for ahead in range(1, 7):
        assert np.linalg.norm(colours[ahead:] - colours[:-ahead], axis=1).min() > 40


def test_the_map_of_uncertainty_goes_by_its_root_and_leaves_out_what_is_not_known():
    source, coverage, uncertainty = rasters()
    found = by_kind(source, coverage, uncertainty)["uncertainty"]
    top = float(found.numbers["data_top"])
    assert top == 8.0  # the 99th percentile of 0 to 8, rounded up to two digits
    indices = np.asarray(decode(found.address))
    assert not indices[:5].any()
    expected = 1 + np.rint(np.sqrt(uncertainty[5:] / top) * (STEPS - 1))
    assert np.array_equal(indices[5:], expected)
    drawn = np.asarray(decode(found.address).convert("RGB"))
    assert np.array_equal(drawn[9, 0], shade(UNCERTAINTY, np.array([0.0]))[0])
    assert np.array_equal(drawn[9, -1], shade(UNCERTAINTY, np.array([1.0]))[0])
    # A quarter of the top is half way along the colours, where its mark stands.
    assert [mark in found.scale for mark in (">0 px<", ">2 px<", ">8 px<")] == [True] * 3


def test_a_few_places_that_are_far_worse_leave_the_scale_to_the_others():
    source, coverage, uncertainty = rasters()
    uncertainty[20, 20:23] = 900.0
    found = by_kind(source, coverage, uncertainty)["uncertainty"]
    assert float(found.numbers["data_top"]) == 8.0
    assert ">8 px or more<" in found.scale
    assert np.asarray(decode(found.address))[20, 21] == STEPS


def test_a_mosaic_that_is_known_for_sure_has_a_scale_too():
    source, coverage, uncertainty = rasters()
    found = by_kind(source, coverage, 0 * uncertainty)["uncertainty"]
    assert set(np.unique(np.asarray(decode(found.address)))) == {0, 1}


def test_where_nothing_is_known_of_it_there_is_no_map_of_uncertainty():
    source, coverage, uncertainty = rasters()
    assert list(by_kind(source, coverage, np.full_like(uncertainty, np.nan))) == ["source", "coverage"]


def test_the_map_of_frames_has_a_colour_each_and_tells_their_numbers():
    source, coverage, uncertainty = rasters()
    found = by_kind(source, coverage, uncertainty)["source"]
    colours = np.asarray(decode(found.address).convert("RGBA"))
    assert not colours[:5].any()
    assert len(np.unique(colours[5:].reshape(-1, 4), axis=0)) == 3
    ranks = (colours[5:, :, :3] & 31) @ np.array([1024, 32, 1])
    numbers = np.array(found.numbers["data_frames"].split(), dtype=int)
    assert np.array_equal(numbers[ranks - 1], source[5:])
    assert "3 frames, one colour each" in found.meaning


def test_the_map_of_frames_needs_no_place_that_none_shows():
    source, coverage, uncertainty = (layer[5:] for layer in rasters())
    found = by_kind(source, coverage, uncertainty)["source"]
    assert found.numbers["data_frames"] == "3 7 40"
    assert (np.asarray(decode(found.address).convert("RGBA"))[..., 3] == 255).all()


def test_the_map_of_coverage_counts_the_frames():
    source, coverage, uncertainty = rasters()
    coverage[30, 30] = 1000
    found = by_kind(source, coverage, uncertainty)["coverage"]
    assert np.array_equal(np.asarray(decode(found.address)), np.minimum(coverage, 255))
    drawn = np.asarray(decode(found.address).convert("RGB"))
    assert np.array_equal(drawn[9, 0], shade(COVERAGE, np.array([0.0]))[0])
    assert np.array_equal(drawn[9, 3], shade(COVERAGE, np.array([1.0]))[0])
    assert ">1 frame<" in found.scale
    assert ">4 frames or more<" in found.scale


def test_maps_are_as_coarse_as_it_takes_to_fit():
    source, coverage, uncertainty = rasters(300, 300)
    uncertainty[5:] = np.random.default_rng(1).uniform(0.0, 9.0, (295, 300))
    fine, small = by_kind(source, coverage, uncertainty), by_kind(source, coverage, uncertainty, most_bytes=30_000)
    assert sum(len(one.address) for one in small.values()) <= 30_000 < sum(len(one.address) for one in fine.values())
    assert decode(fine["source"].address).size == (300, 300)
    assert {decode(one.address).size for one in small.values()} in ({(150, 150)}, {(100, 100)})


def test_the_top_of_a_scale_has_two_digits():
    assert [_round_up(value) for value in (0.0, 4.61, 0.0123, 4321.0, 2.0)] == pytest.approx([1, 4.7, 0.013, 4400, 2])
