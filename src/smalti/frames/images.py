"""Frames from image files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.frames.depth import DepthRange
from smalti.frames.fingerprint import make_fingerprint, sample_bytes
from smalti.frames.image_header import ImageHeader, read_header
from smalti.frames.image_pixels import decode_eight_bits, decode_sixteen_bits
from smalti.frames.scaling import Scaling
from smalti.frames.settings import SourceSettings

_RANGE_SAMPLES = 12


class ImageSource:
    """The chosen ones of some image files, all of one size and depth; see FrameSource."""

    def __init__(self, path: Path, files: Sequence[Path], settings: SourceSettings) -> None:
        self.path = path
        numbers = settings.choose(path, len(files), None)
        chosen = [files[number] for number in numbers]
        self._headers = [read_header(file) for file in chosen]
        _check_alike(self._headers)
        first = self._headers[0]
        self._scaling = Scaling.within(first.width, first.height, settings.max_size)
        self._range = _find_range(self._headers) if first.bits == 16 else None
        self.width, self.height, self.scale = self._scaling.width, self._scaling.height, self._scaling.scale
        self.labels = tuple(file.name for file in chosen)
        self.warnings: tuple[str, ...] = ()
        samples = (part for file in chosen for part in (file.name, sample_bytes(file)))
        self.fingerprint = make_fingerprint(["images", *numbers, self.width, self.height, *samples])

    def __len__(self) -> int:
        return len(self._headers)

    def read(self, index: int) -> NDArray[np.uint8]:
        """Return one frame."""
        header = self._headers[index]
        if self._range is None:
            return self._scaling.shrink(decode_eight_bits(header))
        image = self._range.apply(decode_sixteen_bits(header))
        return self._scaling.shrink(np.stack([image] * 3, axis=2) if image.ndim == 2 else image)

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield index and frame."""
        for index in indices:
            yield index, self.read(index)

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _check_alike(headers: Sequence[ImageHeader]) -> None:
    first = headers[0]
    for header in headers[1:]:
        if (header.width, header.height) != (first.width, first.height):
            raise InputError(
                f"{header.path}: is {header.width}x{header.height} px, but {first.path.name} is "
                f"{first.width}x{first.height}; all images must have one size"
            )
        if header.bits != first.bits:
            raise InputError(
                f"{header.path}: has {header.bits} bits a sample, but {first.path.name} has {first.bits}; "
                f"all images must have one depth"
            )


def _find_range(headers: Sequence[ImageHeader]) -> DepthRange:
    sample = np.unique(np.linspace(0, len(headers) - 1, _RANGE_SAMPLES).round().astype(int))
    return DepthRange.of(decode_sixteen_bits(headers[index]) for index in sample)
