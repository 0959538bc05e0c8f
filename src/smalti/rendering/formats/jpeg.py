"""JPEG, encoded in strips on all cores and joined by restart markers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import OutputError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.encoding import encoding
from smalti.rendering.formats.files import replacing
from smalti.rendering.formats.georeference import place_world_file

MAX_SIDE = 65_500
"""Pixels; what libjpeg, hence nearly every program, reads."""


def write_jpeg(path: Path, image: Bands, caption: Caption) -> None:
    """Write a baseline JPEG, white where the image is transparent, and its world file.

    A decoder begins anew at a restart marker, as an encoder does at the top of an image. So strips of one height, each
    encoded as an image of its own, are the intervals between the markers of the whole.
    """
    if max(image.width, image.height) > MAX_SIDE:
        raise OutputError(
            f"{path}: {image.width} × {image.height} pixels, and a JPEG has at most {MAX_SIDE} a side: "
            "choose a name that ends in .tif, or a smaller scale"
        )

    def split(band: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        return (band[row : row + _STRIP_ROWS] for row in range(0, len(band), _STRIP_ROWS))

    with replacing(path) as file, encoding(image.pixels, split, encode_jpeg) as strips:
        for number, strip in enumerate(strips):
            frame, scan = _find_segments(strip)
            if number == 0:
                header = bytearray(strip[:scan])
                struct.pack_into(">H", header, frame + 5, image.height)
                blocks = -(-image.width // _BLOCK) * (_STRIP_ROWS // _BLOCK)
                file.write(header + struct.pack(">HHH", 0xFFDD, 4, blocks))
                file.write(strip[scan:-2])
            else:
                (length,) = struct.unpack_from(">H", strip, scan + 2)
                file.write(bytes([0xFF, 0xD0 + (number - 1) % 8]))
                file.write(strip[scan + 2 + length : -2])
        file.write(b"\xff\xd9")
    place_world_file(path, caption)


def encode_jpeg(pixels: NDArray[np.uint8]) -> bytes:
    """Return RGBA pixels on white as a small JPEG, baseline, with the standard Huffman tables."""
    blue_green_red = np.empty((*pixels.shape[:2], 3), dtype=np.uint8)
    _flatten(pixels, blue_green_red)
    # Pillow's encoder would keep the other cores waiting.
    return cv2.imencode(".jpg", blue_green_red, _SETTINGS)[1].tobytes()


# A pixel block that is encoded as a whole, with the colours at half resolution.
_BLOCK = 16
# A band is made of such strips, and the blocks of one are counted by 16 bits.
_STRIP_ROWS = 64
_SETTINGS = (
    *(cv2.IMWRITE_JPEG_QUALITY, 90),
    *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420),
    *(cv2.IMWRITE_JPEG_PROGRESSIVE, 0),
    # Tables made for a strip would not be those of the others.
    *(cv2.IMWRITE_JPEG_OPTIMIZE, 0),
    *(cv2.IMWRITE_JPEG_RST_INTERVAL, 0),
)


def _find_segments(encoded: bytes) -> tuple[int, int]:
    """Return where the segments of the frame (SOF0) and of the scan (SOS) begin."""
    at, frame = 2, 0
    while encoded[at + 1] != 0xDA:
        if encoded[at + 1] == 0xC0:
            frame = at
        at += 2 + struct.unpack_from(">H", encoded, at + 2)[0]
    assert frame > 0, "the encoder was told to write a baseline JPEG"
    return frame, at


@compiled
def _flatten(pixels: NDArray[np.uint8], flat: NDArray[np.uint8]) -> None:
    """Put RGBA on white, as BGR."""
    for row in range(pixels.shape[0]):
        for column in range(pixels.shape[1]):
            alpha = int(pixels[row, column, 3])
            white = 255 * (255 - alpha) + 127
            for channel in range(3):
                flat[row, column, 2 - channel] = (alpha * pixels[row, column, channel] + white) // 255
