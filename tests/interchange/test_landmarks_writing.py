"""Landmarks written as a table come back as they were, to its three decimals."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.interchange.landmarks_csv import LeftOutRecord, read_landmarks, write_landmarks
from smalti.records import Landmarks, Pair


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "landmarks.csv"


def random_landmarks(i: int, j: int, count: int = 15) -> Landmarks:
    points_i, points_j = np.random.default_rng([i, j]).normal(0, 800, (2, count, 2))
    return Landmarks(Pair(i, j), points_i, points_j, 0.5)


def test_what_is_written_is_read_back_to_half_a_thousandth_of_a_pixel(file):
    given = [random_landmarks(0, 1), random_landmarks(0, 12), random_landmarks(3, 4, count=1)]
    write_landmarks(file, given)
    for before, after in zip(given, read_landmarks(file), strict=True):
        assert after.pair == before.pair
        np.testing.assert_allclose(after.points_i, before.points_i, rtol=0, atol=0.0005 + 1e-9)
        np.testing.assert_allclose(after.points_j, before.points_j, rtol=0, atol=0.0005 + 1e-9)


def test_the_file_is_the_documented_table(file):
    record = Landmarks(Pair(2, 10), np.array([[1.0, 2.5], [-0.12345, 1e4]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
    write_landmarks(file, [record], {Pair(2, 10): "Ann"})
    assert file.read_text().splitlines() == [
        "frame_i,frame_j,x_i,y_i,x_j,y_j,sigma_px,author",
        "2,10,1.000,2.500,3.000,4.000,1,Ann",
        "2,10,-0.123,10000.000,5.000,6.000,1,Ann",
    ]


def test_pairs_are_written_in_their_order(file):
    write_landmarks(file, [random_landmarks(*frames) for frames in ((2, 10), (0, 9), (2, 3))])
    pairs = [tuple(map(int, line.split(",")[:2])) for line in file.read_text().splitlines()[1:]]
    assert list(dict.fromkeys(pairs)) == [(0, 9), (2, 3), (2, 10)]


def test_records_may_come_one_by_one(file):
    write_landmarks(file, (random_landmarks(n, n + 1) for n in (1, 0)))
    assert [record.pair for record in read_landmarks(file)] == [Pair(0, 1), Pair(1, 2)]


def test_no_landmarks_are_a_header(file):
    write_landmarks(file, [])
    assert file.read_text() == "frame_i,frame_j,x_i,y_i,x_j,y_j,sigma_px,author\n"
    assert read_landmarks(file) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OutputError, match=r"nowhere.landmarks\.csv"):
        write_landmarks(tmp_path / "nowhere" / "landmarks.csv", [random_landmarks(0, 1)])


def test_how_exact_each_landmark_is_comes_back(file):
    sigmas = np.array([0.5, 1.25, 3.0])
    record = Landmarks(Pair(0, 4), np.ones((3, 2)), np.zeros((3, 2)), sigmas)
    write_landmarks(file, [record, random_landmarks(5, 6)])
    several, one = read_landmarks(file)
    np.testing.assert_array_equal(several.sigma, sigmas)
    assert one.sigma == 0.5


@pytest.mark.parametrize("name", ["Smith, Jo", 'Jo "the eye"', "100 %", "two\nlines", "Zoë"])
def test_names_of_all_kinds_stand_in_a_table_that_can_be_read(file, name):
    write_landmarks(file, [random_landmarks(0, 1, count=2)], {Pair(0, 1): name})
    with file.open(newline="", encoding="utf-8") as text:
        assert [row["author"] for row in csv.DictReader(text)] == [name.replace("\n", " ")] * 2
    assert len(read_landmarks(file)[0]) == 2


def test_left_out_landmarks_are_written_with_their_errors_and_never_read_as_landmarks(tmp_path):
    used = Landmarks(Pair(0, 1), np.ones((2, 2)), np.zeros((2, 2)), 1.5)
    left_out = Landmarks(Pair(0, 1), np.full((2, 2), 9.0), np.zeros((2, 2)), 0.5)
    path = tmp_path / "landmarks.csv"
    write_landmarks(path, [used], {Pair(0, 1): "Ann"}, [LeftOutRecord(left_out, ((3.25, 2.0), (None, None)))])
    assert path.read_text().splitlines() == [
        "frame_i,frame_j,x_i,y_i,x_j,y_j,sigma_px,author,use,error_px,predicted_px",
        *["0,1,1.000,1.000,0.000,0.000,1.5,Ann,link,,"] * 2,
        "0,1,9.000,9.000,0.000,0.000,0.5,Ann,check,3.250,2.000",
        "0,1,9.000,9.000,0.000,0.000,0.5,Ann,check,,",
    ]
    [read] = read_landmarks(path)
    assert read.points_i.tolist() == used.points_i.tolist()


def test_landmarks_on_curves_have_a_last_column_and_others_leave_it_empty(tmp_path):
    points = np.array([[10.0, 20.0], [30.0, 40.0]])
    curve = Landmarks(Pair(0, 1), points, points, 0.5, np.array([[0.6, 0.8], [0.0, 0.0]]))
    plain = Landmarks(Pair(0, 2), points, points, 0.5)
    write_landmarks(tmp_path / "curves.csv", [plain, curve])
    lines = (tmp_path / "curves.csv").read_text().splitlines()
    assert lines[0].endswith(",author,along_deg")
    assert lines[1].endswith(",53.130")
    assert lines[2].endswith(",")
    one, other = read_landmarks(tmp_path / "curves.csv")
    np.testing.assert_allclose(one.along, curve.along, atol=1e-5)
    assert other.along is None
    write_landmarks(tmp_path / "plain.csv", [plain])
    assert "along_deg" not in (tmp_path / "plain.csv").read_text()
