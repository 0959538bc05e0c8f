"""The frames of the film, few and small enough for memory, and their fast blending into a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from smalti.compiled import compiled
from smalti.errors import InputError
from smalti.frames.source import FrameSource
from smalti.geometry.homographies import invert_homographies, project_points
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Homographies
from smalti.rendering.canvas import Window, touched_windows

MOST_BYTES = 200 * 2**20
MOST_PAINTED = 8e6
"""Pixels blended for one picture. They take less than a tenth of a second on one core."""

FINENESS = 1.25
"""Pixels of a reduced frame per pixel of the picture. A little more than 1 keeps bilinear sampling sharp."""

STEPS = (0.0, *np.geomspace(0.01, 0.5, 18))
"""A frame is left out if it lies nearer than this to the last frame kept, in sides of a frame."""

OUTERMOST = 64
"""Depth of the pixels at a frame's border. The most central pixels have 255. From here to 0 the frame fades out."""


@dataclass(frozen=True, slots=True, eq=False)
class FilmFrames:
    """Reduced frames with an invalid border of one pixel.

    The fourth channel is the depth of a pixel: its distance from the border of the frame, 0 where the pixel is invalid.
    """

    indices: NDArray[np.int64]  # (m,): indices into the frames of the story
    pixels: NDArray[np.uint8]  # (m, h + 2, w + 2, 4)
    reduced_from_frame: NDArray[np.float64]  # (3, 3): frame pixels to pixels of the reduced frames, border included


def choose_frames(canvas_from_frame: Homographies, outline: Outline) -> NDArray[np.int64]:
    """Return the indices of the frames (n, 3, 3) to read: all, or some that still cover the mosaic."""
    corners = project_points(canvas_from_frame, outline.corners)
    across, down = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    areas = np.abs(across[:, 0] * down[:, 1] - across[:, 1] * down[:, 0]) / 2
    centres = corners.mean(axis=1)
    chosen = np.arange(len(centres))
    for step in STEPS:
        chosen = _thin_out(centres, step * np.sqrt(areas))
        if areas[chosen].sum() <= MOST_PAINTED:
            break
    return chosen


def read_film_frames(
    source: FrameSource,
    numbers: Sequence[int],
    indices: NDArray[np.int64],
    mask: NDArray[np.bool_] | None,
    lens: Lens,
    scale: float,
    on_read: Callable[[], None],
) -> FilmFrames:
    """Read frames of `numbers`, by index, once. `scale` is that of the picture, in pixels per frame pixel.

    The frames are stored undistorted.
    """
    bytes_unreduced = 4.0 * source.width * source.height * len(indices)
    reduction = min(1.0, FINENESS * scale, np.sqrt(MOST_BYTES / bytes_unreduced))
    width, height = (max(1, round(reduction * side)) for side in (source.width, source.height))
    depths = _measure_depths(mask, width, height)
    # Invalid pixels get the nearest valid colour, so that sampling does not mix in other colours.
    nearest = ndimage.distance_transform_edt(depths == 0, return_distances=False, return_indices=True)
    x, y = width / source.width, height / source.height
    reduced_from_frame = np.array([[x, 0.0, (x + 1) / 2], [0.0, y, (y + 1) / 2], [0.0, 0.0, 1.0]])
    undistortion = None if lens.is_undistorted else _Undistortion.of(lens, reduced_from_frame)
    rows, columns = (height + 2, width + 2) if undistortion is None else undistortion.shape
    pixels = np.empty((len(indices), rows, columns, 4), dtype=np.uint8)
    reduced = np.empty((height + 2, width + 2, 4), dtype=np.uint8)
    reduced[..., 3] = depths
    wanted = [numbers[index] for index in indices]
    read = source.read_many(wanted)
    for own_pixels, number in zip(pixels, wanted, strict=True):
        found, image = next(read, (None, None))
        if image is None or found != number:
            raise InputError(f"{source.path}: frame {number} cannot be read; restore the source, or build again")
        reduced[1:-1, 1:-1, :3] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        reduced[..., :3] = reduced[..., :3][tuple(nearest)]
        own_pixels[:] = reduced if undistortion is None else undistortion.undistort(reduced)
        on_read()
    return FilmFrames(indices, pixels, reduced_from_frame if undistortion is None else undistortion.picture_from_frame)


@dataclass(frozen=True, slots=True, eq=False)
class _Undistortion:
    """The position in a reduced frame of every pixel of an undistorted picture."""

    positions: NDArray[np.float32]  # (h, w, 2): x before y
    picture_from_frame: NDArray[np.float64]  # (3, 3): undistorted frame pixels to pixels of the picture

    @classmethod
    def of(cls, lens: Lens, reduced_from_frame: NDArray[np.float64]) -> _Undistortion:
        """Make room for the whole undistorted frame, with an invalid border of a pixel or more."""
        rim = project_points(reduced_from_frame, lens.rim)
        left, top = np.floor(rim.min(axis=0)) - 1.0
        columns, rows = (np.ceil(rim.max(axis=0)) + 2.0 - (left, top)).astype(int)
        picture_from_frame = np.array([[1.0, 0.0, -left], [0.0, 1.0, -top], [0.0, 0.0, 1.0]]) @ reduced_from_frame
        pixels = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2).astype(np.float64)
        undistorted = project_points(invert_homographies(picture_from_frame), pixels)
        positions = project_points(reduced_from_frame, lens.distort(undistorted)).reshape(rows, columns, 2)
        return cls(positions.astype(np.float32), picture_from_frame)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the picture."""
        return self.positions.shape[0], self.positions.shape[1]

    def undistort(self, reduced: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the undistorted picture (h, w, 4) of a reduced frame."""
        return np.asarray(
            cv2.remap(reduced, self.positions[..., 0], self.positions[..., 1], cv2.INTER_LINEAR), dtype=np.uint8
        )


