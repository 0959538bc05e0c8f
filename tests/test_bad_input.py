"""What cannot be used: one line, the right exit code, no traceback, and nothing left behind."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import time
import zlib
from contextlib import closing
from pathlib import Path

import av
import numpy as np
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


@pytest.mark.parametrize(
    ("count", "size", "level", "said"),
    [
        (4, (0, 0), 255, "has 4 masks, but 5 frames"),
        (5, (1, 0), 255, "give a mask of that size"),
        (5, (0, 0), 0, "all masks are completely black"),
        (0, (0, 0), 0, "holds no images"),
    ],
    ids=["one is missing", "another size", "all black", "empty"],
)
def test_masks_of_frames_that_do_not_fit_leave_nothing(images, tmp_path, capfd, count, size, level, said):
    (tmp_path / "masks").mkdir()
    with Image.open(next(images.iterdir())) as frame:
        width, height = frame.size
    for n in range(count):
        Image.new("L", (width + size[0], height + size[1]), level).save(tmp_path / "masks" / f"mask{n}.png")
    words = complaint(capfd, "build", images, "-o", tmp_path / "out", "-q", "--mask", tmp_path / "masks")
    assert said in words
    assert not (tmp_path / "out").exists()


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
        (["--every=--"], "--every: expected one argument"),
        (["--mask=--"], "--mask: expected one argument"),
        (["--start", "9" * 5000], "give a frame number"),
        (["--end", "9" * 5000 + "s"], "give a frame number"),
        (["--start", "9" * 5000 + ":00"], "give a frame number"),
        (["--reference", "9" * 5000], "give the number of a frame"),
        (["--target-px", "nan"], "positive number"),
        (["--target-px", "inf"], "positive number"),
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


@pytest.fixture(scope="session")
def built(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "strip.smalti"
    assert main(["build", "-q", str(images), "-o", str(folder), "--budget", "0"]) == 0
    return folder


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--scale", "1e-300"], "scale"),
        (["--scale", "5e-324"], "scale"),
        (["--scale", "1e300"], "scale"),
        (["--scale", "nan"], "scale"),
        (["--scale", "inf"], "scale"),
        (["--scale", "0"], "scale"),
        (["--scale=-1"], "scale"),
        (["--scale=--"], "--scale: expected one argument"),
        (["--region", "nan,0,1,1"], "region"),
        (["--region", "0,0,inf,1"], "region"),
        (["--region", "0,0,1e300,-1"], "region"),
        (["--memory", "0"], "memory"),
        (["--memory", "9" * 400], "memory"),
        (["--epsg", "9" * 400, "--positions", "gps.csv"], "gps.csv"),
    ],
)
def test_a_wrong_option_of_render(options, word, built, tmp_path, capfd):
    assert word in complaint(capfd, "render", built, "-o", tmp_path / "a.png", *options, code=1 if "gps" in word else 2)
    assert not any(tmp_path.iterdir())


def test_an_argument_of_any_length_is_one_short_line(tmp_path, capfd):
    said = complaint(capfd, "build", "x" * 100_000, "-o", tmp_path / "out")
    assert len(said) < 2100
    assert "File name too long" in said


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def link_to_a_device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [make_pipe, make_socket, link_to_a_device])
class TestWhatBlocks:
    """Something that is no file, wherever a path is given: refused at once."""

    def test_as_a_video(self, make, tmp_path, capfd):
        make(tmp_path / "x.mp4")
        assert "x.mp4" in refused(capfd, tmp_path, tmp_path / "x.mp4")

    def test_among_images(self, make, images, tmp_path, capfd):
        make(copied(images, tmp_path / "images") / "frame_0009.png")
        assert "frame_0009.png" in refused(capfd, tmp_path, tmp_path / "images")

    def test_as_a_mask(self, make, images, tmp_path, capfd):
        make(tmp_path / "mask.png")
        assert "mask.png" in refused(capfd, tmp_path, images, "-q", "--mask", tmp_path / "mask.png")

    def test_as_landmarks(self, make, built, tmp_path, capfd):
        make(tmp_path / "marks.csv")
        assert "marks.csv" in complaint(capfd, "evaluate", built, "--landmarks", tmp_path / "marks.csv")

    def test_as_positions(self, make, built, tmp_path, capfd):
        make(tmp_path / "gps.csv")
        said = complaint(capfd, "render", built, "-o", tmp_path / "a.png", "--positions", tmp_path / "gps.csv")
        assert "gps.csv" in said

    def test_as_the_source_of_a_project(self, make, built, tmp_path, capfd):
        make(tmp_path / "x.mp4")
        words = ["render", built, "-q", "-o", tmp_path / "a.png", "--source", tmp_path / "x.mp4"]
        assert "x.mp4" in complaint(capfd, *words)

    def test_as_a_project(self, make, tmp_path, capfd):
        make(tmp_path / "project")
        assert "project" in complaint(capfd, "info", tmp_path / "project")

    def test_as_an_output(self, make, built, tmp_path, capfd):
        make(tmp_path / "a.png")
        assert "a.png" in complaint(capfd, "render", built, "-q", "-o", tmp_path / "a.png")


def write_png(path, width, height, pixels=b""):
    """Write a PNG with the size that its header claims, and as many pixels as are given."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


