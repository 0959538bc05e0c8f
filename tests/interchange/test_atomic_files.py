"""Files and folders: whole or not at all, whatever a killed run has left beside them."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from smalti.errors import OutputError
from smalti.interchange.atomic_files import check_new_folder, check_place, replacing, replacing_folder, write_text


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


def test_what_a_killed_run_left_of_a_file_is_taken_over(tmp_path):
    kill_while("replacing", tmp_path / "mosaic.png")
    assert [path.name for path in tmp_path.iterdir()] == [".mosaic.png.part"]
    write_text(tmp_path / "mosaic.png", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["mosaic.png"]
    assert (tmp_path / "mosaic.png").read_text() == "new"


def test_what_a_killed_run_left_of_a_folder_is_taken_over(tmp_path):
    kill_while("replacing_folder", tmp_path / "mosaic.zarr")
    assert [path.name for path in tmp_path.iterdir()] == [".mosaic.zarr.part"]
    with replacing_folder(tmp_path / "mosaic.zarr") as part:
        assert not any(part.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["mosaic.zarr"]


def kill_while(verb, path):
    """Have another process begin to write and kill itself."""
    code = f"""
import os, signal
from pathlib import Path
from smalti.interchange.atomic_files import {verb}
with {verb}(Path({str(path)!r})) as part:
    (part / "half").write_text("half") if isinstance(part, Path) else part.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL


def test_a_folder_that_was_moved_away_when_the_run_was_killed_comes_back(tmp_path):
    (tmp_path / ".tiles.old").mkdir()
    (tmp_path / ".tiles.old" / "earlier").touch()
    with pytest.raises(KeyboardInterrupt), replacing_folder(tmp_path / "tiles"):
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["tiles"]
    assert (tmp_path / "tiles" / "earlier").exists()


@pytest.mark.parametrize("replace", [replacing, replacing_folder])
def test_what_another_program_is_writing_is_left_alone(replace, tmp_path):
    with replace(tmp_path / "a.zarr"):
        with pytest.raises(OutputError, match="another program is writing it"), replace(tmp_path / "a.zarr"):
            pass
        assert (tmp_path / ".a.zarr.part").exists()
    assert (tmp_path / "a.zarr").exists()


def test_a_disk_without_locks_gets_a_name_for_each_process(tmp_path, monkeypatch):
    def refuse(descriptor, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with replacing(tmp_path / "a.txt") as file:
        file.write(b"text")
        assert [path.name for path in tmp_path.iterdir()] == [f".a.txt.{os.getpid()}.part"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    write_text(tmp_path / ("x" * 255), "text")
    assert [len(path.name) for path in tmp_path.iterdir()] == [255]


def test_a_link_in_the_hidden_place_does_not_lead_to_another_file(tmp_path):
    (tmp_path / "other").write_text("mine")
    (tmp_path / ".a.txt.part").symlink_to(tmp_path / "other")
    with pytest.raises(OutputError, match="cannot be written"):
        write_text(tmp_path / "a.txt", "text")
    assert (tmp_path / "other").read_text() == "mine"


def test_a_pipe_is_no_place_for_a_file(tmp_path):
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(OutputError, match="is a pipe, a socket or a device"):
        check_place(tmp_path / "a.png")


def test_a_folder_that_may_not_be_written_is_known_before_the_work(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    for check in (check_place, check_new_folder):
        with pytest.raises(OutputError, match=r"a: cannot be written \(Permission denied\)"):
            check(tmp_path / "a")


def test_the_current_folder_is_no_new_folder():
    with pytest.raises(OutputError, match="name a new one"):
        check_new_folder(Path())


def test_bytes_of_names_that_are_no_text_are_written_as_escapes(tmp_path):
    write_text(tmp_path / "a.txt", "\udcff.png")
    assert (tmp_path / "a.txt").read_text() == "\\udcff.png"
