"""What every format has in common: whole or not at all, and errors that name the file."""

from __future__ import annotations

import errno
import io
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.interchange.atomic_files import Spool, replacing_folder
from smalti.rendering.formats import bands as encoding
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.format_table import writer_for
from tests.rendering.formats.pictures import bands_of, photograph, picture, tree

NAMES = ["m.png", "m.jpg", "m.tif", "m.dzi", "m.zarr"]
EVERY_FORMAT = pytest.mark.parametrize("name", NAMES)


def write(path, image: Bands) -> None:
    writer_for(path)(path, image, Caption(world_from_pixel=((1, 0, 0), (0, -1, 0))))


@pytest.mark.parametrize(("name", "error"), [*((name, OSError) for name in NAMES), ("m.tif", KeyboardInterrupt)])
def test_what_fails_midway_leaves_the_folder_as_it_was(tmp_path, name, error):
    write(tmp_path / name, bands_of(picture(600, 400)))
    before, count = tree(tmp_path), len(list(tmp_path.iterdir()))

    def failing():
        for _ in range(9):
            yield np.full((64, 1300, 4), 9, dtype=np.uint8)
        assert len(list(tmp_path.iterdir())) > count
        raise error("the reader's own words")

    # An error of the reader is not one of the file that is written.
    with pytest.raises(error, match="the reader's own words"):
        write(tmp_path / name, Bands(1300, 1000, 64, failing()))
    assert tree(tmp_path) == before
    assert len(list(tmp_path.iterdir())) == count


@EVERY_FORMAT
def test_what_fails_the_first_time_leaves_nothing(tmp_path, name):
    def failing():
        yield np.full((64, 1300, 4), 9, dtype=np.uint8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / name, Bands(1300, 1000, 64, failing()))
    assert list(tmp_path.iterdir()) == []


@EVERY_FORMAT
def test_an_earlier_file_is_replaced(tmp_path, name):
    (tmp_path / "once").mkdir()
    write(tmp_path / "once" / name, bands_of(picture(30, 20)))
    (tmp_path / "twice").mkdir()
    write(tmp_path / "twice" / name, bands_of(picture(600, 700)))
    write(tmp_path / "twice" / name, bands_of(picture(30, 20)))
    assert tree(tmp_path / "twice") == tree(tmp_path / "once")


# A PNG is deflated in pieces that end where a band does.
@pytest.mark.parametrize("name", NAMES[1:])
def test_the_bands_heights_do_not_change_the_file(tmp_path, name):
    image = photograph(700, 900)
    for rows in (64, 512):
        (tmp_path / str(rows)).mkdir()
        write(tmp_path / str(rows) / name, bands_of(image, rows))
    assert tree(tmp_path / "64") == tree(tmp_path / "512")


@EVERY_FORMAT
def test_a_disk_without_room_is_one_line_that_names_the_file(tmp_path, name):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))
    try:
        with pytest.raises(OutputError, match=rf"{name}: cannot be written \(File too large\)") as caught:
            write(tmp_path / name, bands_of(picture(1024, 1024), 256))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["m.png", "m.dzi", "m.zarr"])
def test_a_folder_that_is_absent_is_named(tmp_path, name):
    with pytest.raises(OutputError, match=f"absent/{name[0]}.*: cannot be written"):
        write(tmp_path / "absent" / name, bands_of(picture(3, 2)))


@EVERY_FORMAT
def test_a_folder_one_may_not_write_to_is_named(tmp_path, monkeypatch, name):
    # Rights of files would not stop root: what makes files and folders is refused, whoever asks.
    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    for owner, function in ((io, "FileIO"), (tempfile, "TemporaryFile"), (Path, "mkdir")):
        monkeypatch.setattr(owner, function, forbidden)
    with pytest.raises(OutputError, match=f"{name}: cannot be written .Permission"):
        write(tmp_path / name, bands_of(picture(3, 2)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["m.png", "m.jpg", "m.tif", "m.dzi"])
def test_a_folder_in_the_place_of_the_file_is_refused_before_anything_is_rendered(tmp_path, name):
    (tmp_path / name).mkdir()

    def never():
        raise AssertionError("rendered in vain")
        yield

    with pytest.raises(OutputError, match=f"{name}: is a folder"):
        write(tmp_path / name, Bands(10, 10, 64, never()))


def test_a_folder_that_cannot_take_its_place_leaves_the_earlier_one(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "old").write_text("yesterday")
    with pytest.raises(OutputError, match="m: cannot be written"), replacing_folder(tmp_path / "m") as part:
        part.rmdir()
    assert tree(tmp_path) == {"m/old": b"yesterday"}


def test_rows_come_back_from_a_spool_that_has_no_name(tmp_path):
    rows = picture(5, 70)
    with Spool(tmp_path / "m.tif", (5, 4), np.uint8) as spool:
        spool.write(rows[:33])
        spool.write(rows[33:])
        assert list(tmp_path.iterdir()) == []
        bands = list(spool.read(70, 32))
    assert [len(band) for band in bands] == [32, 32, 6]
    np.testing.assert_array_equal(np.concatenate(bands), rows)


def test_pieces_come_in_their_order_whichever_is_ready_first():
    def encode(number):
        time.sleep(0.002 * (number % 3))
        return number

    bands = (np.arange(start, start + 5) for start in range(0, 40, 5))
    with encoding.encoding(bands, list, encode) as encoded:
        assert list(encoded) == list(range(40))


def test_nobody_works_on_pieces_after_a_failure():
    done = []

    def encode(number):
        time.sleep(0.02)
        done.append(number)

    def bands():
        yield np.arange(100)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), encoding.encoding(bands(), list, encode) as encoded:
        list(encoded)
    at_the_end = len(done)
    time.sleep(0.1)
    assert len(done) == at_the_end < 100
