"""Frames for one pass over the mosaic: decoded once, reduced to the resolution of the canvas, with pyramids."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.geometry.homographies import invert_homographies, project_points
from smalti.geometry.outline import Outline
from smalti.interchange.atomic_files import naming


class FrameReader(Protocol):
    """Decodes frames by their numbers."""

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield number and pixels (h, w, 3), RGB, of each of the frames. The numbers ascend."""
        ...


class FrameCache:
    """The frames of one pass, in memory while they fit, else on disk until they are no longer needed.

    A frame that lies in two bands of the mosaic is needed twice. Decoding it again may require a seek in the video. So
    a frame that leaves memory and is still needed goes to disk.
    """

    def __init__(
        self,
        reader: FrameReader,
        numbers: Sequence[int],
        shape: tuple[int, int, int],
        make: Callable[[int, NDArray[np.uint8]], FramePyramid],
        folder: Path,
        max_bytes: int,
    ) -> None:
        """Take the frame numbers by index, and a function that makes a pyramid of an index and its frame."""
        self._reader, self._numbers, self._shape, self._make = reader, numbers, shape, make
        self._folder, self._max_bytes = folder, max_bytes
        self._in_memory: OrderedDict[int, FramePyramid] = OrderedDict()
        self._bytes = 0
        self._on_disk: dict[int, _DiskFrame] = {}
        # The file has no name, so the system removes it however the program ends.
        with naming(folder):
            self._spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._spool.close)
        self._spool_end = 0
        self._free_positions: dict[int, list[int]] = {}  # free positions in the file, by number of bytes

    def read_many(
        self, indices: Iterable[int], is_wanted_later: Callable[[int], bool]
    ) -> Iterator[tuple[int, FramePyramid]]:
        """Yield the frames with these indices, ascending. All frames to decode come from one call of the reader."""
        wanted = sorted(set(indices))
        # Frames in memory that this call still needs must not be evicted by frames that it reads.
        needed = {index for index in wanted if index in self._in_memory}
        missing = [index for index in wanted if index not in needed and index not in self._on_disk]
        decoded = read_exactly(self._reader, [self._numbers[index] for index in missing], self._shape)
        for index in wanted:
            if index in needed:
                needed.remove(index)
                self._in_memory.move_to_end(index)
                frame = self._in_memory[index]
            else:
                frame = self._read_from_disk(index) if index in self._on_disk else self._make(index, next(decoded)[1])
                if is_wanted_later(index):
                    self._store(index, frame, needed, is_wanted_later)
            yield index, frame

    def _store(self, index: int, frame: FramePyramid, needed: set[int], is_wanted_later: Callable[[int], bool]) -> None:
        """Evict frames that are not in `needed`. If there are none, write the new frame to disk."""
        while self._bytes + frame.nbytes > self._max_bytes:
            oldest = next((old for old in self._in_memory if old not in needed), None)
            if oldest is None:
                self._write_to_disk(index, frame)
                return
            evicted = self._in_memory.pop(oldest)
            self._bytes -= evicted.nbytes
            if is_wanted_later(oldest):
                self._write_to_disk(oldest, evicted)
        self._in_memory[index] = frame
        self._bytes += frame.nbytes

    def _write_to_disk(self, index: int, frame: FramePyramid) -> None:
        base = frame.levels[0]
        start = self._free_positions.pop(base.nbytes, []) or [self._spool_end]
        self._spool_end = max(self._spool_end, start[-1] + base.nbytes)
        self._on_disk[index] = _DiskFrame(start.pop(), base.shape, frame.frame_size, len(frame.levels))
        self._free_positions[base.nbytes] = start
        with naming(self._folder):
            write_all(self._spool.fileno(), base, self._on_disk[index].start)

    def _read_from_disk(self, index: int) -> FramePyramid:
        stored = self._on_disk.pop(index)
        base = np.empty(stored.shape, dtype=np.uint8)
        os.preadv(self._spool.fileno(), [base.data.cast("B")], stored.start)
        self._free_positions.setdefault(base.nbytes, []).append(stored.start)
        return FramePyramid.over(base, stored.frame_size, stored.levels)


