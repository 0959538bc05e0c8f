"""Text files: whole or not at all."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from smalti.errors import OutputError
from smalti.interchange.atomic_files import write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_text_is_there_in_utf_8_and_nothing_else(tmp_path):
    write_text(tmp_path / "table.csv", "größe,σ\n1,2\n")
    assert (tmp_path / "table.csv").read_bytes() == "größe,σ\n1,2\n".encode()
    assert names(tmp_path) == ["table.csv"]


def test_an_old_file_is_replaced_whole(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a longer text that was there before")
    write_text(path, "short")
    assert path.read_text() == "short"


def test_a_reader_never_sees_half_a_file(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("before")
    replace, seen = Path.replace, []

    def look_and_replace(self, target):
        seen.append((path.read_text(), self.read_text()))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", look_and_replace)
    write_text(path, "after")
    assert seen == [("before", "after")]
    assert path.read_text() == "after"


def test_a_full_disk_leaves_the_old_file_and_no_rest(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))
    try:
        with pytest.raises(OutputError, match=r"table\.csv: cannot be written \(File too large\)"):
            write_text(path, "after" * 2_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "before"
    assert names(tmp_path) == ["table.csv"]


def test_a_folder_that_is_missing_is_an_error_in_one_line(tmp_path):
    with pytest.raises(OutputError) as caught:
        write_text(tmp_path / "nowhere" / "table.csv", "text")
    assert str(tmp_path / "nowhere" / "table.csv") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_in_the_place_of_the_file_is_an_error_and_leaves_no_rest(tmp_path):
    (tmp_path / "table.csv").mkdir()
    with pytest.raises(OutputError, match=r"table\.csv"):
        write_text(tmp_path / "table.csv", "text")
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("name", ["in the way/table.csv", "x" * 300 + ".csv"], ids=["below a file", "too long"])
def test_a_place_where_no_file_can_be_is_an_error_in_one_line(tmp_path, name):
    (tmp_path / "in the way").write_text("a file")
    with pytest.raises(OutputError, match="cannot be written"):
        write_text(tmp_path / name, "text")
