"""Decoded frames, kept for as long as there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError


class FrameReader(Protocol):
    """Decodes frames by their numbers."""

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield number and pixels (h, w, 3), RGB, of each of the frames; the numbers ascend."""
        ...


class FrameCache:
    """A reader that remembers the frames used last, up to a number of bytes."""

    def __init__(self, reader: FrameReader, width: int, height: int, max_bytes: int) -> None:
        self._reader = reader
        self._shape = (height, width, 3)
        self._max_frames = max_bytes // (width * height * 3)
        self._kept: OrderedDict[int, NDArray[np.uint8]] = OrderedDict()

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield the frames in ascending order; those that are not kept come from one call of the reader."""
        wanted = sorted(set(indices))
        # What this call still needs must not make room for what it reads on the way.
        held = {index for index in wanted if index in self._kept}
        missing = iter(self._reader.read_many([index for index in wanted if index not in held]))
        for index in wanted:
            if index in held:
                held.remove(index)
                self._kept.move_to_end(index)
                frame = self._kept[index]
            else:
                frame = self._next_frame(missing, index)
                self._keep(index, frame, held)
            yield index, frame

    def _next_frame(self, frames: Iterator[tuple[int, NDArray[np.uint8]]], expected: int) -> NDArray[np.uint8]:
        number, frame = next(frames, (None, None))
        if frame is None or number != expected:
            got = "nothing" if number is None else f"frame {number}"
            raise InputError(f"frame {expected}: the reader gave {got} instead; the video may have changed, start anew")
        if frame.shape != self._shape or frame.dtype != np.uint8:
            raise InputError(
                f"frame {expected}: is {frame.dtype} of shape {frame.shape}, expected uint8 of {self._shape}; "
                "all frames of a mosaic have one size"
            )
        return frame

    def _keep(self, index: int, frame: NDArray[np.uint8], held: set[int]) -> None:
        if self._max_frames <= len(held):
            return
        while len(self._kept) >= self._max_frames:
            del self._kept[next(old for old in self._kept if old not in held)]
        self._kept[index] = frame
