"""A video file, opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import av
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from smalti.errors import InputError

# Formats by which FFmpeg would show any text as a film of its letters.
_TEXT_FORMATS = {"tty", "bin", "idf", "adf", "xbin"}


@dataclass(frozen=True, slots=True, eq=False)
class OpenedVideo:
    """The first video stream of a file, and the container it is in."""

    container: InputContainer
    stream: VideoStream

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file at its beginning; refuse what is no video."""
        av.logging.set_level(None)  # FFmpeg would write to stderr, past our own messages
        try:
            # The prefix keeps a colon in a name from being read as a protocol, the list keeps playlists offline.
            container = av.open(f"file:{path}", options={"protocol_whitelist": "file"})
        except av.FFmpegError:
            raise InputError(f"{path}: is not a video that can be read; give a video or a folder of images") from None
        streams = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
        if container.format.name in _TEXT_FORMATS or not streams:
            container.close()
            raise InputError(f"{path}: holds no video; give a video or a folder of images")
        streams[0].thread_type = "AUTO"
        return cls(container, streams[0])

    def demux(self) -> Iterator[Packet[VideoStream]]:
        """Yield the packets of the stream, up to the end or to where the file breaks off.

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
            # An empty packet would end the decoding; a torn one ends the file.
            if packet.size and not packet.is_corrupt:
                yield packet

    def decode(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """Return the frames that the packet completes, or for None those still held back.

        A packet that cannot be decoded gives none. Frames carry the stamp of their packet.
        """
        try:
            frames = self.stream.decode(packet)
        except av.FFmpegError:
            return []
        return [frame for frame in frames if not frame.is_corrupt]

    def close(self) -> None:
        """Let go of the file."""
        self.container.close()
