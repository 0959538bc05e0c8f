"""TIFF: tiled, deflated, with a pyramid inside, OME-XML, and its place in the world."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.encoding import encoding
from smalti.rendering.formats.files import Spool, replacing
from smalti.rendering.formats.georeference import geotiff_tags, place_world_file
from smalti.rendering.formats.omexml import describe
from smalti.rendering.formats.pyramid import TileRows, level_sizes, pad_tile, pick_half, reduce_half


def write_tiff(path: Path, image: Bands, caption: Caption) -> None:
    """Write an RGBA TIFF, its alpha unassociated, every level of its pyramid the mean of the one before."""
    layout = {"photometric": "rgb", "extrasamples": ["unassalpha"], "predictor": 2}
    _write(path, image, caption, reduce_half, _deflate_differences, layout)


def write_map(path: Path, raster: Bands, caption: Caption) -> None:
    """Write a TIFF of one channel, (h, w) of uint16, uint32 or float32; its pyramid is of values that there are."""
    if path.suffix.lower() not in (".tif", ".tiff"):
        raise UsageError(f"{path}: a map is written as .tif or .tiff: choose such a name")
    _write(path, raster, caption, pick_half, _deflate, {"photometric": "minisblack"})


_TILE = 256
_SMALLEST_LEVEL = 512
# Level 6 takes six times as long for a file that is 2 to 10 % smaller.
_LEVEL = 1


def _write(
    path: Path,
    image: Bands,
    caption: Caption,
    reduce: Callable[[NDArray[Any]], NDArray[Any]],
    deflate: Callable[[NDArray[Any]], bytes],
    layout: dict[str, Any],
) -> None:
    """Write the levels one after the other; the next one waits on disk meanwhile."""
    sizes = level_sizes(image.width, image.height, _SMALLEST_LEVEL)
    with replacing(path) as file, ExitStack() as stack:
        first = next(image.pixels)
        dtype, samples = first.dtype, first.shape[2:]
        # An iterator lets go of the first band, which a list and a name would keep to the end.
        bands: Iterable[NDArray[Any]] = chain(iter([first]), image.pixels)
        del first
        # Judged by the size before compression, which is not known to shrink; a third for the pyramid.
        big = dtype.itemsize * (*samples, 1)[0] * image.width * image.height * 4 / 3 > 2**32 - 2**26
        tiff = stack.enter_context(tifffile.TiffWriter(file, bigtiff=big))
        for level, (width, height) in enumerate(sizes):
            if level + 1 < len(sizes):
                spool = stack.enter_context(Spool(path, (sizes[level + 1][0], *samples), dtype))
                bands = _spooling(bands, spool, reduce)
            options = {**layout, "shape": (height, width, *samples), "dtype": dtype}
            if level == 0:
                options |= {
                    "subifds": len(sizes) - 1,
                    "description": describe(caption, width, height, (*samples, 1)[0], dtype),
                    "extratags": geotiff_tags(caption),
                    "software": "Smalti",
                }
            else:
                options |= {"subfiletype": 1, "software": False}
            with encoding(bands, _cutter(height), deflate) as tiles:
                tiff.write(tiles, tile=(_TILE, _TILE), compression="zlib", metadata=None, **options)
            if level + 1 < len(sizes):
                bands = spool.read(sizes[level + 1][1], _TILE)
    place_world_file(path, caption)


def _spooling(
    bands: Iterable[NDArray[Any]], spool: Spool, reduce: Callable[[NDArray[Any]], NDArray[Any]]
) -> Iterator[NDArray[Any]]:
    """Hand the bands on, and half of each to the spool; all but the last one have rows in pairs."""
    for band in bands:
        spool.write(reduce(band))
        yield band


def _cutter(height: int) -> Callable[[NDArray[Any]], Iterator[NDArray[Any]]]:
    """Return what cuts bands into tiles, those at the right and the bottom as small as they come."""
    gathered = TileRows(height, _TILE)

    def cut(band: NDArray[Any]) -> Iterator[NDArray[Any]]:
        for _, rows in gathered.add(band):
            for left in range(0, rows.shape[1], _TILE):
                yield rows[:, left : left + _TILE]

    return cut


def _deflate_differences(part: NDArray[np.uint8]) -> bytes:
    # TIFF's predictor 2: differences to the pixel on the left. None beyond the image, where nobody looks.
    differences = pad_tile(part, _TILE)
    np.subtract(part[:, 1:], part[:, :-1], out=differences[: part.shape[0], 1 : part.shape[1]])
    return zlib.compress(differences.data, _LEVEL)


def _deflate(part: NDArray[Any]) -> bytes:
    return zlib.compress(pad_tile(part, _TILE).data, _LEVEL)