@dataclass(frozen=True, slots=True)
class _DiskFrame:
    """A frame on disk: its first level, and the parameters of the others."""

    start: int
    shape: tuple[int, ...]
    frame_size: tuple[int, int]
    levels: int


def write_all(file: int, pixels: NDArray[np.uint8], start: int) -> None:
    """Write an array to a position of an open file. A disk that is nearly full may take only a part at a time."""
    rest = pixels.data.cast("B")
    while rest:
        written = os.pwrite(file, rest, start)
        rest, start = rest[written:], start + written


def read_exactly(
    reader: FrameReader, numbers: Iterable[int], shape: tuple[int, int, int]
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the frames with these numbers, ascending. Refuse other numbers, shapes and types."""
    wanted = list(numbers)
    frames = iter(reader.read_many(wanted))
    for expected in wanted:
        number, frame = next(frames, (None, None))
        if frame is None or number != expected:
            got = "nothing" if number is None else f"frame {number}"
            raise InputError(
                f"frame {expected}: the reader gave {got} instead; the video may have changed, start again"
            )
        if frame.shape != shape or frame.dtype != np.uint8:
            raise InputError(
                f"frame {expected}: is {frame.dtype} of shape {frame.shape}, expected uint8 of {shape}; "
                "all frames of a mosaic have one size"
            )
        yield expected, frame


# Up to this factor the bicubic kernel alone is smooth enough. Beyond it, detail finer than the canvas would alias.
MAX_REDUCTION = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class FramePyramid:
    """A frame, reduced to the resolution of the canvas if that is coarser, and its smoothed halves."""

    levels: tuple[NDArray[np.uint8], ...]  # (h, w, 3) each; pixel (x, y) of a level is (2x, 2y) of the one before
    frame_size: tuple[int, int]  # width, height before the reduction

    @classmethod
    def of(cls, frame: NDArray[np.uint8], canvas_from_frame: NDArray[np.float64], levels: int = 1) -> FramePyramid:
        """Reduce a frame (h, w, 3).

        Every pixel of the first level is the mean over its area. The whole frame has one reduction, which does not
        depend on the tile.
        """
        height, width = frame.shape[:2]
        size = reduced_size(width, height, canvas_from_frame)
        base = frame
        if size != (width, height):
            base = np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        return cls.over(base, (width, height), levels)

    @classmethod
    def over(cls, base: NDArray[np.uint8], frame_size: tuple[int, int], levels: int) -> FramePyramid:
        """Halve an image that has the resolution of the canvas; `levels` in all, if there are enough pixels."""
        images = [np.ascontiguousarray(base)]
        while len(images) < levels and min(images[-1].shape[:2]) > 1:
            images.append(np.asarray(cv2.pyrDown(images[-1]), dtype=np.uint8))
        views = tuple(image.view() for image in images)
        for view in views:
            view.setflags(write=False)  # as frames are: kernels are compiled for one kind of array
        return cls(views, frame_size)

    def frame_from_level(self, level: int) -> NDArray[np.float64]:
        """Return (3, 3): from pixels of a level to pixels of the frame."""
        rows, columns = self.levels[0].shape[:2]
        x, y = self.frame_size[0] / columns, self.frame_size[1] / rows
        step = 2.0**level
        return np.array([[step * x, 0.0, (x - 1) / 2], [0.0, step * y, (y - 1) / 2], [0.0, 0.0, 1.0]])

    def level_from_frame(self, level: int) -> NDArray[np.float64]:
        """Return (3, 3): from pixels of the frame to pixels of a level."""
        return invert_homographies(self.frame_from_level(level))

    @property
    def nbytes(self) -> int:
        """Bytes of all levels."""
        return sum(level.nbytes for level in self.levels)


def reduced_size(width: int, height: int, canvas_from_frame: NDArray[np.float64]) -> tuple[int, int]:
    """Return the number of columns and rows with which the frame has the resolution of the canvas."""
    corners = project_points(canvas_from_frame[None], Outline.of_pixels(width, height).corners)[0]
    top, right, bottom, left = np.hypot(*(np.roll(corners, -1, axis=0) - corners).T)
    columns, rows = (top + bottom) / 2, (left + right) / 2
    return (
        width if columns * MAX_REDUCTION >= width else max(1, round(columns)),
        height if rows * MAX_REDUCTION >= height else max(1, round(rows)),
    )
