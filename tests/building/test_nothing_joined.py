"""Frames that nothing joins: a build ends with what mosaics there are, and says what there is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import smalti
from smalti.cli.build_command import closing_words
from smalti.cli.main import main
from smalti.records import Pair
from tests.building.filmed import TINY, along, error_px, scene, write_images


def noise_frames(count):
    rng = np.random.default_rng(4)
    return [rng.integers(0, 256, (TINY[1], TINY[0], 3), dtype=np.uint8) for _ in range(count)]


def islands(count):
    """Frames of as many places, none of which another one shows."""
    width, height = TINY
    found = []
    for seed in (1, 2, 3):
        land = scene(seed)
        for y in range(0, land.shape[0] - height, height + 30):
            for x in range(0, land.shape[1] - width, width + 30):
                found.append(land[y : y + height, x : x + width])
    return found[:count]


def check_no_mosaic(project, frames):
    told = project.info()
    assert (told.parts, told.frames.placed, told.frames.not_placed) == (0, 0, frames)
    assert set(project.not_placed.values()) == {"matches no other frame"}
    words = closing_words(project)
    assert words.startswith(f"no two of the {frames} frames could be matched: there is no mosaic")
    assert "mosaic.png" not in words
    assert not (project.folder / "mosaic.png").exists()
    assert "There is no mosaic" in (project.folder / "report.html").read_text()
    content = json.loads((project.folder / "transforms.json").read_text())
    assert (content["frames"], len(content["not_placed"])) == ([], frames)


@pytest.mark.parametrize("registration", ["auto", "keypoints", "dense"])
def test_white_noise_leaves_no_mosaic_and_says_so(registration, tmp_path):
    folder = write_images(tmp_path / "images", noise_frames(8))
    with smalti.build(folder, tmp_path / "out", budget=6, registration=registration) as project:
        check_no_mosaic(project, 8)


def test_single_frames_apart_leave_no_mosaic_and_say_so(tmp_path):
    folder = write_images(tmp_path / "images", islands(9))
    with smalti.build(folder, tmp_path / "out") as project:
        check_no_mosaic(project, 9)


def test_two_frames_of_different_places_leave_no_mosaic(tmp_path):
    folder = write_images(tmp_path / "images", islands(2))
    with smalti.build(folder, tmp_path / "out") as project:
        check_no_mosaic(project, 2)


def test_what_is_done_with_no_mosaic_is_refused_in_one_line(tmp_path, capfd):
    folder, out = write_images(tmp_path / "images", islands(3)), str(tmp_path / "out")
    assert main(["build", "-q", str(folder), "-o", out]) == 0
    assert main(["info", out]) == 0
    capfd.readouterr()
    for words in (
        ["render", out, "-o", str(tmp_path / "a.png")],
        ["render", out, "-o", str(tmp_path / "a.png"), "--maps", "uncertainty"],
        ["film", "-q", out, "-o", str(tmp_path / "a.mp4")],
    ):
        assert main(words) == 1
        said = capfd.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1, said.err
        assert "has no mosaic of part 0; nothing was placed" in said.err


@pytest.mark.parametrize("family", ["translation", "projective"])
def test_of_two_unrelated_halves_each_is_a_mosaic(family, tmp_path):
    first, second = along([(100, 100), (330, 100)]), along([(100, 300), (300, 300)], seed=2)
    images = [sequence.frame(n) for sequence in (first, second) for n in range(len(sequence))]
    with smalti.build(write_images(tmp_path / "images", images), tmp_path / "out", family=family) as project:
        parts = [{p.number for p in project.placements if p.part == part} for part in range(project.parts)]
        assert parts == [set(range(len(first))), set(range(len(first), len(images)))]
        cut = Pair(len(first) - 1, len(first))
        assert project.outcome.breaks == project.outcome.unjoined == (cut,)
        if family == "projective":
            assert error_px(project, first) < 0.3
            assert error_px(project, second, part=1, first=len(first)) < 0.3
        assert (project.folder / "mosaic-2.png").is_file()
        assert "no answer joined the two sides" in (project.folder / "report.html").read_text()


def test_frames_of_elsewhere_among_others_lie_nowhere_and_the_rest_holds_together(tmp_path):
    sequence = along([(100, 100), (420, 100)])
    images = [sequence.frame(n) for n in range(len(sequence))]
    strange = (3, 7)
    for place, image in zip(strange, islands(12)[-2:], strict=True):
        images.insert(place, image)
    with smalti.build(write_images(tmp_path / "images", images), tmp_path / "out") as project:
        assert project.parts == 1
        assert set(project.not_placed) == set(strange)
        maps = {placement.number: placement.final for placement in project.placements}
        good = [n for n in range(len(images)) if n not in strange]
        assert sequence.truth_error(np.array([maps[n] for n in good])).rms < 0.3
