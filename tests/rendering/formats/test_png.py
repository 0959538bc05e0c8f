from __future__ import annotations

import zlib

import cv2
import numpy as np
import pytest
from PIL import Image

from smalti.rendering.formats.bands import Caption
from smalti.rendering.formats.png_jpeg import write_png
from tests.rendering.formats.pictures import bands_of, picture


@pytest.mark.parametrize(("width", "height"), [(1, 1), (300, 257), (70000, 40)])
def test_a_png_holds_the_pixels(tmp_path, width, height):
    image = picture(width, height)
    write_png(tmp_path / "m.png", bands_of(image), Caption())
    with Image.open(tmp_path / "m.png") as png:
        # Pillow checks every chunk's checksum and that of the stream.
        assert png.mode == "RGBA"
        np.testing.assert_array_equal(np.asarray(png), image)
    decoded = cv2.imread(str(tmp_path / "m.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(decoded[..., [2, 1, 0, 3]], image)


def test_the_stream_of_a_png_ends_with_its_checksum(tmp_path):
    image = picture(400, 900)
    write_png(tmp_path / "m.png", bands_of(image), Caption())
    content, stream, at = (tmp_path / "m.png").read_bytes(), b"", 8
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        if content[at + 4 : at + 8] == b"IDAT":
            stream += content[at + 8 : at + 8 + length]
        at += 12 + length
    # zlib refuses a stream whose checksum is wrong.
    assert len(zlib.decompress(stream)) == 900 * (1 + 4 * 400)
