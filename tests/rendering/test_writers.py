from __future__ import annotations

import os
import resource
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image

from smalti.errors import OutputError, UsageError
from smalti.rendering import writers
from smalti.rendering.writers import Bands, write_png, write_tiff, writer_for

WRITERS = pytest.mark.parametrize(("write", "name"), [(write_png, "m.png"), (write_tiff, "m.tif")])


def picture(width: int, height: int) -> np.ndarray:
    """Smooth colours, noise, and every alpha."""
    image = np.random.default_rng(1).integers(0, 256, (height, width, 4), dtype=np.uint8)
    image[: height // 2, :, :3] = (np.arange(width) % 256)[None, :, None]
    return image


def bands_of(image: np.ndarray, rows: int) -> Bands:
    return Bands(image.shape[1], image.shape[0], rows, (image[top : top + rows] for top in range(0, len(image), rows)))


@pytest.mark.parametrize(("width", "height"), [(1, 1), (300, 257), (256, 512), (70000, 40)])
def test_a_png_holds_the_pixels(tmp_path, width, height):
    image = picture(width, height)
    write_png(tmp_path / "m.png", bands_of(image, 64))
    with Image.open(tmp_path / "m.png") as png:
        # Pillow checks every chunk's checksum and that of the stream.
        assert png.mode == "RGBA"
        np.testing.assert_array_equal(np.asarray(png), image)
    decoded = cv2.imread(str(tmp_path / "m.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(decoded[..., [2, 1, 0, 3]], image)


def test_the_stream_of_a_png_ends_with_its_checksum(tmp_path):
    image = picture(400, 900)
    write_png(tmp_path / "m.png", bands_of(image, 64))
    content, stream, at = (tmp_path / "m.png").read_bytes(), b"", 8
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        if content[at + 4 : at + 8] == b"IDAT":
            stream += content[at + 8 : at + 8 + length]
        at += 12 + length
    # zlib refuses a stream whose checksum is wrong.
    assert len(writers.zlib.decompress(stream)) == 900 * (1 + 4 * 400)


@pytest.mark.parametrize(("width", "height", "rows"), [(1, 1, 64), (300, 257, 64), (600, 530, 512), (256, 256, 256)])
def test_a_tiff_holds_the_pixels(tmp_path, width, height, rows):
    image = picture(width, height)
    write_tiff(tmp_path / "m.tif", bands_of(image, rows))
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "m.tif"), image)
    with Image.open(tmp_path / "m.tif") as tiff:
        np.testing.assert_array_equal(np.asarray(tiff), image)


def test_a_tiff_is_tiled_deflated_and_its_alpha_unassociated(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(600, 530), 256))
    with tifffile.TiffFile(tmp_path / "m.tif") as tiff:
        page = tiff.pages[0]
        assert (page.tilewidth, page.tilelength) == (256, 256)
        assert page.compression == tifffile.COMPRESSION.ADOBE_DEFLATE
        assert page.extrasamples == (tifffile.EXTRASAMPLE.UNASSALPHA,)
        assert page.photometric == tifffile.PHOTOMETRIC.RGB
        assert not tiff.is_bigtiff


@pytest.mark.parametrize(("side", "big"), [(32000, False), (33000, True)])
def test_a_tiff_beyond_four_gigabytes_is_a_big_one(tmp_path, monkeypatch, side, big):
    chosen = []

    def refuse(file, bigtiff):
        chosen.append(bigtiff)
        raise KeyboardInterrupt

    monkeypatch.setattr(tifffile, "TiffWriter", refuse)
    with pytest.raises(KeyboardInterrupt):
        write_tiff(tmp_path / "m.tif", Bands(side, side, 64, iter([])))
    assert chosen == [big]


def test_the_extension_chooses_the_writer():
    assert writer_for(Path("a.png")) is write_png
    assert writer_for(Path("a.TIF")) is writer_for(Path("a.tiff")) is write_tiff


@pytest.mark.parametrize("name", ["a.jpg", "a"])
def test_another_extension_is_refused_with_those_there_are(name):
    with pytest.raises(UsageError, match=rf"^{name}: .*\.png, \.tif, \.tiff"):
        writer_for(Path(name))


@WRITERS
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError])
def test_what_fails_midway_leaves_the_folder_as_it_was(tmp_path, write, name, error):
    (tmp_path / name).write_text("the mosaic of yesterday")

    def failing():
        yield np.zeros((64, 300, 4), dtype=np.uint8)
        yield np.zeros((64, 300, 4), dtype=np.uint8)
        assert len(list(tmp_path.iterdir())) == 2
        raise error("the reader's own words")

    # An error of the reader is not one of the file that is written.
    with pytest.raises(error, match="the reader's own words"):
        write(tmp_path / name, Bands(300, 1000, 64, failing()))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "the mosaic of yesterday"


@WRITERS
def test_an_earlier_file_is_replaced(tmp_path, write, name):
    (tmp_path / name).write_text("the mosaic of yesterday")
    write(tmp_path / name, bands_of(picture(30, 20), 64))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with Image.open(tmp_path / name) as image:
        assert image.size == (30, 20)


@WRITERS
def test_a_disk_without_room_is_one_line_that_names_the_file(tmp_path, write, name):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        noise = np.random.default_rng(0).integers(0, 256, (1024, 1024, 4), dtype=np.uint8)
        with pytest.raises(OutputError, match=rf"{name}: cannot be written \(File too large\)") as caught:
            write(tmp_path / name, bands_of(noise, 256))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@WRITERS
def test_a_folder_that_is_absent_is_named(tmp_path, write, name):
    with pytest.raises(OutputError, match=f"absent/{name}: cannot be written"):
        write(tmp_path / "absent" / name, bands_of(picture(3, 2), 64))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@WRITERS
def test_a_folder_one_may_not_write_to_is_named(tmp_path, write, name):
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(OutputError, match=f"{name}: cannot be written .Permission"):
            write(tmp_path / name, bands_of(picture(3, 2), 64))
    finally:
        tmp_path.chmod(0o755)


@WRITERS
def test_a_folder_in_the_place_of_the_file_is_refused_before_anything_is_rendered(tmp_path, write, name):
    (tmp_path / name).mkdir()

    def never():
        raise AssertionError("rendered in vain")
        yield

    with pytest.raises(OutputError, match=f"{name}: is a folder"):
        write(tmp_path / name, Bands(10, 10, 64, never()))
