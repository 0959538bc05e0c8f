"""Where frames come from: a video or images, read one by one."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError, UsageError
from smalti.frames.image_files import IMAGE_SUFFIXES, list_files, list_folder, list_pattern
from smalti.frames.images import ImageSource
from smalti.frames.settings import SourceSettings
from smalti.frames.video import VideoSource

__all__ = ["FrameSource", "SourceSettings", "open_source"]


class FrameSource(Protocol):
    """Gives the chosen frames of a video or of a set of images by number, one at a time.

    Images are uint8 RGB, (height, width, 3), at the working size. One thread at a time may read.
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
        """What to call each chosen frame in front of the user."""

    @property
    def fingerprint(self) -> str:
        """Changes with the content and with the choice of frames, not with the place."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, a phrase each; may grow while frames are read."""

    def __len__(self) -> int: ...

    def read(self, index: int) -> NDArray[np.uint8]:
        """Return one frame; raise InputError where it cannot be decoded."""

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield index and frame, without ever seeking back where the indices ascend.

        Frames of a damaged video that cannot be decoded are left out; `warnings` then counts them.
        """

    def close(self) -> None:
        """Let go of the files."""

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
    if path.is_dir():
        return ImageSource(path, list_folder(path), settings)
    if path.exists():
        if path.suffix.lower() in IMAGE_SUFFIXES - {".gif"}:
            raise InputError(f"{path}: is a single image; give its folder, several images or a video")
        return VideoSource(path, settings)
    if glob.has_magic(str(location)):
        return ImageSource(path.parent, list_pattern(str(location)), settings)
    raise InputError(f"{path}: does not exist, check the path")
