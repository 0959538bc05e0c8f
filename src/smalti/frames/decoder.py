"""Any frame of a video by its number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import av
from av.video.frame import VideoFrame

from smalti.frames.stream import OpenedVideo
from smalti.frames.timestamps import FrameTable

# A seek flushes the decoder, which costs about as much as decoding this many frames.
_SEEK_COST_FRAMES = 16


class Decoder:
    """Decodes on from where it is when it can, and from a key frame when it must.

    Both give the same pixels: decoding starts at a key frame shown no later than the frame asked for, and
    none is ever taken for another, because each carries its own stamp.
    """

    def __init__(self, path: Path, table: FrameTable) -> None:
        self.damaged: set[int] = set()
        self._path = path
        self._table = table
        self._can_seek = True
        self._video = OpenedVideo.open(path)
        self._frames: Iterator[tuple[int, VideoFrame]]
        self._frame: VideoFrame | None  # the last one decoded
        self._number: int  # its number
        self._first: int  # the earliest one since the last seek
        self._begin()

    def decode(self, number: int) -> VideoFrame | None:
        """Return the frame, or None where the video is damaged there."""
        if number in self.damaged:
            return None
        key = self._table.key_before(number)
        key_frame = self._table.keys[key] if key >= 0 else 0
        goes_on = self._number <= number and (not self._can_seek or key_frame <= self._number + _SEEK_COST_FRAMES)
        if goes_on and (frame := self._decode_on(number)) is not None:
            return frame
        # A key frame may be one in name only, so that its successors need what came before it. Whoever saw
        # frames from before it and still misses this one has shown that it cannot be had.
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
        """Let go of the file."""
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
        """Go to a key frame by its place in the table, or to the very beginning for -1."""
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
                # A file whose index is lost gives other stamps after a seek: read it from the beginning only.
                self._can_seek = False
                return
            # Some formats seek to just behind a key frame; from there on the decoder would make things up.
            at_key = at_key or packet is None or packet.is_keyframe
            if not at_key:
                continue
            for frame in self._video.decode(packet):
                number = self._table.numbers.get(frame.pts) if frame.pts is not None else None
                if number is not None:
                    yield number, frame


def _step_back(key: int) -> list[int]:
    """Return where to start from: the key frame, ever earlier ones, at last the very beginning (-1)."""
    starts = []
    step = 1
    while key >= 0:
        starts.append(key)
        key -= step
        step *= 2
    return [*starts, -1]
