"""Where an image lies in the world: the text file beside it, and the tags of a GeoTIFF."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from smalti.rendering.formats.bands import Caption
from smalti.rendering.formats.files import naming, replacing

Tag: TypeAlias = tuple[int, str, int, Any, bool]
"""As tifffile takes it: code, type, count, value, whether it is written once."""


def place_world_file(image: Path, caption: Caption) -> None:
    """Write the six numbers of a world file beside the image; without a place, remove those of an earlier image."""
    path = image.with_suffix(_SUFFIXES[image.suffix.lower()])
    if caption.world_from_pixel is None:
        with naming(path):
            path.unlink(missing_ok=True)
        return
    (a, b, c), (d, e, f) = caption.world_from_pixel
    with replacing(path) as file:
        file.write("".join(f"{float(number)!r}\n" for number in (a, d, b, e, c, f)).encode())


def geotiff_tags(caption: Caption) -> list[Tag]:
    """Return the tags that place an image in the world; none if its place is unknown."""
    if caption.world_from_pixel is None:
        return []
    # GeoTIFF counts from the corner of the top-left pixel, we from its centre.
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
    # A user-defined model with a name and a unit is what GDAL reads as LOCAL_CS and writes for one.
    return [
        (_MODEL_TYPE, 0, 1, _USER_DEFINED),
        (_RASTER_TYPE, 0, 1, _PIXEL_IS_AREA),
        (_CITATION, _GEO_ASCII, len(_LOCAL_CITATION), 0),
        (_LINEAR_UNITS, 0, 1, _METRE),
    ]
