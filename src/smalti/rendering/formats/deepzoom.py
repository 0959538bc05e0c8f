"""DeepZoom: a folder of tiles at every scale, which OpenSeadragon and its kin show in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.encoding import encoding
from smalti.rendering.formats.files import naming, replacing, replacing_folder
from smalti.rendering.formats.jpeg import encode_jpeg
from smalti.rendering.formats.pyramid import Cascade, level_sizes

TileFormat = Literal["jpg", "png"]
"""jpg: on white, small; png: transparent where no frame is, five to ten times as large."""


def write_deepzoom(path: Path, image: Bands, caption: Caption, *, tiles: TileFormat = "jpg") -> None:
    """Write NAME.dzi and the tiles in NAME_files/; the caption has no place there."""
    folder = path.with_name(f"{path.stem}_files")
    _check_replaceable(folder)
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


def _check_replaceable(folder: Path) -> None:
    """Refuse to replace what is not the tiles of an earlier image: browsers, too, save to folders of such names."""
    if folder.exists() and not (folder.is_dir() and all(entry.name.isdecimal() for entry in folder.iterdir())):
        raise OutputError(f"{folder}: exists and does not hold DeepZoom tiles: choose another name, or move it away")
