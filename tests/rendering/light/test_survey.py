from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.rendering.frame_survey import SHARPNESS, Survey, cell_of, is_whole
from tests.rendering.scene import Frames, displacement, frame_of, mapped, turn


@pytest.mark.parametrize(("width", "height", "cell"), [(128, 90, 1), (129, 90, 2), (90, 300, 4)])
def test_a_frame_has_64_to_128_cells_along_its_longer_side(width, height, cell):
    assert cell_of(width, height) == cell


def surveyed(tmp_path, frames: dict[int, np.ndarray]) -> tuple[Survey, Frames]:
    height, width = next(iter(frames.values())).shape[:2]
    reader = Frames(frames)
    survey = Survey(tmp_path, sorted(frames), width, height)
    survey.read_frames(reader)
    return survey, reader


@pytest.mark.parametrize("size", [(256, 192), (250, 187)])
def test_cells_show_the_scene_where_their_map_says(tmp_path, size):
    survey, _ = surveyed(tmp_path, {3: frame_of(turn(0, 0.3), *size)})
    cells = survey.frames([0])[0]
    rows, columns = np.mgrid[1 : survey.rows - 1, 1 : survey.columns - 1]
    points = mapped(np.linalg.inv(survey.cell_from_frame), columns.astype(float), rows.astype(float))
    off = displacement(cells[1:-1, 1:-1, :3], *(0.3 * at for at in points)) / 0.3 / survey.cell
    assert abs(off).max() < 0.02


def test_sharpness_tells_a_sharp_frame_from_a_blurred_one(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    smooth = np.full_like(noise, 128)
    survey, _ = surveyed(tmp_path, {0: noise, 1: smooth})
    cells = survey.frames([0, 1])[..., SHARPNESS]
    assert cells[0].mean() > 50
    assert (cells[1] == 0).all()


def test_sharpness_does_not_rise_towards_the_border(tmp_path):
    y, x = np.mgrid[:96, :128]
    slope = np.repeat((x + y)[..., None], 3, axis=2).astype(np.uint8)
    survey, _ = surveyed(tmp_path, {0: slope})
    assert survey.frames([0])[0, ..., SHARPNESS].max() <= 1


def test_frames_are_found_by_their_places(tmp_path):
    survey, reader = surveyed(tmp_path, {k: np.full((20, 30, 3), k, dtype=np.uint8) for k in (2, 5, 9, 40)})
    np.testing.assert_array_equal(survey.frames([3, 0, 1])[:, 4, 4, 0], [40, 2, 5])
    assert reader.decoded == [2, 5, 9, 40]


def test_a_survey_that_is_whole_is_not_made_again(tmp_path):
    frames = {k: np.full((20, 30, 3), k, dtype=np.uint8) for k in range(4)}
    surveyed(tmp_path, frames)
    survey, reader = surveyed(tmp_path, frames)
    assert reader.decoded == []
    np.testing.assert_array_equal(survey.frames([2])[0, 3, 3, 0], 2)


def test_half_a_frame_that_was_left_is_looked_at_again(tmp_path):
    frames = {k: np.full((20, 30, 3), k, dtype=np.uint8) for k in range(4)}
    surveyed(tmp_path, frames)
    file = next(tmp_path.iterdir())
    file.write_bytes(file.read_bytes()[: 20 * 30 * 4 * 2 + 100])
    survey, reader = surveyed(tmp_path, frames)
    assert reader.decoded == [2, 3]
    np.testing.assert_array_equal(survey.frames([0, 1, 2, 3])[:, 5, 5, 0], [0, 1, 2, 3])


def test_mosaics_of_one_source_share_a_survey(tmp_path):
    surveyed(tmp_path, {k: np.full((20, 30, 3), k, dtype=np.uint8) for k in range(4)})
    survey, reader = surveyed(tmp_path, {k: np.full((20, 30, 3), k, dtype=np.uint8) for k in range(1, 6, 2)})
    assert reader.decoded == [5]
    np.testing.assert_array_equal(survey.frames([0, 1, 2])[:, 5, 5, 0], [1, 3, 5])


def test_a_frame_that_somebody_has_kept_is_not_read(tmp_path):
    frames = {k: np.full((20, 30, 3), k, dtype=np.uint8) for k in (2, 7)}
    Survey(tmp_path, range(10), 30, 20).keep(7, frames[7])
    survey, reader = surveyed(tmp_path, frames)
    assert reader.decoded == [2]
    np.testing.assert_array_equal(survey.frames([0, 1])[:, 5, 5, 0], [2, 7])


def test_only_a_damaged_frame_is_read_again_and_said(tmp_path):
    frames = {k: np.full((20, 30, 3), k, dtype=np.uint8) for k in (0, 1, 3)}
    surveyed(tmp_path, frames)
    (file,) = tmp_path.iterdir()
    record = 20 * 30 * 4 + 16
    content = bytearray(file.read_bytes())
    content[record + 5] ^= 1
    file.write_bytes(content)
    assert not is_whole(file, record)
    reader, said = Frames(frames), []
    Survey(tmp_path, [0, 1, 3], 30, 20).read_frames(reader, say=said.append)
    assert reader.decoded == [1]
    assert said == [f"{file}: is damaged; frames are read again"]
    assert is_whole(file, record)


def test_a_survey_that_cannot_be_written_is_one_line_that_names_it(tmp_path):
    with pytest.raises(OutputError, match=r"survey-.*\.bin: cannot be written \(No such file"):
        Survey(tmp_path / "absent", [0], 30, 20).read_frames(Frames({0: np.zeros((20, 30, 3), np.uint8)}))


def test_an_error_of_the_reader_is_not_taken_for_one_of_the_survey(tmp_path):
    class Broken:
        def read_many(self, indices):
            raise OSError("the camera is unplugged")
            yield

    with pytest.raises(OSError, match="the camera is unplugged"):
        Survey(tmp_path, [0], 30, 20).read_frames(Broken())
