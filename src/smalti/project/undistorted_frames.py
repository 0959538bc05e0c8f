"""Write a project's frames without lens distortion, with the maps that belong to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import ProjectError
from smalti.geometry.homographies import invert_homographies
from smalti.geometry.lens import Lens
from smalti.interchange.atomic_files import check_new_folder, naming, replacing_folder
from smalti.interchange.transforms_json import FrameTransform, write_transforms
from smalti.project.project import Project
from smalti.rendering.canvas import Canvas
from smalti.rendering.frame_cache import read_exactly
from smalti.rendering.sampling_kernels import Bending, Feather, bending_of, cubic, distorted_position


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
    check_new_folder(folder)
    undistortion = Undistortion(project.lens, project.mask)
    frame_from_picture = undistortion.frame_from_picture
    picture_from_frame = invert_homographies(frame_from_picture)
    size = (undistortion.width, undistortion.height)
    names = {placement.number: f"frames/{placement.number:06d}.png" for placement in placements}
    how_placed, unconfirmed = project.how_placed, project.unconfirmed
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
                    how_placed[placement.number],
                )
                for placement in placements
            ],
            size=size,
            references=project.outcome.references,
            apart=project.not_placed,
        )
    return size


def _write_png(path: Path, image: NDArray[np.uint8], folder: Path) -> None:
    done, encoded = cv2.imencode(".png", np.ascontiguousarray(image))
    assert done, "an image of 8 bits can be encoded"
    with naming(folder):
        path.write_bytes(encoded.tobytes())


class Undistortion:
    """Straight pictures of frames: so large that all of a frame is on them, at the frame's scale in its middle."""

    def __init__(self, lens: Lens, mask: NDArray[np.bool_] | None = None) -> None:
        """Take the lens and where frames (h, w) show the scene, None for everywhere."""
        frame_width, frame_height = round(lens.outline.width), round(lens.outline.height)
        canvas = Canvas.around(np.eye(3)[None], frame_width, frame_height, rim=lens.rim)
        everything = np.ones((frame_height, frame_width), dtype=np.bool_)
        self.width, self.height = canvas.width, canvas.height
        self.frame_from_picture = np.array([[1.0, 0.0, canvas.left], [0.0, 1.0, canvas.top], [0.0, 0.0, 1.0]])
        """(3, 3): pixels of a picture to straight pixels of its frame."""
        self._bending = bending_of(lens)
        self._covered = Feather(everything).weigh(self.frame_from_picture, canvas.window, lens) > 0
        self.mask = self._covered
        """(height, width): where the pictures show the scene."""
        if mask is not None:
            self.mask = Feather(mask).weigh(self.frame_from_picture, canvas.window, lens) > 0

    def undistort(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the picture (height, width, 3) of a frame (h, w, 3), black beyond its border."""
        picture = np.zeros((self.height, self.width, 3), dtype=np.uint8)
        _fill(frame, self.frame_from_picture, self._bending, self._covered, picture)
        return picture


@compiled
def _fill(
    frame: NDArray[np.uint8],
    frame_from_picture: NDArray[np.float64],
    bending: Bending,
    covered: NDArray[np.bool_],
    picture: NDArray[np.uint8],
) -> None:
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            if covered[row, column]:
                x, y = distorted_position(frame_from_picture, bending, column, row)
                colour = cubic(frame, x, y)
                for channel in range(3):
                    rounded = min(max(colour[channel] + np.float32(0.5), np.float32(0.0)), np.float32(255.0))
                    picture[row, column, channel] = np.uint8(rounded)
