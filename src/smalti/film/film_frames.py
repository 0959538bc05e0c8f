"""Frames as the film needs them: few and small enough for memory, painted fast."""

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
"""Pixels that are painted for one picture: so many take less than a tenth of a second on one core."""

FINENESS = 1.25
"""Pixels of a held frame per pixel of the picture: a little more keeps bilinear sampling sharp."""

STEPS = (0.0, *np.geomspace(0.01, 0.5, 18))
"""Frames are left out that lie nearer to the last one kept than this, in sides of a frame."""

OUTERMOST = 64
"""Depth of the pixels at a frame's border, the most central ones having 255. Where it fades to 0, so does the frame."""


@dataclass(frozen=True, slots=True, eq=False)
class FilmFrames:
    """Frames, reduced, with a border of one pixel that does not count.

    The fourth channel is a pixel's depth: how far it is from where its frame ends, 0 where it does not count.
    """

    places: NDArray[np.int64]  # (m,): which of the story's frames they are
    pixels: NDArray[np.uint8]  # (m, h + 2, w + 2, 4)
    reduced_from_frame: NDArray[np.float64]  # (3, 3): pixels of a frame to those held, border included


def choose_frames(canvas_from_frame: Homographies, outline: Outline) -> NDArray[np.int64]:
    """Return which frames (n, 3, 3) to hold: all, or where they are too many some that still cover the mosaic."""
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
    places: NDArray[np.int64],
    mask: NDArray[np.bool_] | None,
    lens: Lens,
    scale: float,
    on_read: Callable[[], None],
) -> FilmFrames:
    """Read the frames at those places of `numbers` once; `scale` is that of the picture, pixels per frame's pixel.

    What the lens bent is held straight.
    """
    bytes_unreduced = 4.0 * source.width * source.height * len(places)
    reduction = min(1.0, FINENESS * scale, np.sqrt(MOST_BYTES / bytes_unreduced))
    width, height = (max(1, round(reduction * side)) for side in (source.width, source.height))
    depths = _measure_depths(mask, width, height)
    # What does not count takes the nearest colour that does, lest sampling mixes something else in.
    nearest = ndimage.distance_transform_edt(depths == 0, return_distances=False, return_indices=True)
    x, y = width / source.width, height / source.height
    held_from_frame = np.array([[x, 0.0, (x + 1) / 2], [0.0, y, (y + 1) / 2], [0.0, 0.0, 1.0]])
    way = None if lens.is_undistorted else _Unbending.of(lens, held_from_frame)
    rows, columns = (height + 2, width + 2) if way is None else way.shape
    pixels = np.empty((len(places), rows, columns, 4), dtype=np.uint8)
    reduced = np.empty((height + 2, width + 2, 4), dtype=np.uint8)
    reduced[..., 3] = depths
    wanted = [numbers[place] for place in places]
    read = source.read_many(wanted)
    for held, number in zip(pixels, wanted, strict=True):
        found, image = next(read, (None, None))
        if image is None or found != number:
            raise InputError(f"{source.path}: frame {number} cannot be read; restore the source, or build again")
        reduced[1:-1, 1:-1, :3] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        reduced[..., :3] = reduced[..., :3][tuple(nearest)]
        held[:] = reduced if way is None else way.straighten(reduced)
        on_read()
    return FilmFrames(places, pixels, held_from_frame if way is None else way.reduced_from_frame)


@dataclass(frozen=True, slots=True, eq=False)
class _Unbending:
    """Where every pixel of a straight picture is seen in a reduced frame."""

    seen: NDArray[np.float32]  # (h, w, 2): x before y
    reduced_from_frame: NDArray[np.float64]  # (3, 3): straight pixels of a frame to those of the picture

    @classmethod
    def of(cls, lens: Lens, held_from_frame: NDArray[np.float64]) -> _Unbending:
        """Hold all of a straight frame, with a border of a pixel or more that does not count."""
        rim = project_points(held_from_frame, lens.rim)
        left, top = np.floor(rim.min(axis=0)) - 1.0
        columns, rows = (np.ceil(rim.max(axis=0)) + 2.0 - (left, top)).astype(int)
        reduced_from_frame = np.array([[1.0, 0.0, -left], [0.0, 1.0, -top], [0.0, 0.0, 1.0]]) @ held_from_frame
        pixels = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2).astype(np.float64)
        straight = project_points(invert_homographies(reduced_from_frame), pixels)
        seen = project_points(held_from_frame, lens.bend(straight)).reshape(rows, columns, 2)
        return cls(seen.astype(np.float32), reduced_from_frame)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the picture."""
        return self.seen.shape[0], self.seen.shape[1]

    def straighten(self, reduced: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the picture (h, w, 4) of a reduced frame."""
        return np.asarray(cv2.remap(reduced, self.seen[..., 0], self.seen[..., 1], cv2.INTER_LINEAR), dtype=np.uint8)


def _thin_out(centres: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Go along the frames and keep those that are as far as their own `distances` (n,) from the last one kept."""
    kept = [0]
    for n in range(1, len(centres)):
        if np.hypot(*(centres[n] - centres[kept[-1]])) >= distances[n]:
            kept.append(n)
    return np.array(kept, dtype=np.int64)


def _measure_depths(mask: NDArray[np.bool_] | None, width: int, height: int) -> NDArray[np.uint8]:
    """Return the depth (height + 2, width + 2) of the pixels of a reduced frame and its border."""
    seen = np.ones((height, width), dtype=np.uint8)
    if mask is not None:
        # A pixel that stands for hidden ones too has their colours mixed in.
        share = cv2.resize(mask.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
        seen = (np.asarray(share) > 0.999).astype(np.uint8)
    distances = cv2.distanceTransform(np.pad(seen, 1), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    inwards = (distances - 1.0) / max(float(distances.max()) - 1.0, 1.0)
    return np.where(distances > 0, np.round(OUTERMOST + (255 - OUTERMOST) * inwards), 0).astype(np.uint8)


SHARPNESS = 3.0
"""Power of the depth by which a pixel counts: mostly the frame in whose middle a place lies is seen there."""

LEAST_WEIGHT = 1e-5


def paint(
    film_frames: FilmFrames,
    canvas_from_frame: Homographies,
    strengths: NDArray[np.float64],
    size: tuple[int, int],
    background: tuple[int, int, int],
) -> NDArray[np.uint8]:
    """Return a picture (h, w, 3) of `size` (w, h): the held frames by their maps (m, 3, 3), as strong as told (m,).

    A frame of strength 0 is not there; one between 0 and 1 lets the background shine through.
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
    # A thirty-second of a pixel off at most, and four times as fast as what renders mosaics to be kept.
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
    """Add a frame (h, w, 4) to Σ w·I and Σ w (h, w, 4), and to what covers the background (h, w)."""
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
