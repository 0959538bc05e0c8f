"""The formats by extension, and the folders of tiles: DeepZoom and OME-Zarr.

Of the two versions in use this is the one that nearly every reader knows; 0.5 needs Zarr 3, which many lack. Zarr 2 is
a file a chunk and a page of JSON: written here in a third of the time that the package `zarr` takes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError, UsageError
from smalti.interchange.atomic_files import naming, replacing, replacing_folder
from smalti.rendering.formats.bands import Bands, Caption, Cascade, Writer, encoding, level_sizes, pad_tile
from smalti.rendering.formats.png_jpeg import encode_jpeg, write_jpeg, write_png
from smalti.rendering.formats.tiff import write_tiff

TileFormat = Literal["jpg", "png"]
"""jpg: on white, small; png: transparent where no frame is, five to ten times as large."""


def write_deepzoom(path: Path, image: Bands, caption: Caption, *, tiles: TileFormat = "jpg") -> None:
    """Write NAME.dzi and the tiles in NAME_files/; the caption has no place there."""
    folder = path.with_name(f"{path.stem}_files")
    _check_replaceable_tiles(folder)
    sizes = level_sizes(image.width, image.height, 1)
    cascade = Cascade(sizes, _SIDE, _OVERLAP)

    def split(band: NDArray[np.uint8]) -> Iterator[_Tile]:
        for level, row, pixels in cascade.add(band):
            for column, left in enumerate(range(0, pixels.shape[1], _SIDE)):
                yield _Tile(level, row, column, pixels[:, max(0, left - _OVERLAP) : left + _SIDE + _OVERLAP])

    def write(tile: _Tile) -> None:
        # Level 0 is a single pixel, the last one the image.
        file = part / str(len(sizes) - 1 - tile.level) / f"{tile.column}_{tile.row}.{tiles}"
        content = encode_jpeg(tile.pixels) if tiles == "jpg" else _encode_png(tile.pixels)
        with naming(path):
            file.write_bytes(content)

    with replacing(path) as file:
        file.write(_MANIFEST.format(_OVERLAP, tiles, _SIDE, image.width, image.height).encode())
        with replacing_folder(folder) as part:
            with naming(path):
                for level in range(len(sizes)):
                    (part / str(level)).mkdir()
            with encoding(image.pixels, split, write) as written:
                for _ in written:
                    pass


# A viewer that scales neighbouring tiles apart shows hairlines between them unless they overlap; 254 + 2 are 256,
# whole blocks of a JPEG.
_SIDE, _OVERLAP = 254, 1
_MANIFEST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<Image xmlns="http://schemas.microsoft.com/deepzoom/2008" Overlap="{}" Format="{}" TileSize="{}">'
    '<Size Width="{}" Height="{}"/></Image>\n'
)


@dataclass(frozen=True, slots=True, eq=False)
class _Tile:
    """Pixels and their place; level 0 is the image at full size."""

    level: int
    row: int
    column: int
    pixels: NDArray[np.uint8]


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    return cv2.imencode(".png", cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGRA))[1].tobytes()


def _check_replaceable_tiles(folder: Path) -> None:
    """Refuse to replace what is not the tiles of an earlier image: browsers, too, save to folders of such names."""
    if folder.exists() and not (folder.is_dir() and all(entry.name.isdecimal() for entry in folder.iterdir())):
        raise OutputError(f"{folder}: exists and does not hold DeepZoom tiles: choose another name, or move it away")


def write_omezarr(path: Path, image: Bands, caption: Caption) -> None:
    """Write an RGBA image, axes c, y, x."""
    _check_replaceable_zarr(path)
    sizes = level_sizes(image.width, image.height, _SMALLEST_LEVEL)
    cascade = Cascade(sizes, _CHUNK)

    def split(band: NDArray[np.uint8]) -> Iterator[_Chunks]:
        for level, row, pixels in cascade.add(band):
            for column, left in enumerate(range(0, pixels.shape[1], _CHUNK)):
                yield _Chunks(level, row, column, pixels[:, left : left + _CHUNK])

    def write(chunks: _Chunks) -> None:
        for channel in range(4):
            content = pad_tile(chunks.pixels[..., channel], _CHUNK)
            # A chunk that is not there counts as zeros.
            if content.any():
                deflated = zlib.compress(content.data, _LEVEL)
                _write(path, part / str(chunks.level) / str(channel) / str(chunks.row) / str(chunks.column), deflated)

    with replacing_folder(path) as part:
        _write_json(path, part / ".zgroup", {"zarr_format": 2})
        _write_json(path, part / ".zattrs", _describe(caption, len(sizes)))
        for level, (width, height) in enumerate(sizes):
            _write_json(path, part / str(level) / ".zarray", _array(width, height))
        with encoding(image.pixels, split, write) as written:
            for _ in written:
                pass


_CHUNK = 256
_SMALLEST_LEVEL = 512
_LEVEL = 1
_CHANNELS = (("red", "FF0000"), ("green", "00FF00"), ("blue", "0000FF"), ("alpha", "FFFFFF"))


@dataclass(frozen=True, slots=True, eq=False)
class _Chunks:
    """Pixels whose channels make a chunk each, and their place."""

    level: int
    row: int
    column: int
    pixels: NDArray[np.uint8]


def _array(width: int, height: int) -> dict[str, object]:
    """Return the metadata of a level, as Zarr 2 has them."""
    return {
        "zarr_format": 2,
        "shape": [4, height, width],
        "chunks": [1, _CHUNK, _CHUNK],
        "dtype": "|u1",
        "compressor": {"id": "zlib", "level": _LEVEL},
        "filters": None,
        "fill_value": 0,
        "order": "C",
        "dimension_separator": "/",
    }


def _describe(caption: Caption, levels: int) -> dict[str, object]:
    """Return the attributes of the group, as OME-NGFF 0.4 has them."""
    across, down = caption.pixel_sides_um or (1.0, 1.0)
    unit = {} if caption.pixel_sides_um is None else {"unit": "micrometer"}
    axes = [{"name": "c", "type": "channel"}, *({"name": name, "type": "space", **unit} for name in "yx")]
    datasets = []
    for level in range(levels):
        side = 2**level
        placed: list[dict[str, object]] = [{"type": "scale", "scale": [1.0, down * side, across * side]}]
        if level > 0:
            # The centre of the first pixel is that of the pixels it is the mean of.
            shift = (side - 1) / 2
            placed.append({"type": "translation", "translation": [0.0, down * shift, across * shift]})
        datasets.append({"path": str(level), "coordinateTransformations": placed})
    channels = [
        {
            "label": label,
            "color": color,
            "active": label != "alpha",
            "window": {"start": 0, "end": 255, "min": 0, "max": 255},
        }
        for label, color in _CHANNELS
    ]
    scales = {"version": "0.4", "name": caption.name, "axes": axes, "datasets": datasets, "type": "mean"}
    return {
        "multiscales": [scales],
        "omero": {"version": "0.4", "name": caption.name, "channels": channels, "rdefs": {"model": "color"}},
    }


def _write_json(target: Path, path: Path, content: dict[str, object]) -> None:
    _write(target, path, json.dumps(content, indent=2).encode())


def _write(target: Path, path: Path, content: bytes) -> None:
    with naming(target):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _check_replaceable_zarr(path: Path) -> None:
    """Refuse to replace what is not an earlier image."""
    if path.is_dir() and not any((path / name).exists() for name in (".zgroup", ".zattrs", "zarr.json")):
        if next(path.iterdir(), None) is not None:
            raise OutputError(f"{path}: is a folder but not a Zarr group: choose another name, or move it away")
    elif path.is_file():
        raise OutputError(f"{path}: is a file, and OME-Zarr is a folder: choose another name, or move it away")


def writer_for(path: Path) -> Writer:
    """Choose by the name's extension who writes it."""
    if path.suffix.lower() not in WRITERS:
        raise UsageError(f"{path}: a mosaic is written as one of {', '.join(WRITERS)}: choose such a name")
    return WRITERS[path.suffix.lower()]


WRITERS: dict[str, Writer] = {
    ".png": write_png,
    ".jpg": write_jpeg,
    ".jpeg": write_jpeg,
    ".tif": write_tiff,
    ".tiff": write_tiff,
    ".dzi": write_deepzoom,
    ".zarr": write_omezarr,
}
