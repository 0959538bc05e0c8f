"""Open a video or a set of image files as a source of frames."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import physical_memory
from smalti.errors import InputError, UsageError
from smalti.frames.images import ImageSource
from smalti.frames.source_settings import SourceSettings
from smalti.frames.video import VideoSource
from smalti.interchange.regular_files import kind_of, reading

__all__ = ["FrameSource", "SourceSettings", "check_frame_size", "open_source"]

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".png", ".tif", ".tiff", ".bmp", ".webp", ".gif"})


class FrameSource(Protocol):
    """The chosen frames of a video or of a set of images, by number.

    Images are uint8 RGB, (height, width, 3), at the working size. Only one thread at a time may read.
    """

    @property
    def path(self) -> Path:
        """The video, or the folder of the images."""

    @property
    def width(self) -> int:
        """Working width in pixels."""

    @property
    def height(self) -> int:
        """Working height in pixels."""

    @property
    def scale(self) -> float:
        """Working pixels per source pixel, at most 1."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each chosen frame, as users see it."""

    @property
    def fingerprint(self) -> str:
        """Changes with the content and with the choice of frames, not with the location.

        It samples the start, the middle and the end of every file, and its size: a large video is not read whole to
        be recognised. A project keeps digests of all bytes too, which `smalti check` compares.
        """

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the chosen frames, in their order."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, one phrase each; may grow while frames are read."""

    def __len__(self) -> int: ...

    def read(self, index: int) -> NDArray[np.uint8]:
        """Return one frame; raise InputError if it cannot be decoded."""

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield index and frame; never seek back while the indices ascend.

        Frames of a damaged video that cannot be decoded are left out; `warnings` then counts them.
        """

    def close(self) -> None:
        """Close the files."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


def open_source(location: str | Path | Sequence[str | Path], settings: SourceSettings | None = None) -> FrameSource:
    """Open a video, a folder of images, a pattern such as `shots/*.tif`, or a list of images."""
    settings = SourceSettings() if settings is None else settings
    if not isinstance(location, str | Path):
        if not location:
            raise UsageError("no input is given: name a video, a folder of images, or images")
        if len(location) > 1:
            paths = [Path(one) for one in location]
            return ImageSource(paths[0].parent, list_files(paths), settings)
        location = location[0]
    path = Path(location)
    kind = kind_of(path)
    if kind == "folder":
        return ImageSource(path, list_folder(path), settings)
    if kind == "file":
        if path.suffix.lower() in IMAGE_SUFFIXES - {".gif"}:
            raise InputError(f"{path}: is a single image; give its folder, several images or a video")
        return VideoSource(path, settings)
    if glob.has_magic(str(location)):
        return ImageSource(path.parent, list_pattern(str(location)), settings)
    raise InputError(f"{path}: does not exist, check the path")


SMALLEST_SIDE = 24
"""Pixels. Smaller frames hold no keypoint, and nothing that could be registered by all pixels."""

BYTES_PER_PIXEL = 360
"""What the search for keypoints takes, measured on frames of 12 to 49 million pixels."""


def check_frame_size(source: FrameSource) -> None:
    """Refuse frames that are too small to register, or so large that they would not fit into memory."""
    width, height = source.width, source.height
    if min(width, height) < SMALLEST_SIDE:
        raise InputError(
            f"{source.path}: frames of {width} x {height} px are too small; give at least {SMALLEST_SIDE} px a side"
        )
    most = physical_memory() // BYTES_PER_PIXEL
    if width * height > most:
        side = int(max(width, height) * (most / (width * height)) ** 0.5)
        raise InputError(
            f"{source.path}: frames of {width} x {height} px are too large; reduce them with --max-size {side} or less"
        )


def list_folder(folder: Path) -> list[Path]:
    """List the images of a folder in natural order, without other files and hidden ones."""
    with reading(folder):
        paths = list(folder.iterdir())
    return _pick(folder, paths)


def list_pattern(pattern: str) -> list[Path]:
    """List the images whose paths match the pattern, in natural order."""
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207
    return _pick(Path(pattern), map(Path, matches))


def list_files(paths: Sequence[Path]) -> list[Path]:
    """Sort the given files in natural order, because the shell sorts img10 before img2."""
    for path in paths:
        if kind_of(path) != "file":
            raise InputError(f"{path}: is not a file; give images, one folder or one video")
    ordered = sorted(paths, key=natural_key)
    for one, next_one in pairwise(ordered):
        if one == next_one:
            raise InputError(f"{one}: is given twice; give every image once")
    return ordered


def natural_key(path: Path) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return a key that sorts img2 before img10 and IMG3 between them."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", str(path).casefold())
    numbered = tuple((0, int(piece), "") if piece.isdigit() and piece.isascii() else (1, 0, piece) for piece in pieces)
    return numbered, str(path)


def _pick(location: Path, paths: Iterable[Path]) -> list[Path]:
    images = [
        path
        for path in paths
        if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".") and kind_of(path) == "file"
    ]
    if not images:
        raise InputError(f"{location}: holds no images (JPEG, PNG, TIFF, BMP or WebP); check the path")
    if len(images) < 2:
        raise InputError(f"{location}: holds a single image, {images[0].name}; a mosaic needs 2 or more")
    return sorted(images, key=natural_key)
