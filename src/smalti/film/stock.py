"""The frames as the film needs them: few enough and small enough to be held in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from smalti.errors import InputError
from smalti.frames.source import FrameSource
from smalti.geometry.homography import invert_homographies, project
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Homographies

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
class Stock:
    """Frames, reduced, with a border of one pixel that does not count.

    The fourth channel is a pixel's depth: how far it is from where its frame ends, 0 where it does not count.
    """

    places: NDArray[np.int64]  # (m,): which of the story's frames they are
    pixels: NDArray[np.uint8]  # (m, h + 2, w + 2, 4)
    stock_from_frame: NDArray[np.float64]  # (3, 3): pixels of a frame to those held, border included


def choose_frames(canvas_from_frame: Homographies, outline: Outline) -> NDArray[np.int64]:
    """Return which frames (n, 3, 3) to hold: all, or where they are too many some that still cover the mosaic."""
    corners = project(canvas_from_frame, outline.corners)
    across, down = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    areas = np.abs(across[:, 0] * down[:, 1] - across[:, 1] * down[:, 0]) / 2
    centres = corners.mean(axis=1)
    chosen = np.arange(len(centres))
    for step in STEPS:
        chosen = _thin_out(centres, step * np.sqrt(areas))
        if areas[chosen].sum() <= MOST_PAINTED:
            break
    return chosen


def read_stock(
    source: FrameSource,
    numbers: Sequence[int],
    places: NDArray[np.int64],
    mask: NDArray[np.bool_] | None,
    lens: Lens,
    scale: float,
    on_read: Callable[[], None],
) -> Stock:
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
    way = None if lens.is_straight else _Unbending.of(lens, held_from_frame)
    rows, columns = (height + 2, width + 2) if way is None else way.shape
    pixels = np.empty((len(places), rows, columns, 4), dtype=np.uint8)
    reduced = np.empty((height + 2, width + 2, 4), dtype=np.uint8)
    reduced[..., 3] = depths
    wanted = [numbers[place] for place in places]
    read = source.read_many(wanted)
    for held, number in zip(pixels, wanted, strict=True):
        found, image = next(read, (None, None))
        if image is None or found != number:
            raise InputError(f"{source.path}: frame {number} cannot be read; restore the source, or build anew")
        reduced[1:-1, 1:-1, :3] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        reduced[..., :3] = reduced[..., :3][tuple(nearest)]
        held[:] = reduced if way is None else way.straighten(reduced)
        on_read()
    return Stock(places, pixels, held_from_frame if way is None else way.stock_from_frame)


@dataclass(frozen=True, slots=True, eq=False)
class _Unbending:
    """Where every pixel of a straight picture is seen in a reduced frame."""

    seen: NDArray[np.float32]  # (h, w, 2): x before y
    stock_from_frame: NDArray[np.float64]  # (3, 3): straight pixels of a frame to those of the picture

    @classmethod
    def of(cls, lens: Lens, held_from_frame: NDArray[np.float64]) -> _Unbending:
        """Hold all of a straight frame, with a border of a pixel or more that does not count."""
        rim = project(held_from_frame, lens.rim)
        left, top = np.floor(rim.min(axis=0)) - 1.0
        columns, rows = (np.ceil(rim.max(axis=0)) + 2.0 - (left, top)).astype(int)
        stock_from_frame = np.array([[1.0, 0.0, -left], [0.0, 1.0, -top], [0.0, 0.0, 1.0]]) @ held_from_frame
        pixels = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2).astype(np.float64)
        straight = project(invert_homographies(stock_from_frame), pixels)
        seen = project(held_from_frame, lens.bend(straight)).reshape(rows, columns, 2)
        return cls(seen.astype(np.float32), stock_from_frame)

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
