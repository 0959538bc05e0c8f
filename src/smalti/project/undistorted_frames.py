"""A project's frames for programs that know no lens: straight pictures, and the maps that belong to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError, ProjectError
from smalti.geometry.homography import invert_homographies
from smalti.interchange.transforms_json import FrameTransform, write_transforms
from smalti.project.project import Project
from smalti.rendering.formats.files import naming, replacing_folder
from smalti.rendering.sampling.cache import read_exactly
from smalti.rendering.undistortion import Undistortion


def write_undistorted_frames(
    project: Project, folder: str | Path, on_frame: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """Write the frames that were placed, the mask that they share and their maps; return width and height of a picture.

    The folder gets `frames/000000.png` and so on, `mask.png` (white where frames show the scene) and a
    `transforms.json` without a lens, in whose coordinates the reference frame's picture stays fixed.
    """
    folder = Path(folder)
    placements = project.placements
    if not placements:
        raise ProjectError(f"{project.folder}: nothing was placed, so there is nothing to write; build it first")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: is not an empty folder; name a new one")
    undistortion = Undistortion(project.lens, project.mask)
    frame_from_picture = undistortion.frame_from_picture
    picture_from_frame = invert_homographies(frame_from_picture)
    size = (undistortion.width, undistortion.height)
    names = {placement.number: f"frames/{placement.number:06d}.png" for placement in placements}
    unconfirmed = project.unconfirmed
    with replacing_folder(folder) as part:
        with naming(folder):
            (part / "frames").mkdir()
        _write_png(part / "mask.png", undistortion.mask.astype(np.uint8) * 255, folder)
        for number, frame in read_exactly(project.source, sorted(names), (project.height, project.width, 3)):
            _write_png(part / names[number], undistortion.undistort(frame)[..., ::-1], folder)
            on_frame()
        write_transforms(
            part / "transforms.json",
            [
                FrameTransform(
                    placement.number,
                    names[placement.number],
                    placement.part,
                    picture_from_frame @ placement.final @ frame_from_picture,
                    placement.sigma_px,
                    placement.number not in unconfirmed,
                )
                for placement in placements
            ],
            size=size,
            references=project.store.fact("references"),
            apart=project.not_placed,
        )
    return size


def _write_png(path: Path, image: NDArray[np.uint8], folder: Path) -> None:
    done, encoded = cv2.imencode(".png", np.ascontiguousarray(image))
    assert done, "an image of 8 bits can be encoded"
    with naming(folder):
        path.write_bytes(encoded.tobytes())
