"""Which format a file is written in."""

from __future__ import annotations

from pathlib import Path

from smalti.errors import UsageError
from smalti.rendering.formats.bands import Writer
from smalti.rendering.formats.deepzoom import write_deepzoom
from smalti.rendering.formats.jpeg import write_jpeg
from smalti.rendering.formats.omezarr import write_omezarr
from smalti.rendering.formats.png import write_png
from smalti.rendering.formats.tiff import write_tiff


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
