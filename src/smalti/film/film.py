"""The drift film: story, timeline, pictures, and the MP4 or GIF file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.codec.codec import UnknownCodecError
from numpy.typing import NDArray
from PIL import Image

from smalti.errors import OutputError, UsageError
from smalti.film.film_frames import choose_frames, read_film_frames
from smalti.film.film_pictures import Drawing
from smalti.film.film_story import tell_story
from smalti.film.film_timeline import FEWEST_SECONDS, Moment, View, most_steps, plan_timeline
from smalti.interchange.atomic_files import check_place, replacing_by_name
from smalti.project.project import Project

OnProgress = Callable[[int, int], None]
"""Called with the number of frames read and pictures drawn so far, and with the number of all."""

SMALLEST_SIZE, LARGEST_SIZE = 160, 3840
SAMPLES = 8
"""Pictures drawn in advance, spread over the film. The palette of a GIF must suit them all."""


def make_film(
    project: Project,
    path: str | Path,
    *,
    part: int = 0,
    seconds: float = 20.0,
    size: int = 960,
    on_progress: OnProgress | None = None,
) -> Path:
    """Make a film of how a finished mosaic improves: the chain alone, then answer by answer, to the end.

    The extension selects the kind of file: .mp4 or .gif. A GIF is at most 640 pixels large. `size` is the longer side
    in pixels. The film takes at most `seconds`: many answers share steps, few answers make it shorter.
    """
    path = Path(path)
    kind = format_of(path)
    if not FEWEST_SECONDS <= seconds < np.inf:
        raise UsageError(f"a film of {seconds} seconds: give {FEWEST_SECONDS:.0f} or more")
    if not SMALLEST_SIZE <= size <= LARGEST_SIZE:
        raise UsageError(f"a film of {size} pixels: give {SMALLEST_SIZE} to {LARGEST_SIZE}")
    check_place(path)
    story = tell_story(project, part, most_steps(seconds))
    timeline = plan_timeline(story, seconds)
    view = View.of(story, min(size, kind.largest_size))
    finished = view.canvas_from_mosaic(1.0) @ story.states[-1].maps
    indices = choose_frames(finished, story.lens.outline)
    moments = timeline.moments(kind.per_second)
    progress = _Counter(on_progress, len(indices) + len(moments))
    scale = float(np.sqrt(np.median(np.abs(np.linalg.det(finished[:, :2, :2])))))
    film_frames = read_film_frames(
        project.source, story.frames, indices, project.mask, story.lens, scale, progress.step
    )
    drawing = Drawing(story, timeline, view, film_frames)
    samples = [drawing.draw(moments[n]) for n in np.linspace(0, len(moments) - 1, SAMPLES).astype(int)]
    with writing_beside(path) as unfinished:
        kind.write(unfinished, _draw_all(drawing, moments, progress.step), samples)
    return path


def _draw_all(drawing: Drawing, moments: Sequence[Moment], on_drawn: Callable[[], None]) -> Iterator[Picture]:
    """Yield the pictures in order. Several are drawn at a time, on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        drawn: deque[Future[Picture]] = deque()
        for previous, moment in zip([None, *moments], moments, strict=False):
            # Nothing moves before the first step and after the last. Such a picture is drawn once.
            is_same = previous is not None and (moment.before, moment.share) == (previous.before, previous.share)
            drawn.append(drawn[-1] if is_same else pool.submit(drawing.draw, moment))
            if len(drawn) > 2 * (os.cpu_count() or 1):
                yield drawn.popleft().result()
                on_drawn()
        for future in drawn:
            yield future.result()
            on_drawn()


class _Counter:
    def __init__(self, on_progress: OnProgress | None, total: int) -> None:
        self._on_progress, self._done, self._total = on_progress, 0, total

    def step(self) -> None:
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


Picture = NDArray[np.uint8]
"""(h, w, 3), RGB, with even sides."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file, and the pictures that suit it."""

    write: Callable[[Path, Iterator[Picture], Sequence[Picture]], None]  # takes some of the pictures in advance too
    per_second: int  # pictures
    largest_size: int  # px


def format_of(path: Path) -> Format:
    """Return the format for the extension of a path."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: a film is written as one of {', '.join(FORMATS)}: choose such an ending")
    return FORMATS[path.suffix.lower()]


@contextmanager
def writing_beside(path: Path) -> Iterator[Path]:
    """Give a path to write to. The file takes the name of `path` if all went well, and is removed otherwise."""
    with replacing_by_name(path) as part:
        try:
            yield part
        except (OSError, av.FFmpegError) as error:
            reason = error.strerror or error
            raise OutputError(
                f"{path}: cannot be written ({reason}): choose a writable folder with free space"
            ) from None


H264 = {"preset": "faster", "crf": "20", "x264-params": "cpu-independent=1"}
"""With several threads, or with the fastest code for this processor, x264 writes other bytes from run to run."""


def write_mp4(path: Path, pictures: Iterator[Picture], samples: Sequence[Picture]) -> None:
    """Write H.264 that every browser plays. The index is at the front, so that it plays while it loads."""
    with av.open(path, "w", format="mp4", options={"movflags": "+faststart"}) as container:
        try:
            stream = container.add_stream("libx264", rate=MP4.per_second, options=H264)
        except UnknownCodecError:
            raise OutputError(
                f"{path}: this installation of PyAV has no H.264 encoder; write a .gif, or install PyAV from a wheel"
            ) from None
        assert isinstance(stream, av.VideoStream)
        context = stream.codec_context
        context.thread_count = 1
        context.height, context.width = samples[0].shape[:2]
        context.pix_fmt = "yuv420p"
        # Encode as BT.709, and declare it in the file: a player that has to guess shows other colours.
        context.colorspace = context.color_primaries = context.color_trc = context.color_range = 1
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame.reformat(format="yuv420p", dst_colorspace="ITU709")))
        container.mux(stream.encode(None))


def write_gif(path: Path, pictures: Iterator[Picture], samples: Sequence[Picture]) -> None:
    """Write a GIF that repeats for ever, in the 256 colours that suit the samples best."""
    # All pictures share one palette. With one palette each, areas that do not change would flicker.
    palette = Image.fromarray(np.concatenate(samples)).quantize(256, Image.Quantize.MEDIANCUT)
    reduced = (Image.fromarray(picture).quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures)
    first = next(reduced)
    milliseconds = 1000 // GIF.per_second
    # Open the file here. If given a name, Pillow leaves the file open when the pictures end with an error.
    with path.open("wb") as file:
        first.save(file, "GIF", save_all=True, append_images=reduced, duration=milliseconds, loop=0, optimize=False)


MP4 = Format(write_mp4, per_second=25, largest_size=3840)
GIF = Format(write_gif, per_second=10, largest_size=640)
FORMATS = {".mp4": MP4, ".gif": GIF}
