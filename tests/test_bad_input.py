"""What cannot be used: one line, the right exit code, no traceback, and nothing left behind."""

from __future__ import annotations

import errno
import io
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from smalti.cli.main import main
from smalti.project.answer_store import FILE_NAME
from smalti.project.tables import VERSION
from smalti_lab.synthetic.synthetic_files import write_frames, write_video
from tests.building.walks import flown, shifts

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def strip():
    """Return five frames in a row."""
    return flown(shifts([40.0 * n for n in range(5)], [100.0] * 5))


@pytest.fixture(scope="session")
def images(strip, tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    write_frames(strip, folder, ".png")
    return folder


@pytest.fixture(scope="session")
def video(strip, tmp_path_factory):
    return write_video(strip, tmp_path_factory.mktemp("video") / "strip.mp4")


def complaint(capfd, *arguments, code=1):
    """Return the one line that a refused command says."""
    assert main(list(map(str, arguments))) == code
    words = capfd.readouterr()
    assert words.out == ""
    assert len(words.err.splitlines()) == 1, words.err
    assert words.err.startswith("smalti: ")
    assert "Traceback" not in words.err
    return words.err


def refused(capfd, tmp_path, source, *options, code=1):
    """Return what a build of a bad source says; it leaves no project."""
    out = tmp_path / "out"
    said = complaint(capfd, "build", source, "-o", out, *options, code=code)
    assert not out.exists()
    return said


def copied(images, folder):
    folder.mkdir()
    for path in images.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_truncated_video(video, tmp_path, capfd):
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    assert str(cut) in refused(capfd, tmp_path, cut)


def test_an_empty_file(tmp_path, capfd):
    (tmp_path / "empty.mp4").touch()
    assert "empty.mp4" in refused(capfd, tmp_path, tmp_path / "empty.mp4")


def test_text_that_is_called_a_video(tmp_path, capfd):
    (tmp_path / "letter.mp4").write_text("Dear reader,\n" * 1000)
    assert "letter.mp4" in refused(capfd, tmp_path, tmp_path / "letter.mp4")


def test_a_missing_path(tmp_path, capfd):
    assert "does not exist" in refused(capfd, tmp_path, tmp_path / "nothing.mp4")


def test_a_folder_of_one_image(images, tmp_path, capfd):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.png").write_bytes((images / "frame_0000.png").read_bytes())
    assert "a.png" in refused(capfd, tmp_path, tmp_path / "one")


def test_an_empty_folder(tmp_path, capfd):
    (tmp_path / "none").mkdir()
    assert "holds no images" in refused(capfd, tmp_path, tmp_path / "none")


def test_images_of_two_sizes(images, tmp_path, capfd):
    folder = copied(images, tmp_path / "mixed")
    Image.new("RGB", (100, 80)).save(folder / "frame_0009.png")
    assert "frame_0009.png" in refused(capfd, tmp_path, folder)


def test_a_cmyk_image_is_refused_by_name(images, tmp_path, capfd):
    folder = copied(images, tmp_path / "press")
    Image.new("CMYK", (240, 180)).save(folder / "frame_0009.jpg")
    assert "frame_0009.jpg" in refused(capfd, tmp_path, folder)


def test_an_animation_among_images_is_refused_by_name(images, tmp_path, capfd):
    folder = copied(images, tmp_path / "moving")
    pages = [Image.new("RGB", (240, 180), color) for color in ("red", "green", "blue")]
    pages[0].save(folder / "frame_0009.gif", save_all=True, append_images=pages[1:])
    assert "frame_0009.gif" in refused(capfd, tmp_path, folder)


def test_an_image_that_is_cut_off(images, tmp_path, capfd):
    folder = copied(images, tmp_path / "cut")
    whole = (folder / "frame_0002.png").read_bytes()
    (folder / "frame_0002.png").write_bytes(whole[: len(whole) // 2])
    assert "frame_0002.png" in complaint(capfd, "build", "-q", folder, "-o", tmp_path / "out")


def test_images_that_show_nothing(tmp_path, capfd):
    folder = tmp_path / "black"
    folder.mkdir()
    for n in range(4):
        Image.new("RGB", (240, 180)).save(folder / f"{n}.png")
    said = complaint(capfd, "build", "-q", folder, "-o", tmp_path / "out")
    assert "fewer than two frames are usable" in said


def test_a_mask_of_the_wrong_size_leaves_nothing(images, tmp_path, capfd):
    Image.new("L", (100, 80), 255).save(tmp_path / "mask.png")
    refused(capfd, tmp_path, images, "-q", "--mask", tmp_path / "mask.png")


def test_a_missing_mask_leaves_nothing(images, tmp_path, capfd):
    refused(capfd, tmp_path, images, "-q", "--mask", tmp_path / "mask.png")


def test_a_mask_of_the_wrong_size(images, tmp_path, capfd):
    Image.new("L", (100, 80), 255).save(tmp_path / "mask.png")
    said = complaint(capfd, "build", images, "-o", tmp_path / "out", "-q", "--mask", tmp_path / "mask.png")
    assert "mask.png" in said
    assert "240" in said


def test_a_missing_mask(images, tmp_path, capfd):
    said = complaint(capfd, "build", images, "-o", tmp_path / "out", "-q", "--mask", tmp_path / "mask.png")
    assert "mask.png" in said


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--budget", "-1"], "budget"),  # refused by the build, as all that building/test_truth.py lists
        (["--budget", "many"], "budget"),
        (["--start", "4"], "leave 1 of 5"),
        (["--max-size", "3"], "max size"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_a_wrong_option(options, word, images, tmp_path, capfd):
    assert word in refused(capfd, tmp_path, images, *options, code=2)


def test_an_output_that_is_a_file(images, tmp_path, capfd):
    (tmp_path / "file").write_text("in the way")
    assert "is a file" in complaint(capfd, "build", images, "-o", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "in the way"


def test_an_output_inside_a_file(images, tmp_path, capfd):
    (tmp_path / "file").write_text("in the way")
    complaint(capfd, "build", images, "-o", tmp_path / "file" / "out")


def test_an_output_that_holds_something_else(images, tmp_path, capfd):
    (tmp_path / "diary.txt").write_text("mine")
    assert "not empty and not a project" in complaint(capfd, "build", images, "-o", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


@pytest.mark.parametrize("command", ["build", "info", "render", "evaluate"])
def test_a_project_of_a_newer_version_is_refused_and_stays_as_it_is(command, images, tmp_path, capfd):
    folder = newer_project(tmp_path)
    before = (folder / FILE_NAME).read_bytes()
    assert "newer Smalti" in complaint(capfd, *call_on(folder, command, images, tmp_path))
    assert (folder / FILE_NAME).read_bytes() == before


def call_on(folder, command, images, tmp_path):
    (tmp_path / "marks.csv").write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n0,1,1,1,1,1\n")
    return {
        "build": ["build", images, "-o", folder],
        "info": ["info", folder],
        "render": ["render", folder, "-o", tmp_path / "again.png"],
        "evaluate": ["evaluate", folder, "--landmarks", tmp_path / "marks.csv"],
    }[command]


def newer_project(tmp_path):
    folder = tmp_path / "newer"
    folder.mkdir()
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO fact VALUES ('version', ?)", (json.dumps(VERSION + 1),))
    return folder


@pytest.mark.parametrize("command", [["info"], ["render", "-o", "OUT"], ["evaluate", "--landmarks", "OUT"]])
def test_a_folder_that_is_no_project(command, tmp_path, capfd):
    (tmp_path / "folder").mkdir()
    name, *rest = (str(tmp_path / "out.png") if word == "OUT" else word for word in command)
    assert "not a Smalti project" in complaint(capfd, name, tmp_path / "folder", *rest)
    assert "no such project" in complaint(capfd, name, tmp_path / "nowhere", *rest)
    assert not (tmp_path / "nowhere").exists()
    assert not any((tmp_path / "folder").iterdir())


def test_a_project_file_that_is_none(images, tmp_path, capfd):
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(b"not a database at all" * 100)
    assert "damaged" in complaint(capfd, "build", images, "-o", folder)
    assert "damaged" in complaint(capfd, "info", folder)


def test_an_output_that_may_not_be_written(images, tmp_path, capfd, monkeypatch):
    # Rights of files would not stop root: the folder is refused, whoever asks.
    made = Path.mkdir

    def forbidden(folder, *more, **options):
        if folder == tmp_path / "locked" / "out":
            raise PermissionError(errno.EACCES, "Permission denied")
        made(folder, *more, **options)

    monkeypatch.setattr(Path, "mkdir", forbidden)
    said = complaint(capfd, "build", images, "-o", tmp_path / "locked" / "out")
    assert "out: cannot be made (Permission denied)" in said


def test_spaces_and_letters_of_all_alphabets_in_paths(images, strip, tmp_path, capfd):
    folder = copied(images, tmp_path / "Überflug 東京 – 1")
    out = tmp_path / "Ergebnis ñ 2"
    assert main(["build", "-q", str(folder), "-o", str(out), "--budget", "1"]) == 0
    assert (out / "mosaic.png").exists()
    film = write_video(strip, tmp_path / "фильм один.mp4")
    assert main(["build", "-q", str(film), "-o", str(tmp_path / "кадры"), "--budget", "1"]) == 0
    assert main(["render", "-q", str(out), "-o", str(tmp_path / "ö ä.tif")]) == 0
    assert (tmp_path / "ö ä.tif").exists()
    assert capfd.readouterr() == ("", "")


def test_a_disk_that_fills_at_any_time(images, tmp_path):
    """No file may grow beyond a limit, which comes closer from run to run."""
    out = tmp_path / "out"
    for limit in (120_000, 40_000, 3_000):
        done = run_limited(limit, "build", "-q", images, "-o", out, "--budget", "2")
        assert done.returncode == 1, (limit, done.stderr)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert str(out) in done.stderr
        assert not (out / "report.html").exists()


def test_a_build_that_met_a_full_disk_goes_on_when_there_is_room(images, tmp_path, capfd):
    assert run_limited(120_000, "build", "-q", images, "-o", tmp_path / "out", "--budget", "2").returncode == 1
    assert main(["build", "-q", str(images), "-o", str(tmp_path / "out"), "--budget", "2"]) == 0
    assert main(["build", "-q", str(images), "-o", str(tmp_path / "fresh"), "--budget", "2"]) == 0
    assert capfd.readouterr() == ("", "")
    one, other = ((tmp_path / name / "transforms.json").read_bytes() for name in ("out", "fresh"))
    assert one == other


def run_limited(limit, *arguments):
    code = "import resource, sys\nfrom smalti.cli.main import main\n"
    code += (
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))\nsys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_a_table_that_finds_no_room(images, tmp_path, capfd, monkeypatch):
    class FullForTables(io.FileIO):
        def write(self, content):
            if ".csv." in str(self.name):
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(content)

    monkeypatch.setattr(io, "FileIO", FullForTables)
    said = complaint(capfd, "build", "-q", images, "-o", tmp_path / "out", "--budget", "0")
    assert "landmarks.csv" in said
    assert "No space left" in said
    assert not list((tmp_path / "out").glob(".*.part"))


def test_landmarks_of_a_frame_that_is_not_there(images, tmp_path, capfd):
    assert main(["build", "-q", str(images), "-o", str(tmp_path / "out"), "--budget", "0"]) == 0
    (tmp_path / "marks.csv").write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n0,77,1,1,1,1\n")
    assert "frame 77" in complaint(capfd, "evaluate", tmp_path / "out", "--landmarks", tmp_path / "marks.csv")
    (tmp_path / "marks.csv").write_text("a,b\n1,2\n")
    assert "marks.csv" in complaint(capfd, "evaluate", tmp_path / "out", "--landmarks", tmp_path / "marks.csv")
    (tmp_path / "marks.csv").write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n")
    complaint(capfd, "evaluate", tmp_path / "out", "--landmarks", tmp_path / "marks.csv")
    for wrong in (["--part", "2"], ["--part", "0"], ["--part", "-1"]):
        assert "has no mosaic" in complaint(capfd, "render", tmp_path / "out", "-o", tmp_path / "x.png", *wrong)
