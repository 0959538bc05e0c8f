"""Read frames of a video by number (`VideoSource`), and decode them (`Decoder`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Self

import av
import numpy as np
from av.sidedata.sidedata import SideData
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.frames.image_reading import Orientation
from smalti.frames.source_settings import Scaling, SourceSettings, make_fingerprint, sample_bytes
from smalti.frames.video_index import FrameTable, OpenedVideo, tabulate_frames

# A seek flushes the decoder, which costs about as much as decoding this many frames.
_SEEK_COST_FRAMES = 16


class VideoSource:
    """The chosen frames of a video file; a `FrameSource`."""

    def __init__(self, path: Path, settings: SourceSettings) -> None:
        self.path = path
        self.files = (path,)
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
        """What the user should know; grows when frames turn out to be damaged."""
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
        """Yield index and frame; frames that cannot be decoded are left out."""
        for index in indices:
            number = self._numbers[index]
            frame = self._decoder.decode(number)
            if frame is not None:
                yield index, self._convert(number, frame)

    def close(self) -> None:
        """Close the file."""
        self._decoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _label(self, number: int) -> str:
        return f"frame {number} ({self._table.times_seconds[number]:.2f} s)"

    def _read_first(self) -> VideoFrame:
        """Return the first frame that can be decoded; refuse a video without one."""
        readable = (frame for number in range(len(self._table)) if (frame := self._decoder.decode(number)) is not None)
        frame = next(readable, None)
        if frame is None:
            raise InputError(f"{self.path}: none of its frames can be decoded; record or convert it again")
        if len(self._table) < 2:
            raise InputError(f"{self.path}: holds a single frame; a mosaic needs 2 or more")
        return frame

    def _check_end(self) -> tuple[str, ...]:
        """Drop the incomplete end of a truncated file, and report it."""
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
        return (
            f"its pixels are not square ({ratio.numerator}:{ratio.denominator}), the mosaic will have the same pixels",
        )

    def _convert(self, number: int, frame: VideoFrame) -> NDArray[np.uint8]:
        if (frame.width, frame.height) != self._size:
            raise InputError(
                f"{self.path}: {self._label(number)} is {frame.width}x{frame.height} px, the ones before are "
                f"{self._size[0]}x{self._size[1]}; cut the video there"
            )
        image = np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
        return self._scaling.shrink(self._orientation.apply(image))


def _sample_file(path: Path) -> bytes:
    sample = sample_bytes(path)
    if not any(sample[:8]):  # its size
        raise InputError(f"{path}: is empty; record or copy it again")
    return sample


def _read_orientation(path: Path, frame: VideoFrame) -> Orientation:
    side_data = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(side_data, SideData):
        return Orientation()
    orientation = Orientation.from_matrix(np.frombuffer(bytes(side_data), dtype=np.int32).reshape(3, 3))
    if orientation is None:
        raise InputError(f"{path}: has a rotation that is not a multiple of 90°; convert it without rotation")
    return orientation


class Decoder:
    """Continues decoding from its position if it can, else seeks to a key frame.

    Both give the same pixels: decoding starts at a key frame that is displayed no later than the wanted frame. No frame
    is ever taken for another, because each carries its own stamp.
    """

    def __init__(self, path: Path, table: FrameTable) -> None:
        self.damaged: set[int] = set()
        self._path = path
        self._table = table
        self._can_seek = True
        self._video = OpenedVideo.open(path)
        self._frames: Iterator[tuple[int, VideoFrame]]
        self._frame: VideoFrame | None  # the last decoded frame
        self._number: int  # its number
        self._first: int  # the earliest number since the last seek
        self._begin()

    def decode(self, number: int) -> VideoFrame | None:
        """Return the frame, or None if the video is damaged there."""
        if number in self.damaged:
            return None
        key = self._table.key_before(number)
        key_frame = self._table.keys[key] if key >= 0 else 0
        goes_on = self._number <= number and (not self._can_seek or key_frame <= self._number + _SEEK_COST_FRAMES)
        if goes_on and (frame := self._decode_on(number)) is not None:
            return frame
        # Some key frames are not real ones: their successors need frames from before them. If decoding started before
        # such a key frame and still misses the wanted frame, the frame cannot be decoded.
        if not (goes_on and self._first < key_frame):
            for start in _step_back(key):
                self._go_to(start)
                if (frame := self._decode_on(number)) is not None:
                    return frame
                if self._first < key_frame:
                    break
        self.damaged.update(range(number, self._number))  # frames come in order: all up to the one that came
        return None

    def close(self) -> None:
        """Close the file."""
        self._video.close()

    def _decode_on(self, number: int) -> VideoFrame | None:
        while self._number < number:
            try:
                self._number, self._frame = next(self._frames)
            except StopIteration:
                self._number, self._frame = len(self._table), None
            self._first = min(self._first, self._number)
        return self._frame if self._number == number else None

    def _go_to(self, key: int) -> None:
        """Seek to a key frame by its index in the table, or to the very beginning for -1."""
        if key < 0 or not self._can_seek:
            self._rewind()
            return
        try:
            self._video.container.seek(self._table.key_stamps[key], stream=self._video.stream)
            self._begin(after_seek=True)
        except av.FFmpegError:
            self._can_seek = False
            self._rewind()

    def _rewind(self) -> None:
        self._video.close()
        self._video = OpenedVideo.open(self._path)
        self._begin()

    def _begin(self, after_seek: bool = False) -> None:
        self._frames = self._iterate(after_seek)
        self._number, self._frame = -1, None
        self._first = len(self._table)

    def _iterate(self, after_seek: bool) -> Iterator[tuple[int, VideoFrame]]:
        """Yield all frames from here on with their numbers."""
        at_key = not after_seek
        for packet in chain(self._video.demux(), [None]):
            if packet is not None and not self._table.knows(packet.pts, packet.size):
                # A file without an index gives other stamps after a seek: read it only from the beginning.
                self._can_seek = False
                return
            # Some formats seek to just after a key frame. From there the decoder would produce wrong pixels.
            at_key = at_key or packet is None or packet.is_keyframe
            if not at_key:
                continue
            for frame in self._video.decode(packet):
                number = self._table.numbers.get(frame.pts) if frame.pts is not None else None
                if number is not None:
                    yield number, frame


def _step_back(key: int) -> list[int]:
    """Return where to start from: the key frame, then ever earlier ones, finally the very beginning (-1)."""
    starts = []
    step = 1
    while key >= 0:
        starts.append(key)
        key -= step
        step *= 2
    return [*starts, -1]
