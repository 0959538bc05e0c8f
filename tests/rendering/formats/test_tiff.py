from __future__ import annotations

from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image

from smalti.errors import UsageError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.tiff import write_map, write_tiff
from tests.rendering.formats.pictures import bands_of, halved, opened, picture

OME = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"


def pixels_element(path) -> ElementTree.Element:
    with tifffile.TiffFile(path) as tiff:
        element = ElementTree.fromstring(tiff.pages[0].description).find(f"{OME}Image/{OME}Pixels")
    assert element is not None
    return element


@pytest.mark.parametrize(("width", "height", "rows"), [(1, 1, 64), (300, 257, 64), (256, 256, 256)])
def test_a_tiff_holds_the_pixels(tmp_path, width, height, rows):
    image = picture(width, height)
    write_tiff(tmp_path / "m.tif", bands_of(image, rows), Caption())
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "m.tif"), image)
    np.testing.assert_array_equal(opened(tmp_path / "m.tif"), image)


def test_a_tiff_is_tiled_deflated_and_its_alpha_unassociated(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(600, 530), 64), Caption())
    with tifffile.TiffFile(tmp_path / "m.tif") as tiff:
        assert not tiff.is_bigtiff
        for page in (level.keyframe for level in tiff.series[0].levels):
            assert (page.tilewidth, page.tilelength) == (256, 256)
            assert page.compression == tifffile.COMPRESSION.ADOBE_DEFLATE
            assert page.extrasamples == (tifffile.EXTRASAMPLE.UNASSALPHA,)
            assert page.photometric == tifffile.PHOTOMETRIC.RGB


@pytest.mark.parametrize(("width", "height", "rows"), [(1030, 5, 256), (700, 2049, 1024)])
def test_every_level_of_a_tiff_is_the_mean_of_the_one_before_down_to_512(tmp_path, width, height, rows):
    expected = picture(width, height)
    write_tiff(tmp_path / "m.tif", bands_of(expected, rows), Caption())
    with tifffile.TiffFile(tmp_path / "m.tif") as tiff:
        assert len(tiff.series) == 1
        levels = tiff.series[0].levels
        for level in levels:
            np.testing.assert_array_equal(level.asarray(), expected)
            last, expected = expected, halved(expected)
        assert max(last.shape) <= 512 < 2 * max(last.shape)
        assert [page.subfiletype for page in tiff.pages[0].pages] == [1] * (len(levels) - 1)


def test_a_small_tiff_has_one_level(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(512, 300)), Caption())
    with tifffile.TiffFile(tmp_path / "m.tif") as tiff:
        assert len(tiff.series[0].levels) == 1


def test_a_tiff_describes_itself_as_ome_does(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(700, 90)), Caption("la « mosaïque » <1>", pixel_size_um=12.5))
    with tifffile.TiffFile(tmp_path / "m.tif") as tiff:
        assert tiff.is_ome
        assert tiff.series[0].kind == "ome"
        assert tiff.series[0].name == "la « mosaïque » <1>"
        assert tiff.series[0].axes == "YXS"
    pixels = pixels_element(tmp_path / "m.tif")
    sizes = {name: pixels.get(name) for name in ("SizeX", "SizeY", "SizeC", "SizeZ", "SizeT", "Type")}
    assert sizes == {"SizeX": "700", "SizeY": "90", "SizeC": "4", "SizeZ": "1", "SizeT": "1", "Type": "uint8"}
    assert [channel.get("SamplesPerPixel") for channel in pixels.findall(f"{OME}Channel")] == ["4"]
    assert (pixels.get("PhysicalSizeX"), pixels.get("PhysicalSizeYUnit")) == ("12.5", "µm")


def test_the_size_of_a_pixel_is_taken_from_its_place_in_the_world(tmp_path):
    caption = Caption(world_from_pixel=((0.03, 0.0, 5.0), (0.04, -0.02, 7.0)))
    write_tiff(tmp_path / "m.tif", bands_of(picture(70, 90)), caption)
    pixels = pixels_element(tmp_path / "m.tif")
    assert float(pixels.get("PhysicalSizeX")) == pytest.approx(50_000)
    assert float(pixels.get("PhysicalSizeY")) == pytest.approx(20_000)


def test_without_a_known_size_of_a_pixel_none_is_claimed(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(70, 90)), Caption())
    assert "PhysicalSizeX" not in pixels_element(tmp_path / "m.tif").attrib


# With a third for the pyramid, 28 300² pixels of 4 bytes are 4 GB.
@pytest.mark.parametrize(("side", "big"), [(27_500, False), (28_500, True)])
def test_a_tiff_beyond_four_gigabytes_is_a_big_one(tmp_path, monkeypatch, side, big):
    chosen = []

    def refuse(file, bigtiff):
        chosen.append(bigtiff)
        raise KeyboardInterrupt

    monkeypatch.setattr(tifffile, "TiffWriter", refuse)
    with pytest.raises(KeyboardInterrupt):
        write_tiff(tmp_path / "m.tif", Bands(side, side, 64, iter([np.zeros((1, 1, 4), dtype=np.uint8)])), Caption())
    assert chosen == [big]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.float32])
def test_a_map_holds_its_values_and_levels_of_values_that_there_are(tmp_path, dtype):
    rng = np.random.default_rng(0)
    values = (rng.random((1100, 700)) * 60000).astype(dtype)
    write_map(tmp_path / "m.tif", bands_of(values), Caption(pixel_size_um=3.0))
    with tifffile.TiffFile(tmp_path / "m.tif") as tiff:
        assert tiff.is_ome
        assert tiff.series[0].axes == "YX"
        first, second, third = (level.asarray() for level in tiff.series[0].levels)
    assert first.dtype == dtype
    np.testing.assert_array_equal(first, values)
    np.testing.assert_array_equal(second, values[::2, ::2])
    np.testing.assert_array_equal(third, values[::4, ::4])


def test_a_map_is_read_by_others(tmp_path):
    values = np.arange(300 * 200, dtype=np.float32).reshape(300, 200) / 7
    write_map(tmp_path / "m.tif", bands_of(values), Caption())
    np.testing.assert_array_equal(opened(tmp_path / "m.tif"), values)
    np.testing.assert_array_equal(cv2.imread(str(tmp_path / "m.tif"), cv2.IMREAD_UNCHANGED), values)


def test_a_map_keeps_what_is_not_a_number(tmp_path):
    values = np.full((70, 80), np.nan, dtype=np.float32)
    write_map(tmp_path / "m.tif", bands_of(values), Caption())
    assert np.isnan(tifffile.imread(tmp_path / "m.tif")).all()


def test_a_map_under_another_extension_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"m\.png: a map is written as \.tif"):
        write_map(tmp_path / "m.png", bands_of(np.zeros((3, 3), dtype=np.uint16)), Caption())


def test_pillow_sees_the_mosaic_first_and_not_its_levels(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(1200, 100)), Caption())
    with Image.open(tmp_path / "m.tif") as tiff:
        assert tiff.size == (1200, 100)
        assert tiff.n_frames == 1
