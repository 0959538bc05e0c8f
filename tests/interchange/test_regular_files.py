"""Only regular files are opened: whatever would block, never end or lie is refused at once."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from smalti.errors import InputError, TableError
from smalti.interchange.regular_files import kind_of, open_regular, open_table, reading


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = pytest.mark.parametrize(
    ("make", "kind"), [(make_pipe, "a pipe"), (make_socket, "a socket|cannot be read"), (link_to_a_device, "a device")]
)


@KINDS
def test_what_is_no_file_is_not_opened(make, kind, tmp_path):
    make(tmp_path / "x.mp4")
    with pytest.raises(InputError, match=rf"x\.mp4: (is )?({kind})"):
        open_regular(tmp_path / "x.mp4")


@KINDS
def test_what_is_no_file_is_recognised(make, kind, tmp_path):
    make(tmp_path / "x.mp4")
    with pytest.raises(InputError, match="not a file; copy what it holds to a file first"):
        kind_of(tmp_path / "x.mp4")


def test_a_folder_is_not_opened(tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        open_regular(tmp_path, TableError)


def test_kinds_of_paths(tmp_path):
    (tmp_path / "file").touch()
    assert kind_of(tmp_path) == "folder"
    assert kind_of(tmp_path / "file") == "file"
    assert kind_of(tmp_path / "nothing") == "nothing"
    assert kind_of(tmp_path / "file" / "below") == "nothing"


def test_a_loop_of_links_is_one_line(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match=r"loop: cannot be read \(.*\); check the path"):
        kind_of(tmp_path / "loop")


def test_a_name_that_is_too_long_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read \(File name too long\)"):
        kind_of(tmp_path / ("x" * 300))


def test_a_name_with_a_zero_byte_is_one_line(tmp_path):
    with pytest.raises(InputError, match="is not the name of a file"):
        open_regular(tmp_path / "a\0b")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(10**12)  # takes no room on the disk
    with pytest.raises(TableError, match=r"large\.csv: is too large \(1000000 MB, at most 100 are read\)"):
        open_table(tmp_path / "large.csv")


def test_a_file_is_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfa,b\n")
    with open_table(tmp_path / "a.csv") as file:
        assert file.read() == "a,b\n"


def test_an_error_while_reading_names_the_file(tmp_path):
    with (
        pytest.raises(TableError, match=r"a\.csv: cannot be read \(Input/output error\)"),
        reading(tmp_path / "a.csv", TableError),
    ):
        raise OSError(5, "Input/output error")
