from __future__ import annotations

from pathlib import Path

import pytest

from smalti.errors import UsageError
from smalti.rendering.formats.format_table import write_deepzoom, write_omezarr, writer_for
from smalti.rendering.formats.png_jpeg import write_jpeg, write_png
from smalti.rendering.formats.tiff import write_tiff


@pytest.mark.parametrize(
    ("names", "writer"),
    [
        (["a.png"], write_png),
        (["a.jpg", "a.JPEG"], write_jpeg),
        (["a.TIF", "a.tiff", "a.ome.tif"], write_tiff),
        (["a.dzi"], write_deepzoom),
        (["a.zarr", "a.ome.zarr"], write_omezarr),
    ],
)
def test_the_extension_chooses_the_writer(names, writer):
    assert [writer_for(Path(name)) for name in names] == [writer] * len(names)


@pytest.mark.parametrize("name", ["a.bmp", "a"])
def test_another_extension_is_refused_with_those_there_are(name):
    with pytest.raises(UsageError, match=rf"^{name}: .*\.png, \.jpg, \.jpeg, \.tif, \.tiff, \.dzi, \.zarr"):
        writer_for(Path(name))
