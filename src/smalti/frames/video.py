"""Frames of a video, decoded one by one and known by their time stamps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import numpy as np
from av.sidedata.sidedata import SideData
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.frames.decoder import Decoder
from smalti.frames.fingerprint import make_fingerprint, sample_bytes
from smalti.frames.orientation import Orientation
from smalti.frames.scaling import Scaling
from smalti.frames.settings import SourceSettings
from smalti.frames.timestamps import tabulate_frames


class VideoSource:
    """The chosen frames of a video file; see FrameSource."""

    def __init__(self, path: Path, settings: SourceSettings) -> None:
        self.path = path
        sample = _sample_file(path)
        self._table = tabulate_frames(path)
        self._decoder = Decoder(path, self._table)
        try:
            first = self._read_first()
            self._notes = (*self._check_end(), *self._check_pixels())
            self._size = (first.width, first.height)
            self._orientation = _read_orientation(path, first)
            self._scaling = Scaling.within(*self._orientation.apply_to_size(*self._size), settings.max_size)
            self._numbers = settings.choose(path, len(self._table), self._table.times_seconds)
        except BaseException:
            self._decoder.close()
            raise
        self.width, self.height, self.scale = self._scaling.width, self._scaling.height, self._scaling.scale
        self.labels = tuple(self._label(number) for number in self._numbers)
        self.fingerprint = make_fingerprint(["video", sample, *self._numbers, self.width, self.height])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know; grows by the frames that turn out to be damaged."""
        damaged = sorted(self._decoder.damaged.intersection(self._numbers))
        if not damaged:
            return self._notes
        return (
            *self._notes,
            f"damaged: {len(damaged)} of the frames cannot be decoded, the first is {self._label(damaged[0])}; "
            f"those that follow may be smeared",
        )

    def __len__(self) -> int:
        return len(self._numbers)

    def read(self, index: int) -> NDArray[np.uint8]:
        """Return one frame."""
        number = self._numbers[index]
        frame = self._decoder.decode(number)
        if frame is None:
            raise InputError(f"{self.path}: {self._label(number)} cannot be decoded; leave it out or repair the video")
        return self._convert(number, frame)

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield index and frame; leaves out what cannot be decoded."""
        for index in indices:
            number = self._numbers[index]
            frame = self._decoder.decode(number)
            if frame is not None:
                yield index, self._convert(number, frame)

    def close(self) -> None:
        """Let go of the file."""
        self._decoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _label(self, number: int) -> str:
        return f"frame {number} ({self._table.times_seconds[number]:.2f} s)"

    def _read_first(self) -> VideoFrame:
        """Return the first frame that can be decoded; refuse a video that is none."""
        readable = (frame for number in range(len(self._table)) if (frame := self._decoder.decode(number)) is not None)
        frame = next(readable, None)
        if frame is None:
            raise InputError(f"{self.path}: none of its frames can be decoded; record or convert it again")
        if len(self._table) < 2:
            raise InputError(f"{self.path}: holds a single frame; a mosaic needs 2 or more")
        return frame

    def _check_end(self) -> tuple[str, ...]:
        """Drop what breaks off at the end of a truncated file, and say so."""
        table = self._table
        if table.promised_frames <= len(table):
            return ()
        readable = len(table)
        while readable > 2 and self._decoder.decode(readable - 1) is None:
            readable -= 1
        self._table = table.cut(readable)
        promised = f"{'' if table.counted else 'about '}{table.promised_frames}"
        return (f"ends early: {readable} of {promised} frames could be read",)

    def _check_pixels(self) -> tuple[str, ...]:
        ratio = self._table.pixel_ratio
        if ratio == 1:
            return ()
        return (f"its pixels are not square ({ratio.numerator}:{ratio.denominator}), nor will the mosaic's be",)

    def _convert(self, number: int, frame: VideoFrame) -> NDArray[np.uint8]:
        if (frame.width, frame.height) != self._size:
            raise InputError(
                f"{self.path}: {self._label(number)} is {frame.width}x{frame.height} px, the ones before are "
                f"{self._size[0]}x{self._size[1]}; cut the video there"
            )
        image = np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
        return self._scaling.shrink(self._orientation.apply(image))


def _sample_file(path: Path) -> bytes:
    try:
        sample = sample_bytes(path)
        if path.stat().st_size == 0:
            raise InputError(f"{path}: is empty; record or copy it again")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}), check the path and your rights") from None
    return sample


def _read_orientation(path: Path, frame: VideoFrame) -> Orientation:
    side_data = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(side_data, SideData):
        return Orientation()
    orientation = Orientation.from_matrix(np.frombuffer(bytes(side_data), dtype=np.int32).reshape(3, 3))
    if orientation is None:
        raise InputError(f"{path}: asks to be shown at an angle other than 90° steps; convert it without rotation")
    return orientation
