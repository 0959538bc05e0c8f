"""Find where each frame shows the scene: the sequence's field of view without what hides it in this frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from smalti.frames.disc import find_own_field
from smalti.frames.field_of_view import Stability, find_margin, find_overlays, find_within_surround
from smalti.frames.occlusions import Highlights, Palette
from smalti.frames.pixels import Region, edge_of, grow, in_gray, shrink

Parts = NDArray[np.uint8]
"""(h, w): the `Part` of every pixel of a frame."""


class Part(IntEnum):
    """What a pixel of a frame shows."""

    SCENE = 0
    HIGHLIGHT = 1  # the scene, but too bright to be seen
    TOOL = 2  # from here on, not the scene
    OVERLAY = 3
    SURROUND = 4
    PAINTED = 5  # black in a mask of the user's


class PartFinder(Protocol):
    """Tells what the pixels of a frame show."""

    @property
    def field(self) -> Region:
        """What some frames show, (h, w)."""
        ...

    @property
    def differ(self) -> bool:
        """Whether frames may have other masks than what they share."""
        ...

    def find_parts(self, number: int, image: NDArray[np.uint8]) -> Parts:
        """Return the parts of a frame (h, w, 3), by its number in the source."""
        ...


_Pixel = TypeVar("_Pixel", bound=np.generic)

_SAMPLE_SIDE = 240  # a sample is thinned out to about this side: enough for statistics
_DISC_FRAMES = 0.5  # share of the sample that has to show a disc,
_DISC_CHANGE = 0.0005  # and median change, as a share of the disc, from which on each frame gets its own
_SLIVER = 1  # thinned-out pixels on either side: the precision of a rim
_SELDOM_DARK = 0.1  # share of the frames: pixels dark less often lie inside nearly every disc
_SURROUNDED_EDGE = 0.9  # with a surround, less of the picture's edge is scene


@dataclass(frozen=True, slots=True, eq=False)
class FrameMasks:
    """What a sample of the sequence tells about where its frames show the scene."""

    field: Region  # (h, w): common to all frames; without any disc if it changes
    disc_changes: bool  # whether each frame has a disc of its own
    highlights: Highlights
    palette: Palette
    overlays: Region  # (h, w): not in the field

    @classmethod
    def of_sample(cls, images: Iterable[NDArray[np.uint8]], field: Region | None = None) -> Self:
        """Learn from some 20 to 40 RGB frames (h, w, 3) spread over the sequence.

        A given field, painted by the user, is used as it is; otherwise it is found.
        """
        samples: list[_Sample] = []
        statistics = Stability.of(_collect_samples(images, samples))
        changes = field is None and _disc_changes([sample.own_field for sample in samples])
        overlays = np.zeros(statistics.dark_share.shape, dtype=bool)
        if field is None:
            within = statistics.dark_share < _SELDOM_DARK if changes else find_within_surround(statistics)
            overlays = find_overlays(statistics, within)
            field = ~overlays if changes else within & ~overlays
        insides = [_thin(field) & sample.own_field if changes else _thin(field) for sample in samples]
        colours = [sample.image[inside] for sample, inside in zip(samples, insides, strict=True)]
        # Only scopes have a surround, and only scopes have tools.
        surrounded = changes or float(field[edge_of(field.shape)].mean()) < _SURROUNDED_EDGE
        palette = Palette.of(colours) if surrounded else Palette.of_everything()
        highlights = Highlights.of([in_gray(of_frame[None])[0] for of_frame in colours])
        return cls(field, changes, highlights, palette, overlays)

    @property
    def differ(self) -> bool:
        """Whether frames may have other masks than the field."""
        return self.disc_changes or self.highlights.exist or not self.palette.common.all()

    def of(self, image: NDArray[np.uint8]) -> Region:
        """Return where a frame (h, w, 3) shows the scene, (h, w)."""
        return np.asarray(self.find_parts(0, image) == Part.SCENE)

    def find_parts(self, number: int, image: NDArray[np.uint8]) -> Parts:
        """Return what the pixels of a frame (h, w, 3) show."""
        gray = in_gray(image)
        field = self.field
        if self.disc_changes:
            field = field & find_own_field(gray, find_margin(gray.shape))
        parts = np.where(field, np.uint8(Part.SCENE), np.uint8(Part.SURROUND))
        parts[self.overlays] = Part.OVERLAY
        parts[field & self.highlights.find(gray)] = Part.HIGHLIGHT
        parts[field & self.palette.find_tools(image, field)] = Part.TOOL
        return parts


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """A thinned-out frame and its own field."""

    image: NDArray[np.uint8]  # (h', w', 3)
    own_field: Region  # (h', w')


def _collect_samples(images: Iterable[NDArray[np.uint8]], samples: list[_Sample]) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames in gray, and append their samples."""
    for image in images:
        gray = in_gray(image)
        samples.append(_Sample(_thin(image), _thin(find_own_field(gray, 0))))
        yield gray


def _disc_changes(own_fields: Sequence[Region]) -> bool:
    """Return whether the frames show different discs: moved, of another size, or with a notch elsewhere."""
    discs = [own for own in own_fields if not own.all()]
    if len(discs) < _DISC_FRAMES * len(own_fields):
        return False
    usual = np.mean(discs, axis=0) > 0.5
    changes = [grow(shrink(own ^ usual, _SLIVER), _SLIVER).sum() / max(1, usual.sum()) for own in discs]
    return float(np.median(changes)) > _DISC_CHANGE


def _thin(image: NDArray[_Pixel]) -> NDArray[_Pixel]:
    step = -(-max(image.shape[:2]) // _SAMPLE_SIDE)
    return image[::step, ::step].copy()  # a view would keep the whole frame in memory
