from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import TableError
from smalti.georeference.positions import read_positions
from smalti.georeference.utm import Zone, utm_from_geographic

LABELS = {k: f"IMG_{k:04}.jpg" for k in range(6)}
VIDEO = {k: f"frame {5 * k} ({k / 6:.2f} s)" for k in range(6)}
PLANE = "file,east_m,north_m\nIMG_0000.jpg,0,0\nIMG_0001.jpg,10,0\nIMG_0002.jpg,10,8.5\n"
DEGREES = "file,lat,lon\nIMG_0000.jpg,46.1,9.0\nIMG_0003.jpg,46.2,9.1\nIMG_0005.jpg,46.3,9.2\n"


@pytest.fixture
def read(tmp_path):
    def read_text(text: str, labels=LABELS):
        path = tmp_path / "gps.csv"
        path.write_text(text, encoding="utf-8")
        return read_positions(path, labels)

    return read_text


def test_metres_are_taken_as_they_stand(read):
    positions = read(PLANE)
    assert positions.metres == {0: (0.0, 0.0), 1: (10.0, 0.0), 2: (10.0, 8.5)}
    assert positions.epsg is None
    assert positions.columns == ("east_m", "north_m")
    assert positions.ignored == 0


def test_degrees_become_metres_of_their_utm_zone(read):
    positions = read(DEGREES)
    assert positions.epsg == 32632
    assert positions.columns == ("lat", "lon")
    assert list(positions.metres) == [0, 3, 5]
    expected = utm_from_geographic([46.1, 46.2, 46.3], [9.0, 9.1, 9.2], Zone(32))
    np.testing.assert_array_equal(list(positions.metres.values()), expected)


def test_degrees_are_preferred_to_metres(read):
    text = "\n".join(
        f"{line},{extra}"
        for line, extra in zip(PLANE.split(), ["lat,lon", "46.1,9.0", "46.2,9.1", "46.3,9.2"], strict=True)
    )
    positions = read(text)
    assert positions.columns == ("lat", "lon")
    assert positions.epsg == 32632


@pytest.mark.parametrize("columns", ["latitude,longitude", "x_m,y_m", "easting,northing", " Easting , NORTHING "])
def test_other_usual_names_of_columns_are_known(read, columns):
    assert read(PLANE.replace("east_m,north_m", columns)).columns == tuple(columns.lower().replace(" ", "").split(","))


def test_frames_can_be_named_by_their_numbers(read):
    text = "frame,x_m,y_m\n5,1,2\n0,3,4\n2,5,6\n"
    assert read(text, VIDEO).metres == {5: (1.0, 2.0), 0: (3.0, 4.0), 2: (5.0, 6.0)}


def test_folders_before_a_file_name_do_not_matter(read):
    text = PLANE.replace("IMG_0000", "survey/day 1/IMG_0000").replace("IMG_0001", "C:\\photos\\IMG_0001")
    assert set(read(text).metres) == {0, 1, 2}


def test_rows_of_other_frames_are_counted_and_not_looked_at(read):
    positions = read(PLANE + "IMG_0007.jpg,,\nIMG_0008.jpg,1,2\n")
    assert set(positions.metres) == {0, 1, 2}
    assert positions.ignored == 2


def test_a_byte_order_mark_and_empty_lines_do_not_matter(read):
    assert len(read("\ufeff" + PLANE.replace("\nIMG_0001", "\n\nIMG_0001") + "\n\n").metres) == 3


def refused(read, text: str, *parts: str, labels=LABELS) -> None:
    with pytest.raises(TableError) as caught:
        read(text, labels)
    message = str(caught.value)
    assert "\n" not in message
    for part in ("gps.csv", *parts):
        assert part in message


def test_positions_in_pixels_are_refused(read):
    refused(read, PLANE.replace("east_m,north_m", "x_px,y_px"), "x_px, y_px", "lat,lon", "east_m,north_m")


def test_half_a_pair_of_columns_is_refused(read):
    refused(read, PLANE.replace("north_m", "north"), "no columns say where")


def test_a_table_that_names_no_frames_is_refused(read):
    refused(read, PLANE.replace("file", "picture"), "column file or frame")


def test_a_table_of_other_files_is_refused_with_an_example_of_both(read):
    refused(read, PLANE.replace("IMG_", "DJI_"), "none of its 3 rows", "'DJI_0000.jpg'", "'IMG_0000.jpg'")


def test_a_table_of_other_frame_numbers_is_refused_with_an_example_of_both(read):
    refused(read, "frame,x_m,y_m\n70,1,2\n80,3,4\n90,3,4\n", "none of its 3 rows", "70", "0 to 5", labels=VIDEO)


def test_two_frames_are_too_few(read):
    refused(read, PLANE.replace("IMG_0002", "IMG_0009"), "only 2 of its 3 rows", "3 or more")


def test_a_frame_given_twice_is_refused(read):
    refused(read, PLANE + "IMG_0001.jpg,10,0\n", "line 5", "IMG_0001.jpg", "line 3")


def test_a_name_that_two_frames_have_is_refused(read):
    refused(read, PLANE, "line 3", "2 frames", "IMG_0001.jpg", "column frame", labels={**LABELS, 6: LABELS[1]})


@pytest.mark.parametrize("text", ["", "north", "nan", "1e999"])
def test_what_is_not_a_number_is_refused(read, text):
    refused(read, PLANE.replace("8.5", text), "line 4", "north_m", f"'{text}'", "delete the row")


def test_a_frame_that_is_not_a_whole_number_is_refused(read):
    refused(read, "frame,x_m,y_m\n0,1,2\n1.5,3,4\n2,3,4\n", "line 3", "'1.5'", "from 0", labels=VIDEO)


def test_decimals_with_a_comma_are_refused(read):
    refused(read, PLANE.replace("8.5", "8,5"), "line 4", "4 columns", "3", "point")


@pytest.mark.parametrize("lat", ["85", "-80.1"])
def test_latitudes_beyond_utm_are_refused(read, lat):
    refused(read, DEGREES.replace("46.2", lat), "line 3", f"lat {lat}", "-80 to 84", "east_m,north_m")


def test_longitudes_beyond_the_date_line_are_refused(read):
    refused(read, DEGREES.replace("9.1", "189.1"), "line 3", "lon 189.1", "-180 and 180")


def test_a_position_without_a_fix_is_refused(read):
    far = DEGREES.replace("9.0\n", "99.0\n").replace("9.2\n", "99.2\n").replace("46.2,9.1", "0.0,0.0")
    refused(read, far, "line 3", "lon 0.0", "99 degrees", "zone 47", "delete the row")


@pytest.mark.parametrize("text", ["", "file,lat,lon\n"])
def test_an_empty_table_is_refused(read, text):
    refused(read, text, "holds no positions")


def test_a_column_given_twice_is_refused(read):
    refused(read, PLANE.replace("east_m", "north_m"), "two columns 'north_m'")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"absent\.csv: cannot be read .*check the path"):
        read_positions(tmp_path / "absent.csv", LABELS)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "gps.csv"
    path.write_bytes(b"\xff\xd8\xff\xe0" * 20)
    with pytest.raises(TableError, match="is not a CSV text file"):
        read_positions(path, LABELS)
