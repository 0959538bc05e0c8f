"""`smalti info`, `evaluate` and `render` on what a build has left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tifffile
from PIL import Image

import smalti
from smalti.cli.main import main
from smalti.geometry.linear_maps import apply, compose, invert
from smalti.interchange.landmarks_csv import write_landmarks
from smalti.records import Landmarks, Pair
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.walks import FRAMES, truth_error_px, walk

BUDGET = 6


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(walk(), tmp_path_factory.mktemp("source") / "walk.mp4")


@pytest.fixture(scope="module")
def built(video, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "walk.smalti"
    smalti.build(video, folder, budget=BUDGET).close()
    return folder


@pytest.fixture
def truth(tmp_path):
    """Return a file of exact landmarks of all frames that overlap by half."""
    return write_truth(tmp_path / "truth.csv", np.zeros(2))


def write_truth(path, wrong_by):
    """Write landmarks that lie `wrong_by` (2,) pixels from the truth, in the frames i."""
    maps, outline = walk().mosaic_from_frame, walk().outline
    grid = np.stack(np.meshgrid(np.linspace(10, 230, 6), np.linspace(10, 170, 6)), axis=-1).reshape(-1, 2)
    records = []
    for i, j in walk().overlapping_pairs(0.5):
        seen = apply(compose(invert(maps[i]), maps[j]), grid)
        seen = seen + wrong_by
        inside = outline.contains(seen)
        records.append(Landmarks(Pair(int(i), int(j)), seen[inside], grid[inside]))
    write_landmarks(path, records)
    return path


def say(capfd, *words):
    assert main(list(map(str, words))) == 0
    told = capfd.readouterr()
    assert told.err == ""
    return told.out


def complain(capfd, *words, code=1):
    assert main(list(map(str, words))) == code
    told = capfd.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1, told.err
    return told.err


def test_info_counts_frames_questions_and_links(built, capfd):
    info = json.loads(say(capfd, "info", built, "--json"))
    keyframes = info["frames"].pop("keyframes")
    assert FRAMES / 2 < keyframes < FRAMES
    assert info["frames"] == {"read": FRAMES, "placed": FRAMES, "set_aside": 0, "not_placed": 0, "by_neighbours": 0}
    assert info["parts"] == 1
    assert info["chain"]["links"] == keyframes - 1
    assert info["chain"]["bridges"] == 0
    assert info["registered_by"] == "keypoints"
    assert info["asked"] == info["yes"] + info["no"] + info["unsure"] == BUDGET
    assert info["rejected"] == 0
    assert info["attempts"] == BUDGET + keyframes - 1 + info["chain"]["checks"] <= 3 * keyframes
    assert 0 < info["predicted_error_px"] < 1
    assert {"reading", "chain", "appearance", "loop", "finish", "render"} <= info["seconds"].keys()
    assert all(seconds >= 0 for seconds in info["seconds"].values())


def test_info_in_words_has_the_same_numbers(built, capfd):
    words = say(capfd, "info", built)
    assert f"{FRAMES} read, {FRAMES} placed, 0 set aside, 0 not placed" in words
    assert f"questions   {BUDGET}:" in words


def test_info_of_a_build_that_has_not_ended(video, tmp_path, capfd):
    def interrupt(first, second):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        smalti.build(video, tmp_path / "out", matcher=interrupt)
    info = json.loads(say(capfd, "info", tmp_path / "out", "--json"))
    assert info["frames"]["read"] == info["frames"]["not_placed"] == FRAMES
    assert info["parts"] == info["attempts"] == 0
    say(capfd, "info", tmp_path / "out")
    assert "has no mosaic" in complain(capfd, "render", tmp_path / "out", "-o", tmp_path / "a.png")


def test_evaluate_finds_the_error_that_the_truth_has(built, truth, capfd):
    found = json.loads(say(capfd, "evaluate", built, "--landmarks", truth, "--json"))
    pairs = len(walk().overlapping_pairs(0.5))
    assert found["pairs"] == pairs
    assert found["landmarks"] == len(truth.read_text().splitlines()) - 1
    assert found["frames_placed"] == FRAMES
    assert found["pairs_apart"] == found["landmarks_apart"] == 0
    assert found["relative_rmsd_px"] == pytest.approx(truth_error_px(walk(), built), rel=0.5)
    assert 0 < found["median_px"] <= found["relative_rmsd_px"]


def test_evaluate_sees_landmarks_that_are_elsewhere(built, tmp_path, capfd):
    wrong = write_truth(tmp_path / "wrong.csv", np.array([3.0, -4.0]))
    found = json.loads(say(capfd, "evaluate", built, "--landmarks", wrong, "--json"))
    assert found["relative_rmsd_px"] == pytest.approx(5.0, abs=0.3)
    assert "px RMS" in say(capfd, "evaluate", built, "--landmarks", wrong)


def test_render_gives_the_picture_of_the_build(built, tmp_path, capfd):
    words = say(capfd, "render", built, "-q", "-o", tmp_path / "again.png")
    assert words == ""
    assert (tmp_path / "again.png").read_bytes() == (built / "mosaic.png").read_bytes()


def test_render_says_the_size(built, tmp_path, capfd):
    assert main(["render", str(built), "-o", str(tmp_path / "a.png")]) == 0
    with Image.open(tmp_path / "a.png") as image:
        assert capfd.readouterr().out.strip() == f"{tmp_path / 'a.png'}: {image.width} x {image.height} px"


def test_render_to_tiff_has_the_same_pixels(built, tmp_path, capfd):
    say(capfd, "render", built, "-q", "-o", tmp_path / "again.tif")
    with Image.open(built / "mosaic.png") as image:
        png = np.asarray(image)
    assert np.array_equal(tifffile.imread(tmp_path / "again.tif"), png)


def test_render_at_half_the_scale_is_half_the_size(built, tmp_path, capfd):
    say(capfd, "render", built, "-q", "-o", tmp_path / "half.png", "--scale", 0.5)
    with Image.open(built / "mosaic.png") as whole, Image.open(tmp_path / "half.png") as half:
        assert np.abs(np.array(whole.size) / 2 - half.size).max() <= 1


def test_render_needs_no_cache(built, tmp_path, capfd):
    folder = shutil.copytree(built, tmp_path / "copy", ignore=shutil.ignore_patterns("cache"))
    say(capfd, "render", folder, "-q", "-o", tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == (built / "mosaic.png").read_bytes()


def test_without_its_cache_a_project_is_built_again_the_same(built, video, tmp_path, capfd):
    folder = shutil.copytree(built, tmp_path / "copy", ignore=shutil.ignore_patterns("cache", "*.json", "*.png"))
    say(capfd, "build", "-q", video, "-o", folder, "--budget", BUDGET)
    for name in ("transforms.json", "mosaic.png"):
        assert (folder / name).read_bytes() == (built / name).read_bytes(), name


@pytest.fixture
def moved(video, tmp_path):
    """Return a project whose video was moved, and where the video is now."""
    before = shutil.copy(video, tmp_path / "before.mp4")
    smalti.build(before, tmp_path / "out", budget=0, end="5").close()
    return tmp_path / "out", (tmp_path / "before.mp4").rename(tmp_path / "after.mp4")


def test_render_of_a_moved_video_asks_for_its_place(moved, tmp_path, capfd):
    said = complain(capfd, "render", moved[0], "-o", tmp_path / "a.png")
    assert "before.mp4" in said
    assert not (tmp_path / "a.png").exists()


def test_render_takes_the_new_place_of_a_moved_video(moved, tmp_path, capfd):
    folder, now = moved
    say(capfd, "render", folder, "-q", "--source", now, "-o", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == (folder / "mosaic.png").read_bytes()


def test_render_refuses_another_video(built, tmp_path, capfd):
    other = write_video(walk(seed=9), tmp_path / "other.mp4")
    said = complain(capfd, "render", built, "--source", other, "-o", tmp_path / "a.png")
    assert "is not the source" in said


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-o", "OUT.bmp"], 2),
        (["-o", "OUT.png", "--scale", "0"], 2),
        (["-o", "OUT.png", "--part", "9"], 1),
        (["-o", "nowhere/OUT.png"], 1),
        ([], 2),
    ],
)
def test_a_wrong_render_is_one_line(options, code, built, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    complain(capfd, "render", built, "-q", *options, code=code)
    assert not list(tmp_path.iterdir())


def test_a_reader_that_has_seen_enough_is_no_error(built):
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "smalti.cli.main", "info", str(built)]
    with os.fdopen(writing) as gone:
        done = subprocess.run(words, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 141)
