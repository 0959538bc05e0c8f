"""Read frames from image files; 16 bits are reduced to 8 in the same way for all frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError, as_one_line
from smalti.frames.image_reading import ImageHeader, decode_eight_bits, decode_sixteen_bits, read_header
from smalti.frames.source_settings import Scaling, SourceSettings, make_fingerprint, sample_bytes

_RANGE_SAMPLES = 12
# A few hot or dead pixels must not determine the range.
_PERCENTILES = (0.05, 99.95)
_LEVELS = 65536


class ImageSource:
    """The chosen images of a list of files, all of one size and depth; a `FrameSource`."""

    def __init__(self, path: Path, files: Sequence[Path], settings: SourceSettings) -> None:
        self.path = path
        numbers = settings.choose(path, len(files), None)
        chosen = [files[number] for number in numbers]
        self.files = tuple(chosen)
        self._headers = [read_header(file) for file in chosen]
        _check_alike(self._headers)
        first = self._headers[0]
        self._scaling = Scaling.within(first.width, first.height, settings.max_size)
        self._range = _find_range(self._headers) if first.bits == 16 else None
        self.width, self.height, self.scale = self._scaling.width, self._scaling.height, self._scaling.scale
        self.labels = tuple(as_one_line(file.name) for file in chosen)
        self.warnings = _find_odd_metadata(self._headers)
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


def _find_odd_metadata(headers: Sequence[ImageHeader]) -> tuple[str, ...]:
    odd = [header.path.name for header in headers if header.odd_metadata]
    if not odd:
        return ()
    return (f"{len(odd)} of the images have metadata that cannot be read, the first is {odd[0]}",)


def _find_range(headers: Sequence[ImageHeader]) -> DepthRange:
    sample = np.unique(np.linspace(0, len(headers) - 1, _RANGE_SAMPLES).round().astype(int))
    return DepthRange.of(decode_sixteen_bits(headers[index]) for index in sample)


@dataclass(frozen=True, slots=True)
class DepthRange:
    """The 16-bit values that become 0 and 255."""

    low: int
    high: int

    @classmethod
    def of(cls, images: Iterable[NDArray[np.uint16]]) -> DepthRange:
        """Find one range for all images together, robustly."""
        counts = np.zeros(_LEVELS, dtype=np.int64)
        for image in images:
            counts += np.bincount(image.ravel(), minlength=_LEVELS)
        below = np.cumsum(counts)
        low, high = np.searchsorted(below, np.array(_PERCENTILES) / 100.0 * below[-1])
        return cls(int(low), max(int(high), int(low) + 1))

    def apply(self, image: NDArray[np.uint16]) -> NDArray[np.uint8]:
        """Scale to 8 bits; values outside the range are clipped."""
        levels = (np.arange(_LEVELS) - self.low) * (255.0 / (self.high - self.low))
        table = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
        scaled: NDArray[np.uint8] = table[image]
        return scaled
