"""Reduce every frame and its own mask once and store them; find pairs of frames that show the same scene."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from smalti.frames.visibility import Part, PartFinder, Parts
from smalti.geometry.homographies import project_points
from smalti.geometry.outline import Outline
from smalti.interchange.atomic_files import naming
from smalti.interchange.checksums import CHECKSUM_BYTES, checksum_of
from smalti.rendering.frame_cache import FrameReader, read_exactly, write_all

LONGER_SIDE = 128
"""The most cells along the longer side of a frame. There are at least half as many."""

SHARPNESS = 3
"""The channel after the three colours."""

WORTH = 4
"""The channel after that, where frames have masks of their own."""

CLEAR, DOUBTFUL, HIDDEN = 0, 1, 2
"""What a cell of a frame is worth. A frame is drawn at doubtful cells only if no frame is clear there, at hidden ones
never.
"""

LEAST_HIDDEN = 1 / 8
"""Share of a cell. The margins of masks are wider than what a cell hides with less."""

NO_WORTH = np.empty((0, 0), dtype=np.uint8)
"""The worth of the cells of a frame without a mask of its own: all are clear."""


class Survey:
    """Reduced frames in a file, by frame number. Four bytes a cell: red, green, blue, amount of fine detail.

    If frames have masks of their own, a fifth byte is the worth of the cell: CLEAR, DOUBTFUL or HIDDEN.

    Each frame is a record with a checksum behind it, or zeros if it was not read yet. So whoever decodes a frame for
    another purpose can keep it here, and an interrupted run goes on.
    """

    def __init__(
        self,
        folder: Path,
        numbers: Sequence[int],
        width: int,
        height: int,
        mask: NDArray[np.bool_] | None = None,
        finder: PartFinder | None = None,
    ) -> None:
        """Take the frame numbers by index. The folder belongs to the frames of one source.

        The `finder` finds the frames' own masks, within the mask (h, w) that they share.
        """
        self.width, self.height = width, height
        self.cell = cell_of(width, height)
        """Side of a cell in frame pixels."""
        self.columns, self.rows = -(-width // self.cell), -(-height // self.cell)
        self._mask, self._finder = mask, finder
        self.channels = 4 if finder is None else 5
        self._record = self.columns * self.rows * self.channels + CHECKSUM_BYTES
        # The size of a record is in the name, so that whoever looks for damage needs nothing else.
        self._path = folder / f"survey-{width}x{height}-{self._record}.bin"
        self._numbers = numbers

    def read_frames(
        self,
        frames: FrameReader,
        on_frame: Callable[[], None] = lambda: None,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Read and reduce the frames that are not stored, or damaged."""
        missing = self._find_missing(say)
        for _ in range(len(self._numbers) - len(missing)):
            on_frame()
        for number, frame in read_exactly(frames, missing, (self.height, self.width, 3)):
            self.keep(number, frame)
            on_frame()

    def keep(self, number: int, frame: NDArray[np.uint8]) -> None:
        """Reduce and store a frame (h, w, 3). Several threads may do so at once."""
        reduced = self.reduce(number, frame).tobytes()
        record = np.frombuffer(reduced + checksum_of(reduced), dtype=np.uint8)
        with naming(self._path):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                write_all(file, record, number * self._record)
            finally:
                os.close(file)

    def _find_missing(self, say: Callable[[str], None]) -> list[int]:
        """Return the frame numbers whose records are not there, or damaged."""
        with naming(self._path):
            if not self._path.exists():
                return list(self._numbers)
            with self._path.open("rb") as file:
                states = [_state_of(_read_record(file, number, self._record), self._record) for number in self._numbers]
            missing = [number for number, state in zip(self._numbers, states, strict=True) if state != "whole"]
        if "damaged" in states:
            say(f"{self._path}: is damaged; frames are read again")
        return missing

    def frames(self, indices: NDArray[np.int64] | list[int]) -> NDArray[np.uint8]:
        """Return (n, rows, columns, 4 or 5) of the frames with these indices."""
        found = np.empty((len(indices), self.rows, self.columns, self.channels), dtype=np.uint8)
        with self._path.open("rb") as file:
            for n, index in enumerate(indices):
                os.preadv(file.fileno(), [found[n].data.cast("B")], self._numbers[index] * self._record)
        return found

    def worth(self, index: int) -> NDArray[np.uint8]:
        """Return what the cells (rows, columns) of a frame are worth, or `NO_WORTH`."""
        return NO_WORTH if self._finder is None else np.ascontiguousarray(self.frames([index])[0, ..., WORTH])

    def worths(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the same of several frames, (n, rows, columns), or nothing."""
        if self._finder is None:
            return np.empty((0, 0, 0), dtype=np.uint8)
        return np.ascontiguousarray(self.frames(indices)[..., WORTH])

    def reduce(self, number: int, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return (rows, columns, 4 or 5). Cells have one size; the frame's border is extended into the last ones."""
        gray = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        detail = cv2.convertScaleAbs(cv2.Laplacian(gray, cv2.CV_16S, ksize=1))
        # Border pixels lack a neighbour. They get the detail of the pixel next to them.
        detail[[0, -1]] = detail[[min(1, self.height - 1), max(self.height - 2, 0)]]
        detail[:, [0, -1]] = detail[:, [min(1, self.width - 1), max(self.width - 2, 0)]]
        colours, sharpness = (self._average(image) for image in (frame, detail))
        layers = [colours, sharpness]
        if self._finder is not None:
            layers.append(self._rate_cells(self._finder.find_parts(number, frame)))
        return np.ascontiguousarray(np.dstack(layers), dtype=np.uint8)

    def _rate_cells(self, parts: Parts) -> NDArray[np.uint8]:
        """Return the worth of the cells (rows, columns)."""
        if self._mask is not None:
            parts = np.where(self._mask, parts, np.uint8(Part.SCENE))  # all frames lack these pixels
        hidden, doubtful = (
            self._average(np.asarray(region, dtype=np.float32))
            for region in (parts > Part.HIGHLIGHT, parts != Part.SCENE)
        )
        # A canvas cell takes its frame for pixels of the neighbouring cells too.
        near = cv2.dilate((doubtful > 0).astype(np.uint8), np.ones((3, 3), np.uint8))
        return np.where(hidden >= LEAST_HIDDEN, np.uint8(HIDDEN), np.asarray(near, dtype=np.uint8))

    def _average(self, image: NDArray[Any]) -> NDArray[Any]:
        bottom, right = self.rows * self.cell - self.height, self.columns * self.cell - self.width
        if bottom or right:
            image = np.asarray(cv2.copyMakeBorder(image, 0, bottom, 0, right, cv2.BORDER_REPLICATE))
        return np.asarray(cv2.resize(image, (self.columns, self.rows), interpolation=cv2.INTER_AREA))

    @property
    def cell_from_frame(self) -> NDArray[np.float64]:
        """(3, 3): from frame pixels to cells."""
        step = 1.0 / self.cell
        shift = (step - 1) / 2
        return np.array([[step, 0.0, shift], [0.0, step, shift], [0.0, 0.0, 1.0]])


def fill_hidden(frame: NDArray[np.uint8], worth: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Give hidden cells of a frame (h, w, 3) the colours of the nearest other pixels.

    Nobody draws them, but the coarse bands of a blend reach beyond the seams.
    """
    hidden = worth == HIDDEN
    if not hidden.any() or hidden.all():
        return frame
    cell = cell_of(frame.shape[1], frame.shape[0])
    there = np.repeat(np.repeat(hidden, cell, axis=0), cell, axis=1)[: frame.shape[0], : frame.shape[1]]
    _, labels = cv2.distanceTransformWithLabels(
        there.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    seen = np.flatnonzero(~there)
    nearest = np.empty(int(labels.max()) + 1, dtype=np.int64)
    nearest[labels.ravel()[seen]] = seen
    filled = frame.copy()
    filled[there] = frame.reshape(-1, 3)[nearest[labels[there]]]
    return filled


def is_whole(path: Path, record: int) -> bool:
    """Tell whether all records of that many bytes are as they were written. The last one may be half a record."""
    with path.open("rb") as file:
        while stored := file.read(record):
            if _state_of(stored, record) == "damaged":
                return False
    return True


def _read_record(file: io.BufferedReader, number: int, record: int) -> bytes:
    return os.pread(file.fileno(), record, number * record)


def _state_of(stored: bytes, record: int) -> Literal["whole", "missing", "damaged"]:
    """Judge a record. One that an interrupted run has left is too short."""
    if len(stored) < record or stored == bytes(record):
        return "missing"
    return "whole" if stored[-CHECKSUM_BYTES:] == checksum_of(stored[:-CHECKSUM_BYTES]) else "damaged"


def cell_of(width: int, height: int) -> int:
    """Return the side of a cell: the smallest power of two with at most `LONGER_SIDE` cells along the longer side."""
    cell = 1
    while max(width, height) > cell * LONGER_SIDE:
        cell *= 2
    return cell


MOST_NEIGHBOURS = 8
"""The number of frames with which each frame is compared, besides its successor."""


def find_neighbours(mosaic_from_frame: NDArray[np.float64], outline: Outline) -> NDArray[np.int64]:
    """Return pairs (m, 2) of frame indices, i < j, of frames that overlap.

    Each frame gets some of its neighbours, spread evenly over time. Frames close in time are alike anyway; a strip must
    agree with the strip beside it.
    """
    centres = project_points(mosaic_from_frame, outline.centre[None])[:, 0]
    corners = project_points(mosaic_from_frame, outline.corners)
    reach = np.linalg.norm(corners - centres[:, None], axis=2)
    # Centres nearer than this share enough of the scene to be compared.
    near = cKDTree(centres)
    chosen: set[tuple[int, int]] = set()
    for i, centre in enumerate(centres):
        others = np.array(sorted(set(near.query_ball_point(centre, 1.2 * reach[i].max())) - {i}), dtype=np.int64)
        if len(others) > MOST_NEIGHBOURS:
            others = others[np.linspace(0, len(others) - 1, MOST_NEIGHBOURS).round().astype(int)]
        chosen.update((min(i, int(j)), max(i, int(j))) for j in others)
        if i + 1 < len(centres):
            chosen.add((i, i + 1))
    return np.array(sorted(chosen), dtype=np.int64).reshape(-1, 2)
