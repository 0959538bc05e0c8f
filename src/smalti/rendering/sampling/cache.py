"""Frames as a pass over the mosaic needs them: each is decoded once."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.rendering.formats.files import naming
from smalti.rendering.sampling.pyramid import FramePyramid


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
            raise InputError(f"frame {expected}: the reader gave {got} instead; the video may have changed, start anew")
        if frame.shape != shape or frame.dtype != np.uint8:
            raise InputError(
                f"frame {expected}: is {frame.dtype} of shape {frame.shape}, expected uint8 of {shape}; "
                "all frames of a mosaic have one size"
            )
        yield expected, frame
