"""What an interrupted rendering has done is not done again."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.rendering import mosaic as front
from smalti.rendering.mosaic import BLENDS, Mosaic
from smalti.rendering.tile_scheduler import Checkpoint
from tests.rendering.scene import Frames, shift
from tests.rendering.worlds import HEIGHT, WIDTH, paint_small, reader_of

# A column of frames, each sharing 40 rows with the next; 720 rows are 12 bands of 64.
COLUMN = {k: shift(3.0 * k, 100.0 * k) for k in range(7)}


class StopError(Exception):
    pass


def stop_after(steps: int):
    def on_progress(done: int, total: int) -> None:
        if done == steps:
            raise StopError

    return on_progress


@pytest.fixture(autouse=True)
def many_bands_that_are_kept(monkeypatch):
    paint_small(monkeypatch, 1024)
    monkeypatch.setattr(front, "CHECKPOINT_FROM_PIXELS", 1)


def save(folder, path, **options) -> Frames:
    """Save the mosaic as a new program would; return the reader, which knows what was decoded."""
    reader = reader_of(COLUMN)
    Mosaic(reader, COLUMN, WIDTH, HEIGHT, folder=folder).save(path, **options)
    return reader


@pytest.mark.parametrize(
    ("blend", "name"), [*((blend, "m.png") for blend in BLENDS), ("none", "m.tif"), ("none", "m.jpg")]
)
def test_an_interrupted_rendering_goes_on_and_its_file_is_the_same(tmp_path, blend, name):
    (tmp_path / "whole").mkdir()
    save(None, tmp_path / "whole" / name, blend=blend)
    kept = tmp_path / "kept"
    with pytest.raises(StopError):
        save(kept, tmp_path / name, blend=blend, on_progress=stop_after(len(COLUMN) + 6))
    assert not (tmp_path / name).exists()
    progress = []
    reader = save(kept, tmp_path / name, blend=blend, on_progress=lambda *steps: progress.append(steps))
    # Five bands were kept, or six: frames 0 and 1 lie in the first four.
    assert not {0, 1} & set(reader.decoded)
    assert len(reader.decoded) == len(set(reader.decoded)) > 0
    assert progress[len(COLUMN)] in ((len(COLUMN) + 5, len(COLUMN) + 12), (len(COLUMN) + 6, len(COLUMN) + 12))
    assert progress[-1] == (len(COLUMN) + 12, len(COLUMN) + 12)
    assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert [path.name.split("-")[0] for path in kept.iterdir()] == ["survey"]


@pytest.mark.parametrize("stops", [[3], [1, 6, 7]])
def test_however_often_it_is_interrupted_no_frame_is_looked_at_twice(tmp_path, stops):
    looked = []
    for stop in stops:
        reader = reader_of(COLUMN)
        with pytest.raises(StopError):
            Mosaic(reader, COLUMN, WIDTH, HEIGHT, folder=tmp_path / "kept").save(
                tmp_path / "m.png", on_progress=stop_after(stop)
            )
        looked += reader.decoded
        assert looked == list(range(stop))
    reader = save(tmp_path / "kept", tmp_path / "m.png")
    assert reader.decoded[: len(COLUMN) - len(looked)] == list(range(len(looked), len(COLUMN)))
    assert sorted(reader.decoded[len(COLUMN) - len(looked) :]) == list(COLUMN)


def test_bands_are_not_taken_for_those_of_another_picture(tmp_path):
    with pytest.raises(StopError):
        save(tmp_path / "kept", tmp_path / "m.png", on_progress=stop_after(len(COLUMN) + 6))
    for options in ({"blend": "none"}, {"even_light": False}, {"scale": 0.9}, {"region": (0, 10, 160, 600)}):
        save(tmp_path / "kept", tmp_path / "other.png", **options)
        save(None, tmp_path / "anew.png", **options)
        assert (tmp_path / "other.png").read_bytes() == (tmp_path / "anew.png").read_bytes()


def test_without_a_folder_nothing_is_kept(tmp_path):
    with pytest.raises(StopError):
        save(None, tmp_path / "m.png", on_progress=stop_after(len(COLUMN) + 6))
    assert list(tmp_path.iterdir()) == []
    assert len(save(None, tmp_path / "m.png").decoded) == 2 * len(COLUMN)


def test_a_small_mosaic_is_begun_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(front, "CHECKPOINT_FROM_PIXELS", 10**6)
    with pytest.raises(StopError):
        save(tmp_path / "kept", tmp_path / "m.png", on_progress=stop_after(len(COLUMN) + 6))
    assert [path.name.split("-")[0] for path in (tmp_path / "kept").iterdir()] == ["survey"]


def band(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (5, 7, 4), dtype=np.uint8)


def test_bands_come_back_as_they_were(tmp_path):
    first = Checkpoint(tmp_path, "a").resume([(5, 7, 4)] * 9, lambda start: map(band, range(start, 9)))
    for _ in range(4):
        next(first)
    first.close()
    again = Checkpoint(tmp_path, "a")
    assert len(again) == 4
    started = []

    def paint(start):
        started.append(start)
        return map(band, range(start, 9))

    for number, pixels in enumerate(again.resume([(5, 7, 4)] * 9, paint)):
        np.testing.assert_array_equal(pixels, band(number))
    assert number == 8
    assert started == [4]
    # Until the file is whole: a writer may yet fail.
    assert len(again) == 9
    again.clear()
    assert list(tmp_path.iterdir()) == []


def test_bands_outlive_a_writer_that_fails_at_last(tmp_path, monkeypatch):
    def fail(path, bands, caption):
        for _ in bands.pixels:
            pass
        raise OutputError("full")

    monkeypatch.setattr(front, "writer_for", lambda path: fail)
    with pytest.raises(OutputError):
        save(tmp_path / "kept", tmp_path / "m.png")
    monkeypatch.undo()
    paint_small(monkeypatch, 1024)
    monkeypatch.setattr(front, "CHECKPOINT_FROM_PIXELS", 1)
    assert save(tmp_path / "kept", tmp_path / "m.png").decoded == []


def test_half_a_band_does_not_count(tmp_path):
    checkpoint = Checkpoint(tmp_path, "a")
    bands = checkpoint.resume([(5, 7, 4)] * 9, lambda start: map(band, range(9)))
    next(bands)
    bands.close()
    folder = next(tmp_path.iterdir())
    (folder / "000001.part").write_bytes(b"half")
    assert len(checkpoint) == 1


def test_a_damaged_band_and_those_after_it_are_painted_again_and_one_line_says_so(tmp_path):
    started, told = [], []

    def paint(start):
        started.append(start)
        return map(band, range(start, 9))

    list(Checkpoint(tmp_path, "a").resume([(5, 7, 4)] * 9, paint))
    path = next(tmp_path.glob("bands-*/000002.z"))
    whole = path.read_bytes()
    path.write_bytes(whole[:30] + bytes([whole[30] ^ 1]) + whole[31:])
    for number, pixels in enumerate(Checkpoint(tmp_path, "a").resume([(5, 7, 4)] * 9, paint, told.append)):
        np.testing.assert_array_equal(pixels, band(number))
    assert started == [0, 2]
    assert told == [f"{path}: is damaged; it is rendered again"]
    assert path.read_bytes() == whole


def test_a_damaged_frame_of_the_survey_is_read_again(tmp_path):
    save(tmp_path / "kept", tmp_path / "whole.png")
    path = next((tmp_path / "kept").glob("survey-*.bin"))
    whole, told = path.read_bytes(), []
    at = 3 * len(whole) // len(COLUMN) + 5
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    reader = reader_of(COLUMN)
    mosaic = Mosaic(reader, COLUMN, WIDTH, HEIGHT, folder=tmp_path / "kept", say=told.append)
    mosaic.save(tmp_path / "again.png")
    assert reader.calls[0] == [3]
    assert path.read_bytes() == whole
    assert told == [f"{path}: is damaged; frames are read again"]
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "whole.png").read_bytes()


def test_a_checkpoint_that_cannot_be_written_is_one_line_that_names_it(tmp_path):
    (tmp_path / "file").write_text("")
    bands = Checkpoint(tmp_path / "file", "a").resume([(5, 7, 4)] * 9, lambda start: map(band, range(9)))
    with pytest.raises(OutputError, match=r"file/bands-.*: cannot be written"):
        next(bands)


def test_a_folder_that_cannot_be_made_is_one_line_that_names_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/kept: cannot be made \(Not a directory\)"):
        save(tmp_path / "file" / "kept", tmp_path / "m.png")
