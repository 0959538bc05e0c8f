"""A frame at the canvas' resolution and at coarser ones."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homography import invert_homographies, project
from smalti.geometry.outline import Outline

# Up to here the bicubic kernel alone is smooth enough; beyond, detail finer than the canvas would alias.
MAX_REDUCTION = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class FramePyramid:
    """A frame, reduced to the canvas' resolution if that is coarser, and its smoothed halves."""

    levels: tuple[NDArray[np.uint8], ...]  # (h, w, 3) each; pixel (x, y) of a level is (2x, 2y) of the one before
    frame_size: tuple[int, int]  # width, height before all

    @classmethod
    def of(cls, frame: NDArray[np.uint8], canvas_from_frame: NDArray[np.float64], levels: int = 1) -> FramePyramid:
        """Reduce a frame (h, w, 3).

        Every pixel of the first level is the mean over the area it stands for. The reduction is one for the whole
        frame, so that it does not depend on the tile.
        """
        height, width = frame.shape[:2]
        size = reduced_size(width, height, canvas_from_frame)
        base = frame
        if size != (width, height):
            base = np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        return cls.over(base, (width, height), levels)

    @classmethod
    def over(cls, base: NDArray[np.uint8], frame_size: tuple[int, int], levels: int) -> FramePyramid:
        """Halve what is at the canvas' resolution already, `levels` in all if there are pixels enough."""
        images = [np.ascontiguousarray(base)]
        while len(images) < levels and min(images[-1].shape[:2]) > 1:
            images.append(np.asarray(cv2.pyrDown(images[-1]), dtype=np.uint8))
        return cls(tuple(images), frame_size)

    def frame_from_level(self, level: int) -> NDArray[np.float64]:
        """Return (3, 3): pixels of a level to pixels of the frame."""
        rows, columns = self.levels[0].shape[:2]
        x, y = self.frame_size[0] / columns, self.frame_size[1] / rows
        step = 2.0**level
        return np.array([[step * x, 0.0, (x - 1) / 2], [0.0, step * y, (y - 1) / 2], [0.0, 0.0, 1.0]])

    def level_from_frame(self, level: int) -> NDArray[np.float64]:
        """Return (3, 3): pixels of the frame to pixels of a level."""
        return invert_homographies(self.frame_from_level(level))

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return sum(level.nbytes for level in self.levels)


def reduced_size(width: int, height: int, canvas_from_frame: NDArray[np.float64]) -> tuple[int, int]:
    """Return the number of columns and rows with which the frame has the canvas' resolution."""
    corners = project(canvas_from_frame[None], Outline.of_pixels(width, height).corners)[0]
    top, right, bottom, left = np.hypot(*(np.roll(corners, -1, axis=0) - corners).T)
    columns, rows = (top + bottom) / 2, (left + right) / 2
    return (
        width if columns * MAX_REDUCTION >= width else max(1, round(columns)),
        height if rows * MAX_REDUCTION >= height else max(1, round(rows)),
    )
