"""Open a video file and list its frames by their time stamps, from packets alone."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Self

import av
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from smalti.errors import InputError

# FFmpeg reads any text as a video of its letters with these formats.
_TEXT_FORMATS = {"tty", "bin", "idf", "adf", "xbin"}

# Headers round durations: fewer missing frames than this do not show a truncated file.
_ROUNDED_FRAMES = 2


@dataclass(frozen=True, slots=True, eq=False)
class OpenedVideo:
    """The first video stream of a file, and its container."""

    container: InputContainer
    stream: VideoStream

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file at its beginning; refuse other files than videos."""
        av.logging.set_level(None)  # FFmpeg would write to stderr
        try:
            # With the prefix a colon in a name is not read as a protocol; the list keeps playlists offline.
            container = av.open(
                f"file:{path}", options={"protocol_whitelist": "file"}, metadata_errors="backslashreplace"
            )
        except av.FFmpegError:
            raise InputError(f"{path}: is not a video that can be read; give a video or a folder of images") from None
        streams = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
        if container.format.name in _TEXT_FORMATS or not streams:
            container.close()
            raise InputError(f"{path}: holds no video; give a video or a folder of images")
        if streams[0].codec_context is None:
            container.close()
            raise InputError(f"{path}: its video cannot be decoded; convert it to MP4 or MKV")
        streams[0].thread_type = "AUTO"
        return cls(container, streams[0])

    def demux(self) -> Iterator[Packet[VideoStream]]:
        """Yield the packets of the stream, up to its end or to where the file breaks off.

        Every packet has a stamp, its `pts`, unless the file gives it no time at all.
        """
        packets = self.container.demux(self.stream)
        while True:
            try:
                packet = next(packets)
            except (StopIteration, av.FFmpegError):
                return
            if packet.pts is None and packet.dts is not None:
                packet.pts = packet.dts
            # An empty packet would end the decoding; a corrupt one ends the file.
            if packet.size and not packet.is_corrupt:
                yield packet

    def decode(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """Return the frames that the packet completes; for None, those still in the decoder.

        A packet that cannot be decoded gives none. Frames carry the stamp of their packet.
        """
        try:
            frames = self.stream.decode(packet)
        except av.FFmpegError:
            return []
        return [frame for frame in frames if not frame.is_corrupt]

    def close(self) -> None:
        """Close the file."""
        self.container.close()


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable:
    """The frames of a video in the order of display.

    A frame is identified by the stamp of its packet, which its decoded picture carries too. So a frame that cannot be
    decoded leaves a gap and shifts no other. `numbers` maps stamps to frames. `packet_sizes` has all packets. `keys`
    are the frames that decoding can start from, ascending, and `key_stamps` their stamps. A stamp is a time in ticks of
    the stream. `promised_frames` is the number in the file's header; if not `counted`, it follows from the video's
    duration. `pixel_ratio` is a pixel's width over its height.
    """

    numbers: dict[int, int]
    times_seconds: tuple[float, ...]
    packet_sizes: dict[int, int]
    keys: tuple[int, ...]
    key_stamps: tuple[int, ...]
    promised_frames: int
    counted: bool
    pixel_ratio: Fraction

    def __len__(self) -> int:
        return len(self.times_seconds)

    def knows(self, stamp: int | None, size: int) -> bool:
        """Return whether a packet with this stamp has this size."""
        return stamp is not None and self.packet_sizes.get(stamp) == size

    def key_before(self, frame: int) -> int:
        """Return the index in `keys` of the last one not after the frame; -1 if there is none."""
        return bisect.bisect_right(self.keys, frame) - 1

    def cut(self, frames: int) -> FrameTable:
        """Return the table of the first frames only."""
        numbers = {stamp: number for stamp, number in self.numbers.items() if number < frames}
        kept = bisect.bisect_left(self.keys, frames)
        return replace(
            self,
            numbers=numbers,
            times_seconds=self.times_seconds[:frames],
            keys=self.keys[:kept],
            key_stamps=self.key_stamps[:kept],
        )


def tabulate_frames(path: Path) -> FrameTable:
    """Read all packets of the video, without decoding, and list their frames."""
    video = OpenedVideo.open(path)
    try:
        return _tabulate(path, video)
    finally:
        video.close()


def _tabulate(path: Path, video: OpenedVideo) -> FrameTable:
    stamps: list[int] = []
    sizes: dict[int, int] = {}
    keys: list[int] = []
    stop = 0
    for packet in video.demux():
        stamp = packet.pts
        if stamp is None:
            raise InputError(f"{path}: its frames have no times; convert it to MP4 or MKV")
        if stamp in sizes:
            raise InputError(f"{path}: several of its frames have the same time; convert it to MP4 or MKV")
        sizes[stamp] = packet.size
        stop = max(stop, stamp + (packet.duration or 0))
        if packet.is_discard:  # frames that an editor cut away are decoded, but not displayed
            continue
        stamps.append(stamp)
        if packet.is_keyframe:
            keys.append(stamp)
    if not stamps:
        raise InputError(f"{path}: holds no frames; record or convert it again")
    shown = ticks = sorted(stamps)
    if "avi" in video.container.format.name.split(",") and video.stream.codec_context.has_b_frames:
        # AVI does not store the order of display; only a decoder knows it.
        shown = _order_by_decoding(path, set(stamps))
    numbers = {stamp: number for number, stamp in enumerate(shown)}
    ordered_keys = sorted((numbers[stamp], stamp) for stamp in keys if stamp in numbers)
    base = video.stream.time_base or Fraction(1)
    return FrameTable(
        numbers=numbers,
        times_seconds=tuple(float((tick - ticks[0]) * base) for tick in ticks[: len(shown)]),
        packet_sizes=sizes,
        keys=tuple(number for number, _ in ordered_keys),
        key_stamps=tuple(stamp for _, stamp in ordered_keys),
        promised_frames=_read_promise(video, ticks, stop, len(sizes) - len(stamps)),
        counted=video.stream.frames > 0,
        pixel_ratio=video.stream.sample_aspect_ratio or Fraction(1),
    )


def _order_by_decoding(path: Path, stamps: set[int]) -> list[int]:
    """Return the stamps of the frames that can be decoded, in order of display."""
    video = OpenedVideo.open(path)
    try:
        packets = chain(video.demux(), [None])
        return [frame.pts for packet in packets for frame in video.decode(packet) if frame.pts in stamps]
    finally:
        video.close()


def _read_promise(video: OpenedVideo, ticks: list[int], stop: int, discarded: int) -> int:
    """Return how many frames the header promises, or as many as were found if it promises nothing."""
    found = len(ticks)
    if video.stream.frames:
        return max(found, video.stream.frames - discarded)
    # Matroska does not count frames but has a duration; only a sound track may last longer than the video.
    if found < 2 or len(video.container.streams) > 1:
        return found
    base = float(video.stream.time_base or 1)
    seconds_a_frame = (ticks[-1] - ticks[0]) * base / (found - 1)
    missing = round(((video.container.duration or 0) / av.time_base - stop * base) / seconds_a_frame)
    return found + missing if missing > _ROUNDED_FRAMES else found