@pytest.mark.parametrize("size", [(100_000, 100_000), (2**31 - 1, 2**31 - 1), (2**27, 1), (12_500, 12_500), (0, 0)])
def test_images_that_lie_about_their_size(size, tmp_path, capfd):
    (tmp_path / "lies").mkdir()
    for name in ("a.png", "b.png"):
        write_png(tmp_path / "lies" / name, *size)
    assert "lies" in refused(capfd, tmp_path, tmp_path / "lies")


def test_frames_too_large_for_memory_are_told_their_remedy(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("smalti.frames.source.physical_memory", lambda: 18 * 10**9)
    (tmp_path / "large").mkdir()
    for name in ("a.png", "b.png"):
        write_png(tmp_path / "large" / name, 10_000, 10_000)
    assert "--max-size 7071 or less" in refused(capfd, tmp_path, tmp_path / "large")


@pytest.mark.parametrize("size", [(1, 1), (23, 300), (300, 23)])
def test_frames_below_24_pixels_leave_no_folder(size, tmp_path, capfd):
    (tmp_path / "small").mkdir()
    for n in range(3):
        noise = np.random.default_rng(n).integers(0, 255, (*size[::-1], 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "small" / f"{n}.png")
    assert f"{size[0]} x {size[1]} px are too small" in refused(capfd, tmp_path, tmp_path / "small")


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "jpeg"])
def test_libtiff_writes_nothing_about_a_damaged_file(compression, images, tmp_path, capfd):
    folder = tmp_path / "damaged"
    folder.mkdir()
    for n, path in enumerate(sorted(images.iterdir())[:2]):
        Image.open(path).convert("RGB").save(folder / f"{n}.tif", compression=compression)
        content = bytearray((folder / f"{n}.tif").read_bytes())
        middle = len(content) // 2
        content[middle : middle + 2000] = bytes(2000)
        content[8:300] = bytes(292)
        (folder / f"{n}.tif").write_bytes(content)
    said = complaint(capfd, "build", "-q", folder, "-o", tmp_path / "out")
    assert "0.tif" in said


def test_odd_metadata_is_one_line_that_names_the_first_file(images, tmp_path, capfd):
    folder = copied(images, tmp_path / "odd")
    entry = struct.pack("<HHII", 270, 2, 2**31, 8)  # a text of two gigabytes
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4)
    for path in sorted(folder.iterdir()):
        Image.open(path).save(path.with_suffix(".jpg"), exif=exif)
        path.unlink()
    assert main(["build", str(folder), "-o", str(tmp_path / "out"), "--budget", "0"]) == 0
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("smalti: ")]
    assert told == [f"smalti: {folder}: 5 of the images have metadata that cannot be read, the first is frame_0000.jpg"]


