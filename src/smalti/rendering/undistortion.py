"""Frames as a camera without distortion would have seen them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.lens import Lens
from smalti.rendering.canvas import Canvas
from smalti.rendering.sampling.feather import Feather
from smalti.rendering.sampling.kernels import Bending, bending_of, cubic, seen_position


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
                x, y = seen_position(frame_from_picture, bending, column, row)
                colour = cubic(frame, x, y)
                for channel in range(3):
                    rounded = min(max(colour[channel] + np.float32(0.5), np.float32(0.0)), np.float32(255.0))
                    picture[row, column, channel] = np.uint8(rounded)
