"""What is attacked: six small frames of which a build takes a second, and a finished project of them."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from smalti.geometry.linear_maps import apply
from smalti_lab.synthetic.camera_path import wander
from smalti_lab.synthetic.synthetic_files import write_frames
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from tests.building.filmed import HANDLING, SCENE_SIZE, scene
from tests.campaign.commands import Worker, workers

FRAMES = 6
SIZE = (96, 72)
BUILD = ("--registration", "keypoints", "--budget", "3", "-q")
"""Options of a build that is over soon."""

COMPILING_SECONDS = 900.0
"""For the first command after a change of the code."""

DELIVERED = ("mosaic.png", "transforms.json", "landmarks.csv")
"""Files of a build that are the same every time."""


@cache
def small_walk() -> SyntheticSequence:
    return SyntheticSequence(scene(), wander(SCENE_SIZE, FRAMES, SIZE, handling=HANDLING, seed=2))


def positions() -> str:
    """Return a table of where the frames were taken: a pixel is about a tenth of a metre, north is up."""
    centres = apply(small_walk().mosaic_from_frame, (np.array([SIZE]) - 1) / 2)[:, 0]
    rows = [f"frame_{n:04}.png,{47 - 1e-6 * y:.9f},{8 + 1.466e-6 * x:.9f}" for n, (x, y) in enumerate(centres)]
    return "\n".join(["file,lat,lon", *rows, ""])


def write_images(folder: Path) -> Path:
    write_frames(small_walk(), folder, ".png")
    return folder


def build_project(folder: Path) -> Path:
    """Build the project `walk.smalti` of the images `walk` in a folder, with a table of positions beside it."""
    images, project = write_images(folder / "walk"), folder / "walk.smalti"
    (folder / "positions.csv").write_text(positions())
    with workers(1) as (worker,):
        ended = worker.run("build", images, "-o", project, *BUILD, patience=COMPILING_SECONDS)
    assert ended.code == 0, ended.err
    return project


@cache
def compile_kernels() -> None:
    """Run each command once, so that no try has to wait for code to be compiled."""
    with TemporaryDirectory(prefix="smalti-campaign-") as name, workers(1) as (worker,):
        place = Path(name)
        project = build_project(place)
        for words in (
            ["render", "-q", project, "-o", place / "mosaic.png"],
            ["film", "-q", project, "-o", place / "film.gif", "--seconds", "6", "--size", "160"],
            ["undistort", "-q", project, "-o", place / "undistorted"],
            ["replay", "-q", project],
            ["annotate", "-q", "--no-browser", project],
        ):
            ended = worker.run(*words, place=place, patience=COMPILING_SECONDS)
            assert ended.code == 0, ended.err


def copy_project(project: Path, place: Path) -> Path:
    """Copy a project and its images to a place, so that both can be damaged; its file still names the old images."""
    shutil.copytree(project.parent / "walk", place / "walk")
    return Path(shutil.copytree(project, place / "walk.smalti", symlinks=True))


def resume(worker: Worker, place: Path) -> object:
    return worker.run("build", place / "walk", "-o", place / "walk.smalti", *BUILD)
