"""Read the masks that a user gives, one a frame: from a program that finds tissue or tools, or painted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.frames.field_of_view import read_region
from smalti.frames.images import ImageSource
from smalti.frames.pixels import Region
from smalti.frames.source import FrameSource, list_folder
from smalti.frames.visibility import Part, Parts


@dataclass(frozen=True, slots=True, eq=False)
class PaintedMasks:
    """The masks that the user gave, by frame number. Nothing else is masked."""

    pictures: tuple[bytes, ...]  # PNG, white where the frame shows the scene

    @property
    def differ(self) -> bool:
        """Whether frames may have other masks than what they share."""
        return True

    @property
    def field(self) -> Region:
        """What any frame shows, (h, w)."""
        field = _decode(self.pictures[0])
        for picture in self.pictures[1:]:
            field |= _decode(picture)
        return field

    def find_parts(self, number: int, image: NDArray[np.uint8]) -> Parts:
        """Return what the pixels of a frame show."""
        return np.where(_decode(self.pictures[number]), np.uint8(Part.SCENE), np.uint8(Part.PAINTED))


def read_masks(folder: Path, source: FrameSource) -> PaintedMasks:
    """Read a mask for every frame: the image with its file's name, whatever the extension, or else in their order.

    A frame may be all black: it shows no scene, and is set aside.
    """
    files = list_folder(folder)
    chosen = _match_names(folder, files, source) if isinstance(source, ImageSource) else None
    if chosen is None:
        if len(files) != len(source):
            raise InputError(
                f"{folder}: has {len(files)} masks, but {len(source)} frames are used; give each one, in their order"
            )
        chosen = files
    pictures = []
    shows_scene = False
    for file in chosen:
        region = read_region(file, source.width, source.height, scale=source.scale)
        shows_scene = shows_scene or bool(region.any())
        _, picture = cv2.imencode(".png", region.astype(np.uint8) * 255, (cv2.IMWRITE_PNG_BILEVEL, 1))
        pictures.append(picture.tobytes())
    if not shows_scene:
        raise InputError(f"{folder}: all masks are completely black, so no scene is left; paint the scene white")
    return PaintedMasks(tuple(pictures))


def _match_names(folder: Path, files: Sequence[Path], source: ImageSource) -> list[Path] | None:
    """Return the masks by the names of the frames; None if no mask is named after a frame."""
    named = {file.stem: file for file in files}
    found = [named.get(frame.stem) for frame in source.files]
    if not any(found):
        return None
    matched = [mask for mask in found if mask is not None]
    if len(matched) < len(found):
        missing = source.files[found.index(None)]
        raise InputError(f"{folder}: has no mask for {missing.name}; add one of that name, all white if all is scene")
    return matched


def _decode(picture: bytes) -> Region:
    image = cv2.imdecode(np.frombuffer(picture, dtype=np.uint8), cv2.IMREAD_GRAYSCALE)
    assert image is not None, "what was encoded can be decoded"
    return np.asarray(image) > 0
