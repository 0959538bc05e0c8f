from __future__ import annotations

import tracemalloc
import weakref

import numpy as np
import pytest

from smalti.rendering.formats.bands import Bands, Caption, TileRows
from smalti.rendering.formats.format_table import writer_for
from smalti.rendering.formats.tiff import write_map
from tests.rendering.formats.pictures import bands_of, picture

WIDTH, HEIGHT, ROWS = 20_000, 3_000, 256
CAPTION = Caption()


def stripes(shape, dtype):
    """Cheap to make and to encode, a fresh band each time."""
    for top in range(0, HEIGHT, ROWS):
        yield np.full((min(ROWS, HEIGHT - top), *shape), 1 + top // ROWS, dtype=dtype)


# A picture of 240 MB, bands of 20 MB: that which arrives, that which is encoded, and what the levels hold.
@pytest.mark.parametrize(("name", "bands"), [("m.png", 4), ("m.jpg", 4), ("m.tif", 6), ("m.dzi", 6), ("m.zarr", 6)])
def test_a_large_picture_needs_the_memory_of_a_few_bands(tmp_path, name, bands):
    write = writer_for(tmp_path / name)
    # What is loaded and compiled at first use is not pixels.
    write(tmp_path / name, bands_of(picture(600, 2)), CAPTION)
    tracemalloc.start()
    try:
        write(tmp_path / name, Bands(WIDTH, HEIGHT, ROWS, stripes((WIDTH, 4), np.uint8)), CAPTION)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < bands * WIDTH * ROWS * 4


def test_a_large_map_needs_the_memory_of_a_few_bands(tmp_path):
    write_map(tmp_path / "m.tif", bands_of(np.zeros((2, 600), dtype=np.uint16)), CAPTION)
    tracemalloc.start()
    try:
        write_map(tmp_path / "m.tif", Bands(WIDTH, HEIGHT, ROWS, stripes((WIDTH,), np.uint16)), CAPTION)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * WIDTH * ROWS * 2


@pytest.mark.parametrize("name", ["m.png", "m.jpg", "m.tif", "m.dzi", "m.zarr"])
def test_the_first_band_is_let_go_of(tmp_path, name):
    kept = []

    def bands():
        for number in range(12):
            band = np.full((64, 700, 4), number, dtype=np.uint8)
            if number == 0:
                kept.append(weakref.ref(band))
            yield band
            del band
        assert kept[0]() is None

    path = tmp_path / name
    writer_for(path)(path, Bands(700, 12 * 64, 64, bands()), CAPTION)


def test_rows_that_wait_for_others_do_not_keep_a_whole_band():
    band = np.ones((100, 3))
    kept = weakref.ref(band)
    tile_rows = TileRows(200, 30)
    assert len([number for number, _ in tile_rows.add(band)]) == 3
    del band
    assert kept() is None
