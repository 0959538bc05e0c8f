"""PNG and JPEG, encoded in pieces on all cores; world files and GeoTIFF tags."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import OutputError
from smalti.interchange.atomic_files import naming, replacing
from smalti.rendering.formats.bands import Bands, Caption, encoding


def write_png(path: Path, image: Bands, caption: Caption) -> None:
    """Write an 8-bit RGBA PNG and its world file."""
    rows = max(1, _PIECE_BYTES // (4 * image.width))

    def split(band: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        return (band[row : row + rows] for row in range(0, len(band), rows))

    with replacing(path) as file, encoding(image.pixels, split, _deflate_rows) as pieces:
        file.write(b"\x89PNG\r\n\x1a\n")
        # 8 bits, RGBA, deflate, rows filtered one by one, not interlaced.
        _write_chunk(file, b"IHDR", struct.pack(">IIBBBBB", image.width, image.height, 8, 6, 0, 0, 0))
        _write_chunk(file, b"IDAT", b"\x78\x01")
        checksum = zlib.adler32(b"")
        for piece in pieces:
            _write_chunk(file, b"IDAT", piece.deflated)
            checksum = _join_checksums(checksum, piece.checksum, piece.length)
        # The pieces leave the stream open. An empty last block ends it.
        _write_chunk(file, b"IDAT", b"\x03\x00" + struct.pack(">I", checksum))
        _write_chunk(file, b"IEND", b"")
    place_world_file(path, caption)


_PIECE_BYTES = 2**20
# Level 6 takes six times as long for a file that is 2 to 10 % smaller.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a zlib stream, and its contribution to the checksum of the whole."""

    deflated: bytes
    checksum: int
    length: int


def _deflate_rows(rows: NDArray[np.uint8]) -> _Piece:
    lines = rows.reshape(len(rows), -1)
    filtered = np.empty((len(rows), 1 + lines.shape[1]), dtype=np.uint8)
    # Differences to the row above (filter 2). The first row has no filter, so that a piece needs no other.
    filtered[:, 0] = 2
    filtered[0, 0] = 0
    filtered[0, 1:] = lines[0]
    np.subtract(lines[1:], lines[:-1], out=filtered[1:, 1:])
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    deflated = compressor.compress(filtered.data) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return _Piece(deflated, zlib.adler32(filtered.data), filtered.size)


def _join_checksums(first: int, second: int, length: int) -> int:
    """Return the Adler-32 of two parts from those of each. The second part is `length` bytes long."""
    low = (first & 0xFFFF) + (second & 0xFFFF) - 1
    high = (first >> 16) + (second >> 16) + length * ((first & 0xFFFF) - 1)
    return (high % 65521) << 16 | low % 65521


def _write_chunk(file: io.BufferedWriter, kind: bytes, content: bytes) -> None:
    file.write(struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content)))


MAX_SIDE = 65_500
"""Pixels; the limit of libjpeg, and so of nearly every program."""


def write_jpeg(path: Path, image: Bands, caption: Caption) -> None:
    """Write a baseline JPEG, white where the image is transparent, and its world file.

    A decoder starts again at a restart marker, as an encoder does at the top of an image. So strips of one height, each
    encoded as an image of its own, can be the intervals between the restart markers of the whole image.
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
    """Return RGBA pixels on white as a baseline JPEG with the standard Huffman tables."""
    blue_green_red = np.empty((*pixels.shape[:2], 3), dtype=np.uint8)
    _flatten(pixels, blue_green_red)
    # Pillow's encoder would block the other threads.
    return cv2.imencode(".jpg", blue_green_red, _SETTINGS)[1].tobytes()


# Side of the pixel block that is encoded as a whole, with the colours at half resolution.
_BLOCK = 16
# A band consists of such strips. The number of blocks of a strip must fit into 16 bits.
_STRIP_ROWS = 64
_SETTINGS = (
    *(cv2.IMWRITE_JPEG_QUALITY, 90),
    *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420),
    *(cv2.IMWRITE_JPEG_PROGRESSIVE, 0),
    # Optimised tables would differ from strip to strip.
    *(cv2.IMWRITE_JPEG_OPTIMIZE, 0),
    *(cv2.IMWRITE_JPEG_RST_INTERVAL, 0),
)


def _find_segments(encoded: bytes) -> tuple[int, int]:
    """Return the positions of the frame segment (SOF0) and the scan segment (SOS)."""
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


Tag: TypeAlias = tuple[int, str, int, Any, bool]
"""A tag in tifffile's form: code, type, count, value, whether it is written once."""


def place_world_file(image: Path, caption: Caption) -> None:
    """Write the world file of an image: six numbers. Without a position, remove the file of an earlier image."""
    path = image.with_suffix(_SUFFIXES[image.suffix.lower()])
    if caption.world_from_pixel is None:
        with naming(path):
            path.unlink(missing_ok=True)
        return
    (a, b, c), (d, e, f) = caption.world_from_pixel
    with replacing(path) as file:
        file.write("".join(f"{float(number)!r}\n" for number in (a, d, b, e, c, f)).encode())


def geotiff_tags(caption: Caption) -> list[Tag]:
    """Return the GeoTIFF tags of an image; none if its position is unknown."""
    if caption.world_from_pixel is None:
        return []
    # GeoTIFF counts from the corner of the top-left pixel, Smalti from its centre.
    rows = [(a, b, c - (a + b) / 2) for a, b, c in caption.world_from_pixel]
    (a, b, c), (d, e, f) = rows
    matrix = (a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    keys = _local_keys() if caption.epsg is None else _projected_keys(caption.epsg)
    directory = (1, 1, 0, len(keys), *(number for key in keys for number in key))
    tags: list[Tag] = [
        (_MODEL_TRANSFORMATION, "d", 16, matrix, True),
        (_GEO_KEY_DIRECTORY, "H", len(directory), directory, True),
    ]
    if caption.epsg is None:
        tags.append((_GEO_ASCII, "s", 0, _LOCAL_CITATION, True))
    return tags


_SUFFIXES = {".png": ".pgw", ".jpg": ".jgw", ".jpeg": ".jgw", ".tif": ".tfw", ".tiff": ".tfw"}

_MODEL_TRANSFORMATION, _GEO_KEY_DIRECTORY, _GEO_ASCII = 34264, 34735, 34737
_MODEL_TYPE, _RASTER_TYPE, _CITATION, _PROJECTED, _LINEAR_UNITS = 1024, 1025, 1026, 3072, 3076
_PIXEL_IS_AREA, _USER_DEFINED, _METRE = 1, 32767, 9001
_LOCAL_CITATION = "local plane: metres east and north|"


def _projected_keys(epsg: int) -> list[tuple[int, int, int, int]]:
    return [(_MODEL_TYPE, 0, 1, 1), (_RASTER_TYPE, 0, 1, _PIXEL_IS_AREA), (_PROJECTED, 0, 1, epsg)]


def _local_keys() -> list[tuple[int, int, int, int]]:
    # GDAL reads a user-defined model with a name and a unit as LOCAL_CS, and writes such a model for one.
    return [
        (_MODEL_TYPE, 0, 1, _USER_DEFINED),
        (_RASTER_TYPE, 0, 1, _PIXEL_IS_AREA),
        (_CITATION, _GEO_ASCII, len(_LOCAL_CITATION), 0),
        (_LINEAR_UNITS, 0, 1, _METRE),
    ]
