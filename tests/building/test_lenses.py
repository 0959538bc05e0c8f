"""A camera whose lens bends straight lines: a whole build finds the lens, and the mosaic is straight."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

import smalti
from smalti.cli.build_command import described
from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti_lab.synthetic.camera_path import raster
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from tests.building.filmed import HANDLING, error_px, write_images

SCENE_SIZE, MARGIN = (700, 500), 30
FRAME = (240, 180)
FRAMES = 24
CORNERS = 0.05
"""Of the way from the centre: by so much the lens moves the corners."""


def filmed(k1: float) -> tuple[SyntheticSequence, Lens, list[np.ndarray]]:
    """Strips forth and back over a scene, and its frames as they are seen through a lens."""
    scene = procedural_scene(*(side + 2 * MARGIN for side in SCENE_SIZE), seed=1)
    camera = raster(SCENE_SIZE, FRAMES, FRAME, handling=HANDLING, sidelap=0.6, step=0.22, seed=3)
    sequence = SyntheticSequence(scene[MARGIN:-MARGIN, MARGIN:-MARGIN], camera)
    lens = Lens(sequence.outline, k1)
    x, y = np.meshgrid(np.arange(FRAME[0]), np.arange(FRAME[1]))
    straight = lens.undistort(np.stack([x, y], axis=-1).reshape(-1, 2).astype(float))
    images = []
    for matrix in sequence.mosaic_from_frame:
        at = project_points(np.vstack([matrix, [0, 0, 1]]), straight) + MARGIN
        grid = at.reshape(FRAME[1], FRAME[0], 2).astype(np.float32)
        images.append(cv2.remap(scene, grid, None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT))
    return sequence, lens, images


@pytest.fixture(scope="module", params=[1.0, -1.0], ids=["pincushion", "barrel"])
def bent(request, tmp_path_factory):
    base = tmp_path_factory.mktemp("bent")
    sequence, lens, images = filmed(request.param * CORNERS / corner_square())
    with smalti.build(write_images(base / "images", images), base / "out", budget=30) as project:
        yield project, sequence, lens


def corner_square() -> float:
    """The squared distance of a corner from the centre, in units of the lens."""
    lens = Lens(Outline.of_pixels(*FRAME))
    offset = (lens.outline.corners[0] - lens.outline.centre) / lens.unit
    return float(offset @ offset)


def test_the_lens_is_found(bent):
    project, _, lens = bent
    corners = lens.outline.corners
    off = np.linalg.norm(project.lens.undistort(corners) - lens.undistort(corners), axis=1)
    moved = np.linalg.norm(corners - lens.undistort(corners), axis=1)
    assert moved.min() > 6
    assert off.max() < 0.1 * moved.min()


def test_the_mosaic_lies_near_the_truth(bent):
    project, sequence, _ = bent
    assert [placement.number for placement in project.placements] == [*range(FRAMES)]
    assert error_px(project, sequence) < 0.3


def test_the_lens_is_in_every_file_that_tells_of_the_mosaic(bent):
    project, _, _ = bent
    told = json.loads((project.folder / "transforms.json").read_text())["lens"]
    assert (told["k1"], told["k2"]) == (project.lens.k1, project.lens.k2)
    info = project.info()
    assert info.lens.k1 == project.lens.k1
    assert f"lens        radial distortion k1 = {project.lens.k1:.4g}" in described(info)
    assert f"Lens: radial distortion k₁ = {project.lens.k1:.4g}" in (project.folder / "report.html").read_text()


def test_landmarks_are_held_against_it_where_they_are_seen(bent):
    project, _, _ = bent
    assert project.evaluate(project.folder / "landmarks.csv").relative_rmsd_px < 0.6


def test_the_same_camera_without_a_lens_has_none(tmp_path):
    sequence, _, images = filmed(0.0)
    with smalti.build(write_images(tmp_path / "images", images), tmp_path / "out", budget=30) as project:
        assert project.lens.is_undistorted
        assert project.info().lens is None
        assert json.loads((project.folder / "transforms.json").read_text())["lens"] is None
        assert "Lens:" not in (project.folder / "report.html").read_text()
        assert error_px(project, sequence) < 0.15
