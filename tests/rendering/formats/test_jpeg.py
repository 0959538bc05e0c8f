from __future__ import annotations

import io
from itertools import pairwise

import cv2
import numpy as np
import pytest
from PIL import Image

from smalti.errors import OutputError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.png_jpeg import encode_jpeg, write_jpeg
from tests.rendering.formats.pictures import bands_of, on_white, opened, photograph, picture

# More than eight strips need their markers counted round; the last strip is of any height, also in the last block.
SIZES = pytest.mark.parametrize(
    ("width", "height", "rows"), [(1, 1, 64), (333, 257, 64), (640, 64 * 11, 128), (50, 700, 512)]
)


@SIZES
def test_a_jpeg_joined_of_strips_is_the_one_encoded_at_once(tmp_path, width, height, rows):
    image = picture(width, height)
    write_jpeg(tmp_path / "m.jpg", bands_of(image, rows), Caption())
    (tmp_path / "whole.jpg").write_bytes(encode_jpeg(image))
    # Both readers are strict: a marker out of turn would cost the rest of the image.
    np.testing.assert_array_equal(opened(tmp_path / "m.jpg"), opened(tmp_path / "whole.jpg"))
    joined, whole = (cv2.imread(str(tmp_path / name)) for name in ("m.jpg", "whole.jpg"))
    np.testing.assert_array_equal(joined, whole)


@pytest.mark.parametrize(("width", "height", "rows"), [(333, 257, 64), (50, 700, 512)])
def test_a_jpeg_decodes_as_one_that_pillow_encodes_within_a_level(tmp_path, width, height, rows):
    image = photograph(width, height)
    write_jpeg(tmp_path / "m.jpg", bands_of(image, rows), Caption())
    direct = io.BytesIO()
    Image.fromarray(on_white(image)).save(direct, "JPEG", quality=90)
    with Image.open(direct) as whole:
        difference = np.abs(opened(tmp_path / "m.jpg").astype(int) - np.asarray(whole))
    assert difference.max() <= 1


def test_a_jpeg_has_a_restart_marker_between_strips_in_turn(tmp_path):
    write_jpeg(tmp_path / "m.jpg", bands_of(picture(100, 64 * 10), 64), Caption())
    content = (tmp_path / "m.jpg").read_bytes()
    scan = content[content.index(b"\xff\xda") :]
    markers = [b for a, b in pairwise(scan) if a == 0xFF and 0xD0 <= b <= 0xD7]
    assert markers == [0xD0 + k % 8 for k in range(9)]


def test_a_jpeg_is_white_where_the_mosaic_is_transparent(tmp_path):
    image = np.zeros((64, 64, 4), dtype=np.uint8)
    image[:, 32:] = (200, 0, 0, 255)
    write_jpeg(tmp_path / "m.jpg", bands_of(image), Caption())
    decoded = opened(tmp_path / "m.jpg").astype(int)
    assert np.abs(decoded[:, :24] - 255).max() <= 2
    assert np.abs(decoded[:, 40:] - (200, 0, 0)).max() <= 4


def test_the_widest_jpeg_there_is_can_be_read(tmp_path):
    image = np.zeros((80, 65_500, 4), dtype=np.uint8)
    image[..., 3] = 255
    image[70:, 65_000:, 1] = 255
    write_jpeg(tmp_path / "m.jpg", bands_of(image), Caption())
    decoded = opened(tmp_path / "m.jpg").astype(int)
    assert decoded.shape == (80, 65_500, 3)
    assert np.abs(decoded[75, 65_250] - (0, 255, 0)).max() <= 3
    assert np.abs(decoded[20, 65_250]).max() <= 3


@pytest.mark.parametrize(("width", "height"), [(65_501, 10), (10, 65_501)])
def test_a_mosaic_too_large_for_jpeg_is_refused_before_it_is_rendered_and_tiff_named(tmp_path, width, height):
    def never():
        raise AssertionError("rendered in vain")
        yield

    with pytest.raises(OutputError, match=rf"m\.jpg: {width} × {height} pixels.*\.tif"):
        write_jpeg(tmp_path / "m.jpg", Bands(width, height, 64, never()), Caption())
    assert list(tmp_path.iterdir()) == []
