"""Films as files: MP4 for browsers and players, GIF for wherever only pictures may stand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.codec.codec import UnknownCodecError
from numpy.typing import NDArray
from PIL import Image

from smalti.errors import OutputError, UsageError

Picture = NDArray[np.uint8]
"""(h, w, 3), RGB, its sides even."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file, and what is wise to put into it."""

    write: Callable[[Path, Iterator[Picture], Sequence[Picture]], None]  # takes some of the pictures in advance too
    per_second: int  # pictures
    largest_size: int  # px


def format_of(path: Path) -> Format:
    """Choose by the file's extension."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: a film is written as one of {', '.join(FORMATS)}: choose such a name")
    return FORMATS[path.suffix.lower()]


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a path to write to; what is there takes the name of `path` once all went well and vanishes otherwise."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    except (OSError, av.FFmpegError) as error:
        reason = error.strerror or error
        raise OutputError(
            f"{path}: cannot be written ({reason}): choose a folder you may write to, with room"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def write_mp4(path: Path, pictures: Iterator[Picture], samples: Sequence[Picture]) -> None:
    """Write H.264 that every browser plays, its index in front so that it plays while it loads."""
    with av.open(path, "w", format="mp4", options={"movflags": "+faststart"}) as container:
        try:
            stream = container.add_stream("libx264", rate=MP4.per_second, options={"preset": "faster", "crf": "20"})
        except UnknownCodecError:
            raise OutputError(
                f"{path}: this installation of PyAV has no H.264 encoder; write a .gif, or install PyAV from a wheel"
            ) from None
        assert isinstance(stream, av.VideoStream)
        context = stream.codec_context
        context.height, context.width = samples[0].shape[:2]
        context.pix_fmt = "yuv420p"
        # BT.709, said and done alike: a player that has to guess shows other colours.
        context.colorspace = context.color_primaries = context.color_trc = context.color_range = 1
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame.reformat(format="yuv420p", dst_colorspace="ITU709")))
        container.mux(stream.encode(None))


def write_gif(path: Path, pictures: Iterator[Picture], samples: Sequence[Picture]) -> None:
    """Write a GIF that plays again and again, in the 256 colours that suit the samples best."""
    # One palette for all: with one each, what stands still would flicker.
    palette = Image.fromarray(np.concatenate(samples)).quantize(256, Image.Quantize.MEDIANCUT)
    reduced = (Image.fromarray(picture).quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures)
    first = next(reduced)
    milliseconds = 1000 // GIF.per_second
    # Opened here: given a name, Pillow leaves the file open where the pictures end with an error.
    with path.open("wb") as file:
        first.save(file, "GIF", save_all=True, append_images=reduced, duration=milliseconds, loop=0, optimize=False)


MP4 = Format(write_mp4, per_second=25, largest_size=3840)
GIF = Format(write_gif, per_second=10, largest_size=640)
FORMATS = {".mp4": MP4, ".gif": GIF}
