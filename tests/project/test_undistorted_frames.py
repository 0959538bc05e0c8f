"""Frames for programs that know no lens."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from smalti.cli.main import main
from smalti.errors import OutputError, ProjectError
from smalti.frames.source import open_source
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import FrameEntry, Placement
from smalti.project.project import Project
from smalti.project.undistorted_frames import write_undistorted_frames
from smalti.rendering.mosaic import Mosaic
from tests.project.entries import outcome
from tests.project.folders import BINDING
from tests.rendering.scene import frame_of, psnr, shift, turn
from tests.rendering.worlds import HEIGHT, WIDTH

WORLD = {k: shift(55.1 * (k % 3), 40.9 * (k // 3)) @ turn(5 * k) for k in range(6)}
LENS = Lens(Outline.of_pixels(WIDTH, HEIGHT), 0.09, -0.01)


def make_project(folder: Path, lens: Lens, mask: np.ndarray | None = None) -> Project:
    images = folder / "images"
    images.mkdir(parents=True)
    for number, matrix in WORLD.items():
        assert cv2.imwrite(str(images / f"{number}.png"), frame_of(matrix, WIDTH, HEIGHT, lens)[..., ::-1])
    with open_source(images, BINDING.source) as source:
        project = Project.begin(folder / "project", source, str(images), BINDING)
    project.keep_mask(mask)
    project.store.keep_frames([FrameEntry(n, f"{n}.png", "too dark" if n == 6 else "") for n in range(7)])
    placements = [Placement(n, 0, matrix, matrix, 0.5) for n, matrix in WORLD.items()]
    distortion = None if lens.is_undistorted else (lens.k1, lens.k2)
    project.store.keep_result(placements, [], outcome(lens=distortion))
    return project


def read_written(folder: Path) -> tuple[dict, dict[int, np.ndarray], np.ndarray]:
    content = json.loads((folder / "transforms.json").read_text())
    frames = {one["frame"]: np.asarray(Image.open(folder / one["label"])) for one in content["frames"]}
    return content, frames, np.asarray(Image.open(folder / "mask.png")) > 0


class Pictures:
    def __init__(self, frames: dict[int, np.ndarray]) -> None:
        self.frames = frames

    def read_many(self, indices):
        return ((index, self.frames[index]) for index in indices)


@pytest.mark.parametrize("masked", [False, True])
def test_who_knows_no_lens_renders_the_same_mosaic(tmp_path, masked):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    mask = (x - 80) ** 2 + (y - 60) ** 2 < 59**2 if masked else None
    with make_project(tmp_path, LENS, mask) as project:
        size = write_undistorted_frames(project, tmp_path / "straight")
        mosaic = project.mosaic()
        with_lens = mosaic.render(mosaic.canvas(), "feather", even_light=False)
    content, frames, seen = read_written(tmp_path / "straight")
    assert content["lens"] is None
    assert size == (content["frame_width"], content["frame_height"]) == seen.shape[::-1]
    maps = {one["frame"]: np.array(one["final"]) for one in content["frames"]}
    np.testing.assert_allclose(maps[0], np.eye(3), atol=1e-12)
    other = Mosaic(Pictures(frames), maps, *size, seen)
    alone = other.render(other.canvas(), "feather", even_light=False)
    shift_px = _start(mosaic) - _start(other) - np.floor(LENS.rim.min(axis=0) + 0.5)
    matrix = np.column_stack([np.eye(2), shift_px])
    moved = cv2.warpAffine(alone, matrix, with_lens.shape[1::-1], flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP)
    both = (moved[..., 3] > 0) & (with_lens[..., 3] > 0)
    assert both.sum() > 0.985 * (with_lens[..., 3] > 0).sum()
    assert psnr(moved[both][:, :3], with_lens[both][:, :3].astype(float)) > 42


def _start(mosaic: Mosaic) -> np.ndarray:
    return np.array([mosaic.canvas().left, mosaic.canvas().top])


def test_frames_without_a_lens_are_written_as_they_are(tmp_path):
    straight = Lens(LENS.outline)
    with make_project(tmp_path, straight) as project:
        assert write_undistorted_frames(project, tmp_path / "same") == (WIDTH, HEIGHT)
    content, frames, mask = read_written(tmp_path / "same")
    assert mask.all()
    for one in content["frames"]:
        np.testing.assert_array_equal(frames[one["frame"]], frame_of(WORLD[one["frame"]], WIDTH, HEIGHT))
        np.testing.assert_array_equal(one["final"], WORLD[one["frame"]])


def test_frames_that_were_not_placed_are_named_and_not_written(tmp_path):
    with make_project(tmp_path, LENS) as project:
        write_undistorted_frames(project, tmp_path / "straight")
    content, _, _ = read_written(tmp_path / "straight")
    assert content["not_placed"] == [{"frame": 6, "reason": "too dark"}]
    assert sorted(file.name for file in (tmp_path / "straight" / "frames").iterdir()) == [
        f"{number:06d}.png" for number in WORLD
    ]


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    with make_project(tmp_path / "p", LENS) as project, pytest.raises(OutputError, match="not an empty folder"):
        write_undistorted_frames(project, tmp_path / "full")
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["letter.txt"]


def test_a_project_without_a_mosaic_has_nothing_to_write(tmp_path):
    with make_project(tmp_path, LENS) as project:
        project.store.keep_result([], [], project.outcome)
        with pytest.raises(ProjectError, match="nothing was placed"):
            write_undistorted_frames(project, tmp_path / "straight")
    assert not (tmp_path / "straight").exists()


def test_the_command_says_where_they_are(tmp_path, capfd):
    make_project(tmp_path, LENS).close()
    assert main(["undistort", str(tmp_path / "project"), "-o", str(tmp_path / "straight")]) == 0
    assert f"{tmp_path / 'straight'}: 6 frames of " in capfd.readouterr().out
    assert main(["undistort", "-q", str(tmp_path / "project"), "-o", str(tmp_path / "straight")]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "name a new one" in told.err


def test_info_tells_the_lens_in_one_line(tmp_path, capfd):
    make_project(tmp_path, LENS).close()
    assert main(["info", str(tmp_path / "project")]) == 0
    assert "lens        radial distortion k1 = 0.09, k2 = -0.01 (12 % at the corners)" in capfd.readouterr().out
