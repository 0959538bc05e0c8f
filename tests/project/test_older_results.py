"""A project that an older Smalti finished: what is in its file is shown, what is not is asked for in one line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import smalti
from smalti.cli.main import main
from smalti.project.answer_store import FILE_NAME
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.walks import FRAMES, truth_error_px, walk
from tests.project.format_2 import bring_back_to_format_2

BUDGET = 6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("older")
    video = write_video(walk(), base / "walk.mp4")
    smalti.build(video, base / "new", budget=BUDGET).close()
    shutil.copytree(base / "new", base / "old")
    facts = {"noise": 1.25, "finish": ["homography"], "left_out_px": [{"affine": 1.5, "homography": 0.5}]}
    bring_back_to_format_2(base / "old" / FILE_NAME, guesses=[], asked_by="smalti", **facts)
    return video, base / "old", base / "new"


@pytest.fixture
def old(made, tmp_path):
    return shutil.copytree(made[1], tmp_path / "old")


def say(capfd, *words):
    assert main(list(map(str, words))) == 0
    said = capfd.readouterr()
    assert said.err == ""
    return said.out


def complain(capfd, *words):
    assert main(list(map(str, words))) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    return said.err


def test_info_tells_what_there_is(old, capfd):
    told = json.loads(say(capfd, "info", old, "--json"))
    assert (told["frames"]["placed"], told["asked"], told["family"], told["lens"]) == (FRAMES, BUDGET, None, None)
    words = say(capfd, "info", old)
    assert f"{FRAMES} placed" in words
    assert "maps " not in words
    assert "0.50 px error on matches not used for a trial fit" in words
    assert (old / f"{FILE_NAME}.v2").is_file()


def test_the_picture_is_rendered_as_it_was(old, made, tmp_path, capfd):
    say(capfd, "render", "-q", old, "-o", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == (made[2] / "mosaic.png").read_bytes()


def test_maps_that_need_no_engine_are_made(old, tmp_path, capfd):
    say(capfd, "render", "-q", old, "-o", tmp_path / "a.png", "--maps", "source,coverage")
    assert (tmp_path / "a.source.tif").is_file()


@pytest.mark.parametrize(
    "words", [["film", "-q", "OLD", "-o", "OUT.mp4"], ["render", "OLD", "-o", "OUT.png", "--maps", "uncertainty"]]
)
def test_what_the_engine_would_have_to_know_is_asked_for_in_one_line(words, old, tmp_path, capfd):
    words = [word.replace("OLD", str(old)).replace("OUT", str(tmp_path / "out")) for word in words]
    said = complain(capfd, *words)
    assert "older Smalti; run the same smalti build command again, which keeps all answers" in said
    assert not list(tmp_path.glob("out*"))


def test_the_same_command_finishes_it_anew_and_asks_nothing(old, made, tmp_path, capfd):
    with smalti.Project.open(old) as project:
        before = [(entry.answer.pair, entry.seconds) for entry in project.answers]
    say(capfd, "build", "-q", made[0], "-o", old, "--budget", BUDGET)
    with smalti.Project.open(old) as project:
        assert [(entry.answer.pair, entry.seconds) for entry in project.answers] == before
        assert project.store.fact("family") == "projective"
        maps = np.array([placement.final for placement in project.placements])
    assert truth_error_px(walk(), old) < 0.3
    with smalti.Project.open(made[2]) as project:
        np.testing.assert_array_equal(maps, [placement.final for placement in project.placements])
    say(capfd, "film", "-q", old, "-o", tmp_path / "a.mp4", "--seconds", 6)
    say(capfd, "render", "-q", old, "-o", tmp_path / "a.png", "--maps", "uncertainty")
