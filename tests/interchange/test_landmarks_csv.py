"""Tables of landmarks: what is read, and what is refused by file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smalti.errors import TableError
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.records import Pair

HEADER = "frame_i,frame_j,x_i,y_i,x_j,y_j"
NOT_NUMBERS = ["0,1,1,two,3,4", "0,one,1,2,3,4", "0.5,1,1,2,3,4", "0,1,1,,3,4", "0,1,1,2,3"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "points.csv"


def write(file: Path, *lines: str) -> Path:
    file.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")
    return file


def refusal(file: Path) -> str:
    """The message with which the file is refused; it must name the file."""
    with pytest.raises(TableError) as caught:
        read_landmarks(file)
    assert file.name in str(caught.value)
    return str(caught.value)


def test_a_hand_written_file_is_read_pair_by_pair(file: Path) -> None:
    write(file, "0,1,10.5,20,30,40.25", "0,1,11,21,31,41", "2,7,-1e2,0,.5,3")
    first, second = read_landmarks(file)
    assert first.pair == Pair(0, 1)
    assert first.points_i.tolist() == [[10.5, 20.0], [11.0, 21.0]]
    assert first.points_j.tolist() == [[30.0, 40.25], [31.0, 41.0]]
    assert second.pair == Pair(2, 7)
    assert second.points_i.tolist() == [[-100.0, 0.0]]
    assert second.points_j.tolist() == [[0.5, 3.0]]


def test_numbers_written_in_full_come_back_to_the_last_bit(file: Path) -> None:
    numbers = np.random.default_rng(1).normal(scale=300.0, size=(20, 4))
    write(file, *(f"3,4,{','.join(repr(float(number)) for number in row)}" for row in numbers))
    [record] = read_landmarks(file)
    np.testing.assert_array_equal(np.hstack([record.points_i, record.points_j]), numbers)


def test_pairs_come_in_order_though_the_lines_are_not(file: Path) -> None:
    write(file, "2,3,0,0,0,0", "0,9,0,0,0,0", "2,3,1,1,1,1", "0,1,0,0,0,0")
    assert [record.pair for record in read_landmarks(file)] == [Pair(0, 1), Pair(0, 9), Pair(2, 3)]


def test_landmarks_of_a_pair_keep_the_order_of_their_lines(file: Path) -> None:
    write(file, "2,3,5,0,0,0", "0,9,0,0,0,0", "2,3,1,0,0,0", "2,3,3,0,0,0")
    assert read_landmarks(file)[1].points_i[:, 0].tolist() == [5.0, 1.0, 3.0]


def test_columns_may_come_in_any_order(file: Path) -> None:
    file.write_text("x_j,y_j,frame_j,frame_i,y_i,x_i\n1,2,9,4,5,6\n")
    [record] = read_landmarks(file)
    assert record.pair == Pair(4, 9)
    assert record.points_i.tolist() == [[6.0, 5.0]]
    assert record.points_j.tolist() == [[1.0, 2.0]]


def test_the_mark_that_spreadsheets_put_before_the_header_is_skipped(file: Path) -> None:
    file.write_text(f"{HEADER}\n0,1,1,2,3,4\n", encoding="utf-8-sig")
    assert len(read_landmarks(file)) == 1


def test_line_ends_of_windows_are_read(file: Path) -> None:
    file.write_bytes(f"{HEADER}\r\n0,1,1,2,3,4\r\n".encode())
    assert read_landmarks(file)[0].points_j.tolist() == [[3.0, 4.0]]


def test_the_asked_sigma_goes_with_the_landmarks(file: Path) -> None:
    write(file, "0,1,1,2,3,4")
    assert read_landmarks(file, sigma=2.5)[0].sigma == 2.5


def test_a_header_alone_is_an_empty_table(file: Path) -> None:
    assert read_landmarks(write(file)) == []


def test_a_missing_column_is_named(file: Path) -> None:
    file.write_text("frame_i,frame_j,x_i,y_i,x_j\n0,1,1,2,3\n")
    assert "y_j" in refusal(file)


def test_an_unknown_column_is_named(file: Path) -> None:
    file.write_text(f"{HEADER},score\n0,1,1,2,3,4,5\n")
    assert "score" in refusal(file)


def test_an_empty_file_is_refused(file: Path) -> None:
    file.write_text("")
    assert HEADER in refusal(file)


@pytest.mark.parametrize("line", NOT_NUMBERS)
def test_a_line_that_is_not_numbers_is_named(file: Path, line: str) -> None:
    write(file, "0,1,1,2,3,4", line)
    assert "line 3" in refusal(file)


def test_a_line_of_too_many_numbers_is_named(file: Path) -> None:
    write(file, "0,1,1,2,3,4", "0,1,1,2,3,4,5")
    assert "line 3" in refusal(file)


@pytest.mark.parametrize("wrong", ["nan", "-inf", "1e999"])
def test_a_coordinate_that_is_not_finite_is_refused_by_line(file: Path, wrong: str) -> None:
    write(file, "0,1,1,2,3,4", "0,1,1,2,3,4", f"0,1,1,{wrong},3,4")
    assert "line 4" in refusal(file)


@pytest.mark.parametrize("frames", ["2,2", "-1,2"])
def test_a_reversed_equal_or_negative_pair_is_refused_by_line(file: Path, frames: str) -> None:
    write(file, f"{frames},1,2,3,4")
    assert "line 2" in refusal(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    refusal(tmp_path / "nowhere.csv")


def test_a_directory_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    refusal(folder)


@pytest.mark.parametrize("content", [bytes(range(256)), b"\x00" * 64])
def test_a_binary_file_is_named(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    refusal(file)


def test_a_binary_tail_is_refused(file: Path) -> None:
    file.write_bytes(f"{HEADER}\n0,1,1,2,3,4\n".encode() + b"\xff\xfe\x00")
    refusal(file)


def test_a_table_may_say_how_exact_its_landmarks_are(file: Path) -> None:
    file.write_text(f"{HEADER},sigma_px,author\n0,1,1,2,3,4,0.5,Ann\n0,1,5,6,7,8,,Ben\n")
    [record] = read_landmarks(file, sigma=2.0)
    np.testing.assert_array_equal(record.sigma, [0.5, 2.0])


@pytest.mark.parametrize("sigma", ["0", "-1", "inf", "nan"])
def test_a_deviation_that_is_none_is_refused(file: Path, sigma: str) -> None:
    file.write_text(f"{HEADER},sigma_px\n0,1,1,2,3,4,{sigma}\n")
    assert "line 2: sigma_px must be positive and finite" in refusal(file)


def test_a_direction_that_is_no_angle_is_refused(tmp_path):
    path = tmp_path / "landmarks.csv"
    path.write_text("frame_i,frame_j,x_i,y_i,x_j,y_j,along_deg\n0,1,1,1,1,1,inf\n")
    with pytest.raises(TableError, match="along_deg must be an angle"):
        read_landmarks(path)