def _thin_out(centres: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the frames that lie at least their own `distances` (n,) from the last frame kept."""
    kept = [0]
    for n in range(1, len(centres)):
        if np.hypot(*(centres[n] - centres[kept[-1]])) >= distances[n]:
            kept.append(n)
    return np.array(kept, dtype=np.int64)


def _measure_depths(mask: NDArray[np.bool_] | None, width: int, height: int) -> NDArray[np.uint8]:
    """Return the depth (height + 2, width + 2) of the pixels of a reduced frame and its border."""
    is_valid = np.ones((height, width), dtype=np.uint8)
    if mask is not None:
        # A reduced pixel over masked pixels has their colours mixed in, so it is invalid.
        share = cv2.resize(mask.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
        is_valid = (np.asarray(share) > 0.999).astype(np.uint8)
    distances = cv2.distanceTransform(np.pad(is_valid, 1), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    inwards = (distances - 1.0) / max(float(distances.max()) - 1.0, 1.0)
    return np.where(distances > 0, np.round(OUTERMOST + (255 - OUTERMOST) * inwards), 0).astype(np.uint8)


SHARPNESS = 3.0
"""Power of the depth in the weight of a pixel. A point shows mostly the frame in whose middle it lies."""

LEAST_WEIGHT = 1e-5


def paint(
    film_frames: FilmFrames,
    canvas_from_frame: Homographies,
    strengths: NDArray[np.float64],
    size: tuple[int, int],
    background: tuple[int, int, int],
) -> NDArray[np.uint8]:
    """Return a picture (h, w, 3) of `size` (w, h) from the frames, their maps (m, 3, 3) and their `strengths` (m,).

    A frame of strength 0 is absent. With a strength between 0 and 1 the background shows through.
    """
    width, height = size
    sums = np.zeros((height, width, 4), dtype=np.float32)
    cover = np.zeros((height, width), dtype=np.float32)
    canvas_from_reduced = canvas_from_frame @ np.linalg.inv(film_frames.reduced_from_frame)
    rows, columns = film_frames.pixels.shape[1:3]
    windows = touched_windows(canvas_from_reduced, columns, rows, Window(0, 0, width, height))
    for pixels, matrix, strength, window in zip(
        film_frames.pixels, canvas_from_reduced, strengths, windows, strict=True
    ):
        if strength > 0.0 and window.width > 0 and window.height > 0:
            part = np.s_[window.top : window.top + window.height, window.left : window.left + window.width]
            _add_frame(_warp(pixels, matrix, window), _WEIGHTS, np.float32(strength), sums[part], cover[part])
    picture = np.empty((height, width, 3), dtype=np.uint8)
    _lay_over(sums, cover, np.array(background, dtype=np.float32), picture)
    return picture


def _warp(pixels: NDArray[np.uint8], canvas_from_reduced: NDArray[np.float64], window: Window) -> NDArray[np.uint8]:
    window_from_canvas = np.array([[1.0, 0.0, -window.left], [0.0, 1.0, -window.top], [0.0, 0.0, 1.0]])
    # This errs by at most 1/32 pixel, and is four times as fast as the rendering of mosaics.
    warped = cv2.warpPerspective(pixels, window_from_canvas @ canvas_from_reduced, (window.width, window.height))
    return np.asarray(warped, dtype=np.uint8)


def _weigh_depths() -> NDArray[np.float32]:
    """Return the weight (256,) of every depth."""
    depths = np.arange(256)
    inwards = np.maximum(depths - OUTERMOST, 0) / (255 - OUTERMOST)
    return np.asarray(np.minimum(depths / OUTERMOST, 1.0) * LEAST_WEIGHT + inwards**SHARPNESS, dtype=np.float32)


_WEIGHTS = _weigh_depths()


@compiled
def _add_frame(
    warped: NDArray[np.uint8],
    weights: NDArray[np.float32],
    strength: np.float32,
    sums: NDArray[np.float32],
    cover: NDArray[np.float32],
) -> None:
    """Add a frame (h, w, 4) to Σ w·I and Σ w (h, w, 4), and to the cover of the background (h, w)."""
    whole = np.float32(1.0 / OUTERMOST)
    for row in range(warped.shape[0]):
        for column in range(warped.shape[1]):
            depth = warped[row, column, 3]
            if depth > 0:
                weight = strength * weights[depth]
                for channel in range(3):
                    sums[row, column, channel] += weight * np.float32(warped[row, column, channel])
                sums[row, column, 3] += weight
                own = strength * min(whole * np.float32(depth), np.float32(1.0))
                cover[row, column] = max(cover[row, column], own)


@compiled
def _lay_over(
    sums: NDArray[np.float32],
    cover: NDArray[np.float32],
    background: NDArray[np.float32],
    picture: NDArray[np.uint8],
) -> None:
    """Fill the picture (h, w, 3) with the mean colours over the background."""
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            total = sums[row, column, 3]
            for channel in range(3):
                colour = background[channel]
                if total > 0.0:
                    colour += cover[row, column] * (sums[row, column, channel] / total - colour)
                picture[row, column, channel] = np.uint8(colour + np.float32(0.5))