@pytest.mark.parametrize("white", [(101, 101, 102, 102), (0, 101, 600, 102), (590, 390, 600, 400)])
def test_a_mask_that_leaves_next_to_nothing(white, tmp_path, capfd):
    (tmp_path / "frames").mkdir()
    for n in range(3):
        noise = np.random.default_rng(n).integers(0, 255, (400, 600, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "frames" / f"{n}.png")
    mask = Image.new("L", (600, 400))
    mask.paste(255, white)
    mask.save(tmp_path / "mask.png")
    said = refused(capfd, tmp_path, tmp_path / "frames", "-q", "--mask", tmp_path / "mask.png")
    assert "mask.png: no square of 16 px is white" in said


def test_names_of_images_that_are_no_text(images, tmp_path, capfd):
    folder = tmp_path / "bytes"
    folder.mkdir()
    for n, path in enumerate(sorted(images.iterdir())):
        shutil.copy(path, os.fsencode(folder) + b"/\xff\n%d.png" % n)
    out = tmp_path / "out"
    assert main(["build", "-q", str(folder), "-o", str(out), "--budget", "0"]) == 0
    assert capfd.readouterr().err == ""
    frames = json.loads((out / "transforms.json").read_text())["frames"]
    assert [frame["label"] for frame in frames] == [f"\\xff\\n{n}.png" for n in range(5)]
    assert "\\xff\\n0.png" in (out / "report.html").read_text()


def test_a_bad_image_whose_name_is_no_text_is_one_line(images, tmp_path, capfd):
    folder = copied(images, tmp_path / "bytes")
    Path(os.fsdecode(os.fsencode(folder) + b"/a\n\xff.png")).write_bytes(b"no image")
    assert "/a\\n\\xff.png: is not an image" in refused(capfd, tmp_path, folder)


def test_a_source_whose_path_is_no_text(images, tmp_path, capfd):
    folder = copied(images, Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")))
    assert "/\\xff: its name is not UTF-8 text" in refused(capfd, tmp_path, folder)


@pytest.mark.parametrize("point", ["412,90,10,10", "10,10,10,200", "-3,10,10,10", "1e300,1,1,1"])
def test_landmarks_outside_the_frames(point, built, tmp_path, capfd):
    (tmp_path / "marks.csv").write_text(f"frame_i,frame_j,x_i,y_i,x_j,y_j\n0,1,50,20,10,20\n0,1,{point}\n")
    said = complaint(capfd, "evaluate", built, "--landmarks", tmp_path / "marks.csv")
    assert "marks.csv, line 3: (" in said
    assert "frames of the project are 240 x 180 px; give landmarks of these frames" in said


def test_landmarks_of_frames_that_were_reduced(images, tmp_path, capfd):
    out = tmp_path / "out"
    assert main(["build", "-q", str(images), "-o", str(out), "--budget", "0", "--max-size", "160"]) == 0
    (tmp_path / "marks.csv").write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n0,1,200,20,160,20\n")
    said = complaint(capfd, "evaluate", out, "--landmarks", tmp_path / "marks.csv")
    assert "(200, 20) is not in a frame, frames of the project are 160 x 120 px; --max-size 160 may have" in said


def test_landmarks_on_the_border_count(built, tmp_path, capfd):
    (tmp_path / "marks.csv").write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n0,1,240,100,200,100\n")
    assert main(["evaluate", str(built), "--landmarks", str(tmp_path / "marks.csv")]) == 0
    assert "over 1 landmarks" in capfd.readouterr().out


def test_a_table_without_landmarks_is_named(built, tmp_path, capfd):
    (tmp_path / "marks.csv").write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n")
    said = complaint(capfd, "evaluate", built, "--landmarks", tmp_path / "marks.csv")
    assert "marks.csv: holds no landmarks" in said


WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
"""Take from root the right to read and write what is forbidden to its owner."""


def run_without_rights(*arguments, folder):
    command = [sys.executable, "-m", "smalti.cli.main", *map(str, arguments)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root cannot give up its rights: setpriv is not installed")
        command = WITHOUT_RIGHTS + command
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


@pytest.mark.parametrize(
    ("words", "mode", "named"),
    [
        ("build -q locked -o out", 0o000, "locked"),
        ("build -q locked/a.png locked/b.png -o out", 0o000, "locked/a.png"),
        ("build -q locked/a.mp4 -o out", 0o000, "locked/a.mp4"),
        ("build -q IMAGES -o out --mask locked/a.png", 0o000, "locked/a.png"),
        ("build -q IMAGES -o locked", 0o000, "locked"),
        ("build -q IMAGES -o locked/out", 0o555, "locked/out"),
        ("build -q IMAGES -o locked", 0o555, "locked"),
        ("annotate -q --no-browser locked", 0o000, "locked"),
        ("info locked", 0o000, "locked"),
        ("info locked/project", 0o000, "locked/project"),
        ("evaluate PROJECT --landmarks locked/marks.csv", 0o000, "locked/marks.csv"),
        ("render -q PROJECT -o a.png --positions locked/gps.csv", 0o000, "locked/gps.csv"),
        ("render -q PROJECT -o a.png --source locked", 0o000, "locked"),
        ("render -q PROJECT -o locked/a.png", 0o555, "locked/a.png"),
        ("render -q PROJECT -o locked/a.zarr", 0o000, "locked/a.zarr"),
        ("render -q PROJECT -o locked/a.dzi", 0o555, "locked/a.dzi"),
        ("film -q PROJECT -o locked/a.mp4", 0o555, "locked/a.mp4"),
        ("undistort -q PROJECT -o locked/a", 0o555, "locked/a"),
        ("undistort -q PROJECT -o locked", 0o000, "locked"),
        ("replay -q PROJECT --out locked/a", 0o555, "locked/a"),
        ("experiment -q raster --out locked/a", 0o555, "locked/a"),
    ],
)
def test_without_rights_a_command_is_one_line_that_names_the_path(words, mode, named, images, built, tmp_path):
    (tmp_path / "locked").mkdir(mode=mode)
    words = words.replace("IMAGES", str(images)).replace("PROJECT", str(built)).split()
    done = run_without_rights(*words, folder=tmp_path)
    (tmp_path / "locked").chmod(0o755)
    assert done.stderr.startswith(f"smalti: {named}"), done.stderr
    assert "Permission denied" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["locked"]


@pytest.mark.parametrize("part", ["cache", "cache/keypoints", "cache/rendering", "project.sqlite"])
def test_without_rights_in_a_project_a_build_is_one_line(part, images, built, tmp_path):
    shutil.copytree(built, tmp_path / "project")
    (tmp_path / "project" / part).chmod(0)
    words = ["build", "-q", images, "-o", tmp_path / "project", "--budget", "1"]
    done = run_without_rights(*words, folder=tmp_path)
    (tmp_path / "project" / part).chmod(0o755)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith(f"smalti: {tmp_path / 'project'}")
    assert len(done.stderr.splitlines()) == 1, done.stderr


INTERRUPTED_IMPORT = """
import os, signal, sys, time

class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Interrupts())
from smalti.cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["argparse", "smalti_lab.replay_command", "numpy", "cv2", "numba"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_imported_is_one_line(number, module, images, tmp_path):
    code = INTERRUPTED_IMPORT.format(module=module, number=int(number))
    words = [sys.executable, "-c", code, "build", str(images), "-o", str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, preexec_fn=listen_to_signals)
    assert (done.stdout, done.stderr) == ("", "smalti: interrupted\n")
    assert done.returncode == 128 + number


def listen_to_signals():
    # A shell that runs the tests in the background has them ignore interrupts, and so their children.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_nothing_slow_is_imported_before_signals_are_handled():
    code = "import sys; before = set(sys.modules); import smalti.cli.main; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    allowed = {"smalti", "smalti.cli", "smalti.cli.main", "signal", "enum", "types", "operator", "functools"}
    assert {name for name in done.stdout.split() if not name.startswith(("_", "collections"))} <= allowed | {
        "reprlib",
        "keyword",
        "itertools",
    }


def test_a_signal_during_the_work_ends_it_in_one_line(images, tmp_path):
    code = INTERRUPTED_IMPORT.replace("sys.meta_path.insert(0, Interrupts())", "").format(module="", number=0)
    code = code.replace(
        "from smalti", "import smalti.building.build as b\nb.prepare = lambda *_: time.sleep(60)\nfrom smalti"
    )
    words = [sys.executable, "-c", code, "build", "-q", str(images), "-o", str(tmp_path / "out")]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=listen_to_signals,  # noqa: PLW1509
    ) as process:
        while not (tmp_path / "out" / FILE_NAME).exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.terminate()
        told = process.communicate(timeout=20)
    assert told == ("", "smalti: interrupted; run the same command to continue\n")
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_standard_output_without_room_is_one_line(built):
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "smalti.cli.main", "info", str(built)]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.stderr == "smalti: standard output: cannot be written (No space left on device); free disk space\n"
    assert done.returncode == 1


def test_a_closed_standard_output_is_no_error(built):
    words = [sys.executable, "-m", "smalti.cli.main", "info", str(built)]
    closing_first = ["sh", "-c", 'exec "$@" >&-', "sh", *words]
    done = subprocess.run(closing_first, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_rendering_that_was_killed_leaves_nothing_after_the_next(built, tmp_path):
    code = """
import os, signal, sys
import smalti.rendering.formats.png_jpeg as formats
before = formats.place_world_file
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
formats.zlib.compressobj = die
from smalti.cli.main import main
main()
"""
    words = ["render", "-q", str(built), "-o", str(tmp_path / "mosaic.png")]
    killed = subprocess.run([sys.executable, "-c", code, *words], check=False, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [".mosaic.png.part"]
    assert main(words) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mosaic.png"]


def test_a_closed_standard_error_is_no_error(built, tmp_path):
    words = [sys.executable, "-m", "smalti.cli.main", "undistort", str(built), "-o", str(tmp_path / "frames")]
    closing_first = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words]
    done = subprocess.run(closing_first, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0
    assert "5 frames of" in done.stdout


@pytest.mark.parametrize("ending", [".webm", ".mkv", ".mp4"])
def test_metadata_of_a_video_that_is_no_text(ending, strip, tmp_path, capfd):
    path = tmp_path / f"strip{ending}"
    codec = {".webm": "libvpx-vp9"}.get(ending, "libx264")
    with av.open(path, "w") as container:
        stream = container.add_stream(codec, rate=5)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 240, 180, "yuv420p"
        for image in (strip.frame(n) for n in range(5)):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    content = path.read_bytes()
    assert b"Lavf" in content
    path.write_bytes(content.replace(b"Lavf", b"\xff\xfe\xfd\xfc"))
    assert main(["build", "-q", str(path), "-o", str(tmp_path / "out"), "--budget", "0"]) == 0
    assert capfd.readouterr() == ("", "")


def test_a_video_of_a_codec_that_nobody_knows(strip, tmp_path, capfd):
    path = write_video(strip, tmp_path / "strip.avi")
    content = path.read_bytes()
    codec = content[content.index(b"vids") + 4 :][:4]
    path.write_bytes(content.replace(codec, b"ZZZZ"))
    assert "strip.avi" in refused(capfd, tmp_path, path)


def test_a_disk_without_room_for_compiled_code_is_no_error(tmp_path):
    code = """
import resource, sys, warnings
import numpy as np
from smalti.compiled import compiled

@compiled
def double(number):
    return 2 * number

resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert double(21) == 42
print(*(str(one.message) for one in caught))
"""
    (tmp_path / "program.py").write_text(code)
    words = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("compiled code cannot be saved")
