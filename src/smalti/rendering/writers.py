"""Image files that are written band by band, so that memory does not grow with the image."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import tifffile
from numpy.typing import NDArray

from smalti.errors import OutputError, UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """An RGBA image as it arrives: `pixels` yields (band_height, width, 4) from the top, the last one may be lower."""

    width: int
    height: int
    band_height: int
    pixels: Iterator[NDArray[np.uint8]]


def writer_for(path: Path) -> Callable[[Path, Bands], None]:
    """Choose by the file's extension who writes it."""
    if path.suffix.lower() not in WRITERS:
        raise UsageError(f"{path}: a mosaic is written as one of {', '.join(WRITERS)}: choose such a name")
    return WRITERS[path.suffix.lower()]


def write_png(path: Path, image: Bands) -> None:
    """Write an 8-bit RGBA PNG."""
    rows = max(1, _PIECE_BYTES // (4 * image.width))

    def split(band: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        return (band[row : row + rows] for row in range(0, len(band), rows))

    with _replacing(path) as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        # 8 bits, RGBA, deflate, rows filtered one by one, not interlaced.
        _write_chunk(file, b"IHDR", struct.pack(">IIBBBBB", image.width, image.height, 8, 6, 0, 0, 0))
        _write_chunk(file, b"IDAT", b"\x78\x01")
        checksum = zlib.adler32(b"")
        for piece in _encode(image.pixels, split, _deflate_rows):
            _write_chunk(file, b"IDAT", piece.deflated)
            checksum = _join_checksums(checksum, piece.checksum, piece.length)
        # An empty last block ends the stream that the pieces have left open.
        _write_chunk(file, b"IDAT", b"\x03\x00" + struct.pack(">I", checksum))
        _write_chunk(file, b"IEND", b"")


def write_tiff(path: Path, image: Bands) -> None:
    """Write a tiled RGBA TIFF, deflated, its alpha unassociated; a BigTIFF from 4 GB on."""
    tile_height = min(_TIFF_TILE, image.band_height)
    assert image.band_height % tile_height == 0, "a band is made of whole tiles"
    assert tile_height % 16 == 0, "TIFF demands it"

    def split(band: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        for top in range(0, len(band), tile_height):
            for left in range(0, image.width, _TIFF_TILE):
                tile = np.zeros((tile_height, _TIFF_TILE, 4), dtype=np.uint8)
                part = band[top : top + tile_height, left : left + _TIFF_TILE]
                tile[: part.shape[0], : part.shape[1]] = part
                yield tile

    # Judged by the size before compression, which is not known to shrink.
    big = 4 * image.width * image.height > 2**32 - 2**26
    with _replacing(path) as file, tifffile.TiffWriter(file, bigtiff=big) as tiff:
        tiff.write(
            _encode(image.pixels, split, _deflate_tile),
            shape=(image.height, image.width, 4),
            dtype=np.uint8,
            tile=(tile_height, _TIFF_TILE),
            photometric="rgb",
            extrasamples=["unassalpha"],
            compression="zlib",
            predictor=2,
            metadata=None,
            software="Smalti",
        )


WRITERS = {".png": write_png, ".tif": write_tiff, ".tiff": write_tiff}

_PIECE_BYTES = 2**20
_TIFF_TILE = 256
# Level 6 takes six times as long for a file that is 2 to 10 % smaller.
_LEVEL = 1

_Encoded = TypeVar("_Encoded")


def _encode(
    bands: Iterator[NDArray[np.uint8]],
    split: Callable[[NDArray[np.uint8]], Iterator[NDArray[np.uint8]]],
    encode: Callable[[NDArray[np.uint8]], _Encoded],
) -> Iterator[_Encoded]:
    """Encode the pieces of every band on other cores while the next band is made; yield them in order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting: list[Future[_Encoded]] = []
        for band in bands:
            started = [pool.submit(encode, piece) for piece in split(band)]
            for future in waiting:
                yield future.result()
            waiting = started
        for future in waiting:
            yield future.result()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a zlib stream, and what its whole needs to know of it."""

    deflated: bytes
    checksum: int
    length: int


def _deflate_rows(rows: NDArray[np.uint8]) -> _Piece:
    lines = rows.reshape(len(rows), -1)
    filtered = np.empty((len(rows), 1 + lines.shape[1]), dtype=np.uint8)
    # Differences to the row above (filter 2); the first row stands for itself, so that a piece needs no other.
    filtered[:, 0] = 2
    filtered[0, 0] = 0
    filtered[0, 1:] = lines[0]
    np.subtract(lines[1:], lines[:-1], out=filtered[1:, 1:])
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    deflated = compressor.compress(filtered.data) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return _Piece(deflated, zlib.adler32(filtered.data), filtered.size)


def _deflate_tile(tile: NDArray[np.uint8]) -> bytes:
    # TIFF's predictor 2: differences to the pixel on the left.
    differences = tile.copy()
    np.subtract(tile[:, 1:], tile[:, :-1], out=differences[:, 1:])
    return zlib.compress(differences.data, _LEVEL)


def _join_checksums(first: int, second: int, length: int) -> int:
    """Return the Adler-32 of two parts from those of each, the second one `length` bytes long."""
    low = (first & 0xFFFF) + (second & 0xFFFF) - 1
    high = (first >> 16) + (second >> 16) + length * ((first & 0xFFFF) - 1)
    return (high % 65521) << 16 | low % 65521


def _write_chunk(file: io.BufferedWriter, kind: bytes, content: bytes) -> None:
    file.write(struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content)))


@contextmanager
def _replacing(path: Path) -> Iterator[io.BufferedWriter]:
    """Give a file beside `path` to write to, which takes its name once all went well and vanishes otherwise."""
    if path.is_dir():
        raise OutputError(f"{path}: is a folder: give the name of a file")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _PartFile(part, path) as file:
            yield file
        with _naming(path):
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class _PartFile(io.BufferedWriter):
    """A file whose errors name the target; so an error of a reader that feeds it is not taken for one of writing."""

    def __init__(self, part: Path, target: Path) -> None:
        self._target = target
        with _naming(target):
            super().__init__(io.FileIO(part, "wb"), 2**20)

    def write(self, content: ReadableBuffer, /) -> int:
        with _naming(self._target):
            return super().write(content)

    def seek(self, target: int, whence: int = 0, /) -> int:
        with _naming(self._target):
            return super().seek(target, whence)

    def flush(self) -> None:
        with _naming(self._target):
            super().flush()

    def close(self) -> None:
        with _naming(self._target):
            super().close()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(
            f"{path}: cannot be written ({reason}): choose a folder you may write to, with room"
        ) from error
