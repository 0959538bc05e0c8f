"""OME-Zarr 0.4: a folder of chunks at every scale, which napari, Fiji and QuPath read piecewise.

Of the two versions in use this is the one that nearly every reader knows; 0.5 needs Zarr 3, which many lack. Zarr 2 is
a file a chunk and a page of JSON: written here in a third of the time that the package `zarr` takes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.encoding import encoding
from smalti.rendering.formats.files import naming, replacing_folder
from smalti.rendering.formats.pyramid import Cascade, level_sizes, pad_tile


def write_omezarr(path: Path, image: Bands, caption: Caption) -> None:
    """Write an RGBA image, axes c, y, x."""
    _check_replaceable(path)
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


def _array(width: int, height: int) -> dict[str, Any]:
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


def _describe(caption: Caption, levels: int) -> dict[str, Any]:
    """Return the attributes of the group, as OME-NGFF 0.4 has them."""
    across, down = caption.pixel_sides_um or (1.0, 1.0)
    unit = {} if caption.pixel_sides_um is None else {"unit": "micrometer"}
    axes = [{"name": "c", "type": "channel"}, *({"name": name, "type": "space", **unit} for name in "yx")]
    datasets = []
    for level in range(levels):
        side = 2**level
        placed: list[dict[str, Any]] = [{"type": "scale", "scale": [1.0, down * side, across * side]}]
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


def _write_json(target: Path, path: Path, content: dict[str, Any]) -> None:
    _write(target, path, json.dumps(content, indent=2).encode())


def _write(target: Path, path: Path, content: bytes) -> None:
    with naming(target):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _check_replaceable(path: Path) -> None:
    """Refuse to replace what is not an earlier image."""
    if path.is_dir() and not any((path / name).exists() for name in (".zgroup", ".zattrs", "zarr.json")):
        if next(path.iterdir(), None) is not None:
            raise OutputError(f"{path}: is a folder but not a Zarr group: choose another name, or move it away")
    elif path.is_file():
        raise OutputError(f"{path}: is a file, and OME-Zarr is a folder: choose another name, or move it away")
