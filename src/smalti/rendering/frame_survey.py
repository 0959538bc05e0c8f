"""Read every frame once and store it reduced; find pairs of frames that show the same part of the scene."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from smalti.geometry.homographies import project_points
from smalti.geometry.outline import Outline
from smalti.interchange.atomic_files import naming
from smalti.interchange.checksums import CHECKSUM_BYTES, checksum_of
from smalti.rendering.frame_cache import FrameReader, read_exactly, write_all

LONGER_SIDE = 128
"""The most cells along the longer side of a frame. There are at least half as many."""

SHARPNESS = 3
"""The channel after the three colours."""


class Survey:
    """Reduced frames in a file, four bytes a cell: red, green, blue, amount of fine detail; then a checksum.

    The file grows frame by frame. Frames that an interrupted run has stored are not read again, unless they are
    damaged.
    """

    def __init__(self, folder: Path, numbers: list[int], width: int, height: int) -> None:
        self.width, self.height = width, height
        self.cell = cell_of(width, height)
        """Side of a cell in frame pixels."""
        self.columns, self.rows = -(-width // self.cell), -(-height // self.cell)
        chosen = hashlib.sha256(repr((numbers, width, height, self.cell, CHECKSUM_BYTES)).encode()).hexdigest()[:16]
        # The size of a record is in the name, so that whoever looks for damage needs nothing else.
        self._path = folder / f"survey-{chosen}-{self._record}.bin"
        self._numbers = numbers

    @property
    def _record(self) -> int:
        return self.columns * self.rows * 4 + CHECKSUM_BYTES

    def read_frames(
        self,
        frames: FrameReader,
        on_frame: Callable[[], None] = lambda: None,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Read and reduce the frames that are not yet stored. A damaged one and those after it are read again."""
        with naming(self._path):
            stored = self._path.stat().st_size // self._record if self._path.exists() else 0
            stored = min(stored, len(self._numbers))
            done = count_whole_records(self._path, self._record) if stored else 0
        if done < stored:
            say(f"{self._path}: is damaged; frames are read again")
        done = min(done, stored)
        for _ in range(done):
            on_frame()
        with naming(self._path):
            file = self._path.open("r+b" if done else "wb", buffering=0)
        with file:
            # An interruption may have left half a frame.
            file.truncate(done * self._record)
            file.seek(done * self._record)
            for _, frame in read_exactly(frames, self._numbers[done:], (self.height, self.width, 3)):
                with naming(self._path):
                    reduced = self.reduce(frame).tobytes()
                    record = np.frombuffer(reduced + checksum_of(reduced), dtype=np.uint8)
                    write_all(file.fileno(), record, file.tell())
                    file.seek(0, os.SEEK_END)
                on_frame()

    def frames(self, indices: NDArray[np.int64] | list[int]) -> NDArray[np.uint8]:
        """Return (n, rows, columns, 4) of the frames with these indices."""
        found = np.empty((len(indices), self.rows, self.columns, 4), dtype=np.uint8)
        with self._path.open("rb") as file:
            for n, index in enumerate(indices):
                os.preadv(file.fileno(), [found[n].data.cast("B")], int(index) * self._record)
        return found

    def reduce(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return (rows, columns, 4). All cells have one size; the frame's border is extended into the last cells."""
        gray = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        detail = cv2.convertScaleAbs(cv2.Laplacian(gray, cv2.CV_16S, ksize=1))
        # Border pixels lack a neighbour. They get the detail of the pixel next to them.
        detail[[0, -1]] = detail[[min(1, self.height - 1), max(self.height - 2, 0)]]
        detail[:, [0, -1]] = detail[:, [min(1, self.width - 1), max(self.width - 2, 0)]]
        colours, sharpness = (self._average(image) for image in (frame, detail))
        return np.ascontiguousarray(np.dstack([colours, sharpness]), dtype=np.uint8)

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


def count_whole_records(path: Path, record: int) -> int:
    """Return how many records of that many bytes, from the first on, are as they were written."""
    count = 0
    with path.open("rb") as file:
        while len(stored := file.read(record)) == record:
            if stored[-CHECKSUM_BYTES:] != checksum_of(stored[:-CHECKSUM_BYTES]):
                break
            count += 1
    return count


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
