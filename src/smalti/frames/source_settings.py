"""Settings of a source: which frames (`SourceSettings`), at what size (`Scaling`), and its fingerprint."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.interchange.regular_files import open_regular, reading

_SMALLEST_SIZE = 32
_SAMPLE_BYTES = 4096
# Labels show hundredths of a second. Half of that, so that a time copied from a label selects that frame.
_TIME_TOLERANCE_SECONDS = 0.005

# Longer numbers are typing errors; Python refuses to read more than 4300 digits.
_FRAME = re.compile(r"\d{1,15}")
_SECONDS = re.compile(r"(\d{1,15}(?:\.\d*)?|\.\d+)s")
_CLOCK = re.compile(r"(?:(\d{1,15}):)?(\d{1,15}):([0-5]?\d(?:\.\d*)?)")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The frames to use: each `every`-th from `start` up to, but without, `end`.

    Start and end are as the user types them. `120` is a frame's number in the source, from 0. `12.5s` and `1:02.5` are
    times from the first frame, for videos only. `max_size` limits the longer side, in pixels.
    """

    every: int = 1
    start: str | None = None
    end: str | None = None
    max_size: int | None = None

    def __post_init__(self) -> None:
        if self.every < 1:
            raise UsageError(f"every is {self.every}: give 1 for all frames, 2 for every other one, and so on")
        if self.max_size is not None and self.max_size < _SMALLEST_SIZE:
            raise UsageError(f"max size is {self.max_size}: give at least {_SMALLEST_SIZE} pixels")
        for name, text in (("start", self.start), ("end", self.end)):
            if text is not None:
                _parse_moment(name, text)

    def choose(self, path: Path, frames: int, times_seconds: Sequence[float] | None) -> range:
        """Return the numbers of the chosen frames; `times_seconds`, ascending, is None for images."""
        first = self._find(path, "start", self.start, 0, frames, times_seconds)
        last = self._find(path, "end", self.end, frames, frames, times_seconds)
        chosen = range(first, last, self.every)
        if len(chosen) < 2:
            raise UsageError(
                f"{path}: start, end and every leave {len(chosen)} of {frames} frames, a mosaic needs 2: choose more"
            )
        return chosen

    def _find(
        self, path: Path, name: str, text: str | None, default: int, frames: int, times: Sequence[float] | None
    ) -> int:
        if text is None:
            return default
        moment = _parse_moment(name, text)
        if isinstance(moment, int):
            return min(moment, frames)
        if times is None:
            raise UsageError(f"{path}: {name} is the time '{text}', but images have none: give a frame number")
        return sum(time < moment - _TIME_TOLERANCE_SECONDS for time in times)


def _parse_moment(name: str, text: str) -> int | float:
    """Return a frame's number as an int, or a time in seconds as a float."""
    text = text.strip()
    if _FRAME.fullmatch(text):
        return int(text)
    if match := _SECONDS.fullmatch(text):
        return float(match[1])
    if match := _CLOCK.fullmatch(text):
        return 3600.0 * int(match[1] or 0) + 60.0 * int(match[2]) + float(match[3])
    raise UsageError(f"{name} is '{text}': give a frame number such as 120, or a time such as 12.5s or 1:02.5")


@dataclass(frozen=True, slots=True)
class Scaling:
    """The scaling from the source's size to the working size.

    A source point (x, y) lies at ((x + 0.5) * scale - 0.5, ...): outer edges map to outer edges.
    """

    width: int
    height: int
    scale: float

    @classmethod
    def within(cls, width: int, height: int, max_size: int | None) -> Scaling:
        """Return the scaling that limits the longer side to `max_size`; it never enlarges."""
        longer = max(width, height)
        if max_size is None or longer <= max_size:
            return cls(width, height, 1.0)
        scale = max_size / longer
        return cls(max(1, round(width * scale)), max(1, round(height * scale)), scale)

    def shrink(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the image at the working size; each pixel is the mean of the area it covers."""
        if self.scale == 1.0:
            return np.ascontiguousarray(image)
        resized = cv2.resize(image, (self.width, self.height), interpolation=cv2.INTER_AREA)
        return cast(NDArray[np.uint8], resized)


def make_fingerprint(parts: Iterable[object]) -> str:
    """Hash the parts, in order, to 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape")
        # The length distinguishes "ab", "c" from "a", "bc".
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()[:16]


def sample_bytes(path: Path) -> bytes:
    """Return the file's size and some bytes from its start, middle and end.

    The start alone does not distinguish uncompressed images, whose headers and sizes are equal.
    """
    with open_regular(path) as file, reading(path):
        size = file.seek(0, os.SEEK_END)
        pieces = [size.to_bytes(8, "little")]
        for offset in (0, size // 2, max(0, size - _SAMPLE_BYTES)):
            file.seek(offset)
            pieces.append(file.read(_SAMPLE_BYTES))
    return b"".join(pieces)
