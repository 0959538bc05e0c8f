"""The table of formats by extension, and the two formats that are folders of tiles: DeepZoom and OME-Zarr.

OME-Zarr is written in version 0.4, which nearly every reader knows. Version 0.5 needs Zarr 3, which many readers lack.
Zarr 2 has one file for each chunk and a page of JSON. This module writes it in a third of the time of the package
`zarr`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
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


def writer_for(path: Path) -> Writer:
    """Return the writer for the extension of a path."""
    if path.suffix.lower() not in WRITERS:
        raise UsageError(f"{path}: a mosaic is written as one of {', '.join(WRITERS)}: choose such an ending")
    return WRITERS[path.suffix.lower()]


def write_deepzoom(path: Path, image: Bands, caption: Caption, *, tiles: TileFormat = "jpg") -> None:
    """Write NAME.dzi and the tiles in NAME_files/. DeepZoom has no metadata, so the caption is not used."""
    folder = path.with_name(f"{path.stem}_files")
    _check_replaceable(folder)
    sizes = level_sizes(image.width, image.height, 1)

    def write(tile: _Tile) -> None:
        # In the file, level 0 is a single pixel and the last level is the image.
        name = f"{tile.column}_{tile.row}.{tiles}"
        content = encode_jpeg(tile.pixels) if tiles == "jpg" else _encode_png(tile.pixels)
        _write(path, part / str(len(sizes) - 1 - tile.level) / name, content)

    with replacing(path) as file:
        file.write(_MANIFEST.format(OVERLAP, tiles, SIDE, image.width, image.height).encode())
        with replacing_folder(folder) as part:
            _write_tiles(image, Cascade(sizes, SIDE, OVERLAP), SIDE, OVERLAP, write)


# Viewers that scale neighbouring tiles separately show thin lines between them unless the tiles overlap. 254 + 2 = 256
# pixels are whole blocks of a JPEG.
SIDE, OVERLAP = 254, 1
"""The side of a DeepZoom tile, and what it shares with each neighbour."""
_MANIFEST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<Image xmlns="http://schemas.microsoft.com/deepzoom/2008" Overlap="{}" Format="{}" TileSize="{}">'
    '<Size Width="{}" Height="{}"/></Image>\n'
)


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    return cv2.imencode(".png", cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGRA))[1].tobytes()


def write_omezarr(path: Path, image: Bands, caption: Caption) -> None:
    """Write an RGBA image with the axes c, y, x."""
    _check_replaceable(path)
    sizes = level_sizes(image.width, image.height, _SMALLEST_LEVEL)

    def write(tile: _Tile) -> None:
        for channel in range(4):
            content = pad_tile(tile.pixels[..., channel], _CHUNK)
            # Readers take a missing chunk for zeros.
            if content.any():
                chunk = part / str(tile.level) / str(channel) / str(tile.row) / str(tile.column)
                _write(path, chunk, zlib.compress(content.data, _LEVEL))

    with replacing_folder(path) as part:
        _write_json(path, part / ".zgroup", {"zarr_format": 2})
        _write_json(path, part / ".zattrs", _describe(caption, len(sizes)))
        for level, (width, height) in enumerate(sizes):
            _write_json(path, part / str(level) / ".zarray", _array(width, height))
        _write_tiles(image, Cascade(sizes, _CHUNK), _CHUNK, 0, write)


_CHUNK = 256
_SMALLEST_LEVEL = 512
_LEVEL = 1
_CHANNELS = (("red", "FF0000"), ("green", "00FF00"), ("blue", "0000FF"), ("alpha", "FFFFFF"))


def _array(width: int, height: int) -> dict[str, object]:
    """Return the Zarr 2 metadata of a level."""
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
    """Return the OME-NGFF 0.4 attributes of the group."""
    across, down = caption.pixel_sides_um or (1.0, 1.0)
    unit = {} if caption.pixel_sides_um is None else {"unit": "micrometer"}
    axes = [{"name": "c", "type": "channel"}, *({"name": name, "type": "space", **unit} for name in "yx")]
    datasets = []
    for level in range(levels):
        side = 2**level
        placed: list[dict[str, object]] = [{"type": "scale", "scale": [1.0, down * side, across * side]}]
        if level > 0:
            # The centre of the first pixel is the centre of the pixels whose mean it is.
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


@dataclass(frozen=True, slots=True, eq=False)
class _Tile:
    """The pixels of a tile and their position. Level 0 is the image at full size."""

    level: int
    row: int
    column: int
    pixels: NDArray[np.uint8]


def _write_tiles(image: Bands, cascade: Cascade, side: int, overlap: int, write: Callable[[_Tile], None]) -> None:
    """Cut the image and its smaller levels into tiles, and write them on all cores."""

    def split(band: NDArray[np.uint8]) -> Iterator[_Tile]:
        for level, row, pixels in cascade.add(band):
            for column, left in enumerate(range(0, pixels.shape[1], side)):
                yield _Tile(level, row, column, pixels[:, max(0, left - overlap) : left + side + overlap])

    with encoding(image.pixels, split, write) as written:
        for _ in written:
            pass


def _write_json(target: Path, path: Path, content: dict[str, object]) -> None:
    _write(target, path, json.dumps(content, indent=2).encode())


def _write(target: Path, path: Path, content: bytes) -> None:
    with naming(target):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _check_replaceable(target: Path) -> None:
    """Refuse to replace what is not an earlier image. Browsers, too, save to folders named NAME_files."""
    with naming(target):
        if target.suffix.lower() == ".zarr":
            if target.is_file():
                raise OutputError(
                    f"{target}: is a file, and OME-Zarr is a folder: choose another name, or move it away"
                )
            marks = (".zgroup", ".zattrs", "zarr.json")
            if target.is_dir() and any(target.iterdir()) and not any((target / name).exists() for name in marks):
                raise OutputError(f"{target}: is a folder but not a Zarr group: choose another name, or move it away")
        elif target.exists() and not (target.is_dir() and all(entry.name.isdecimal() for entry in target.iterdir())):
            raise OutputError(
                f"{target}: exists and does not hold DeepZoom tiles: choose another name, or move it away"
            )


WRITERS: dict[str, Writer] = {
    ".png": write_png,
    ".jpg": write_jpeg,
    ".jpeg": write_jpeg,
    ".tif": write_tiff,
    ".tiff": write_tiff,
    ".dzi": write_deepzoom,
    ".zarr": write_omezarr,
}
