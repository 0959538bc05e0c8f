"""Frames as a pass over the mosaic needs them: decoded once, at the canvas' resolution and coarser ones."""

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
        """Yield number and pixels (h, w, 3), RGB, of each of the frames; the numbers ascend."""
        ...


class FrameCache:
    """The frames of one pass, in memory while there is room, else on disk until they are needed no more.

    A frame that straddles two bands of the mosaic is wanted twice. Decoding it again may mean to seek back in a video,
    so a frame that leaves memory and is still to come is put aside on disk.
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
        """Take the frames' numbers by their places, and what makes a pyramid of a place and its frame."""
        self._reader, self._numbers, self._shape, self._make = reader, numbers, shape, make
        self._folder, self._max_bytes = folder, max_bytes
        self._kept: OrderedDict[int, FramePyramid] = OrderedDict()
        self._bytes = 0
        self._aside: dict[int, _Aside] = {}
        # The file has no name: whatever ends the program, nothing of it is left.
        self._spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._spool.close)
        self._spool_end = 0
        self._gaps: dict[int, list[int]] = {}  # where taken-back frames of so many bytes were

    def read_many(
        self, places: Iterable[int], is_wanted_later: Callable[[int], bool]
    ) -> Iterator[tuple[int, FramePyramid]]:
        """Yield the frames at these places, ascending; those that are nowhere yet come from one call of the reader."""
        wanted = sorted(set(places))
        # What this call still needs must not make room for what it reads on the way.
        held = {place for place in wanted if place in self._kept}
        missing = [place for place in wanted if place not in held and place not in self._aside]
        decoded = read_exactly(self._reader, [self._numbers[place] for place in missing], self._shape)
        for place in wanted:
            if place in held:
                held.remove(place)
                self._kept.move_to_end(place)
                frame = self._kept[place]
            else:
                frame = self._take_back(place) if place in self._aside else self._make(place, next(decoded)[1])
                if is_wanted_later(place):
                    self._keep(place, frame, held, is_wanted_later)
            yield place, frame

    def _keep(self, place: int, frame: FramePyramid, held: set[int], is_wanted_later: Callable[[int], bool]) -> None:
        """Make room among those that are not held, and put aside what finds none."""
        while self._bytes + frame.nbytes > self._max_bytes:
            oldest = next((old for old in self._kept if old not in held), None)
            if oldest is None:
                self._put_aside(place, frame)
                return
            dropped = self._kept.pop(oldest)
            self._bytes -= dropped.nbytes
            if is_wanted_later(oldest):
                self._put_aside(oldest, dropped)
        self._kept[place] = frame
        self._bytes += frame.nbytes

    def _put_aside(self, place: int, frame: FramePyramid) -> None:
        base = frame.levels[0]
        start = self._gaps.pop(base.nbytes, []) or [self._spool_end]
        self._spool_end = max(self._spool_end, start[-1] + base.nbytes)
        self._aside[place] = _Aside(start.pop(), base.shape, frame.frame_size, len(frame.levels))
        self._gaps[base.nbytes] = start
        with naming(self._folder):
            write_all(self._spool.fileno(), base, self._aside[place].start)

    def _take_back(self, place: int) -> FramePyramid:
        aside = self._aside.pop(place)
        base = np.empty(aside.shape, dtype=np.uint8)
        os.preadv(self._spool.fileno(), [base.data.cast("B")], aside.start)
        self._gaps.setdefault(base.nbytes, []).append(aside.start)
        return FramePyramid.over(base, aside.frame_size, aside.levels)


@dataclass(frozen=True, slots=True)
class _Aside:
    """A frame on disk: its first level, and what makes the others."""

    start: int
    shape: tuple[int, ...]
    frame_size: tuple[int, int]
    levels: int


def write_all(file: int, pixels: NDArray[np.uint8], start: int) -> None:
    """Write an array to a place of an open file; a disk that is nearly full takes a part only."""
    rest = pixels.data.cast("B")
    while rest:
        written = os.pwrite(file, rest, start)
        rest, start = rest[written:], start + written


def read_exactly(
    reader: FrameReader, numbers: Iterable[int], shape: tuple[int, int, int]
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the frames of these numbers, ascending, and refuse what is not them."""
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
    corners = project_points(canvas_from_frame[None], Outline.of_pixels(width, height).corners)[0]
    top, right, bottom, left = np.hypot(*(np.roll(corners, -1, axis=0) - corners).T)
    columns, rows = (top + bottom) / 2, (left + right) / 2
    return (
        width if columns * MAX_REDUCTION >= width else max(1, round(columns)),
        height if rows * MAX_REDUCTION >= height else max(1, round(rows)),
    )
