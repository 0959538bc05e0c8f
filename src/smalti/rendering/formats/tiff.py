"""TIFF: tiled, compressed, with a pyramid, OME-XML and GeoTIFF tags."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import tifffile
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.interchange.atomic_files import Spool, replacing
from smalti.rendering.formats.bands import (
    Bands,
    Caption,
    TileRows,
    encoding,
    level_sizes,
    pad_tile,
    pick_half,
    reduce_half,
)
from smalti.rendering.formats.png_jpeg import geotiff_tags, place_world_file


def write_tiff(path: Path, image: Bands, caption: Caption) -> None:
    """Write an RGBA TIFF with unassociated alpha. Every pyramid level is the mean of the one before."""
    layout = {"photometric": "rgb", "extrasamples": ["unassalpha"], "predictor": 2}
    _write(path, image, caption, reduce_half, _deflate_differences, layout)


def write_map(path: Path, raster: Bands, caption: Caption) -> None:
    """Write a TIFF of one channel, (h, w) of uint16, uint32 or float32. Its pyramid has only values of the map."""
    if path.suffix.lower() not in (".tif", ".tiff"):
        raise UsageError(f"{path}: a map is written as .tif or .tiff: choose such an ending")
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
    """Write the levels one after the other. The next level waits on disk meanwhile."""
    sizes = level_sizes(image.width, image.height, _SMALLEST_LEVEL)
    with replacing(path) as file, ExitStack() as stack:
        first = next(image.pixels)
        dtype, samples = first.dtype, first.shape[2:]
        # An iterator drops the first band. A list or a name would keep it to the end.
        bands: Iterable[NDArray[Any]] = chain(iter([first]), image.pixels)
        del first
        # The size before compression decides, because compression may not shrink the file. A third is for the pyramid.
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
    """Pass the bands on, and write half of each to the spool. All bands but the last have an even number of rows."""
    for band in bands:
        spool.write(reduce(band))
        yield band


def _cutter(height: int) -> Callable[[NDArray[Any]], Iterator[NDArray[Any]]]:
    """Return a function that cuts bands into tiles. Tiles at the right and the bottom may be smaller."""
    gathered = TileRows(height, _TILE)

    def cut(band: NDArray[Any]) -> Iterator[NDArray[Any]]:
        for _, rows in gathered.add(band):
            for left in range(0, rows.shape[1], _TILE):
                yield rows[:, left : left + _TILE]

    return cut


def _deflate_differences(part: NDArray[np.uint8]) -> bytes:
    # TIFF's predictor 2: differences to the pixel on the left. The padding beyond the image needs none.
    differences = pad_tile(part, _TILE)
    np.subtract(part[:, 1:], part[:, :-1], out=differences[: part.shape[0], 1 : part.shape[1]])
    return zlib.compress(differences.data, _LEVEL)


def _deflate(part: NDArray[Any]) -> bytes:
    return zlib.compress(pad_tile(part, _TILE).data, _LEVEL)


def describe(caption: Caption, width: int, height: int, samples: int, dtype: np.dtype[Any]) -> bytes:
    """Return the OME-XML description of an image with `samples` samples a pixel, in ASCII as TIFF requires."""
    root = ElementTree.Element(
        "OME",
        {
            "xmlns": _NAMESPACE,
            "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
            "xsi:schemaLocation": f"{_NAMESPACE} {_NAMESPACE}/ome.xsd",
            "Creator": "Smalti",
        },
    )
    image = ElementTree.SubElement(root, "Image", ID="Image:0", Name=caption.name)
    sizes = {"SizeX": width, "SizeY": height, "SizeC": samples, "SizeZ": 1, "SizeT": 1}
    pixels = ElementTree.SubElement(
        image,
        "Pixels",
        {
            "ID": "Pixels:0",
            "DimensionOrder": "XYCZT",
            "Type": _TYPES[dtype.name],
            **{name: str(size) for name, size in sizes.items()},
            # The samples of a pixel stand together.
            "Interleaved": "true",
            **_physical_size(caption),
        },
    )
    ElementTree.SubElement(pixels, "Channel", ID="Channel:0:0", SamplesPerPixel=str(samples))
    ElementTree.SubElement(pixels, "TiffData", IFD="0", PlaneCount="1")
    text = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=False)
    return b'<?xml version="1.0" encoding="UTF-8"?>' + bytes(text)


_NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
_TYPES = {"uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "float32": "float"}


def _physical_size(caption: Caption) -> dict[str, str]:
    if caption.pixel_sides_um is None:
        return {}
    across, down = caption.pixel_sides_um
    return {
        "PhysicalSizeX": repr(float(across)),
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": repr(float(down)),
        "PhysicalSizeYUnit": "µm",
    }
