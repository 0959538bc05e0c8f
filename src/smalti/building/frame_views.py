"""Find the part of each frame that registration uses."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.frames.field_of_view import read_mask
from smalti.frames.painted_masks import read_masks
from smalti.frames.pixels import in_gray
from smalti.frames.source import FrameSource
from smalti.frames.spots import NO_SPOTS, find_spots
from smalti.frames.visibility import FrameMasks, Part, PartFinder
from smalti.interchange.regular_files import kind_of
from smalti.registration.constellation import Stars
from smalti.registration.dense import Prepared, prepare

SAMPLES = 32
USUALLY_SHOWN = 0.9
"""Share of the sampled frames. If the field of view changes, a pixel that fewer frames show is not valid."""

MOST_PREPARED = 24
"""Frames prepared for dense registration that stay in memory."""

MOST_STARS = 2000
"""Frames whose spots stay in memory: a few thousand bytes each."""


class FrameViews:
    """The valid part of every frame. Whatever is needed is computed on first use."""

    def __init__(self, source: FrameSource, choice: str, known: PartFinder | None = None) -> None:
        """`choice` is auto, none, or the path of a mask or of a folder of masks; `known` was found before."""
        self._source = source
        self._choice = choice
        self._known = known
        self._prepared: OrderedDict[int, Prepared] = OrderedDict()
        self._stars: OrderedDict[int, Stars] = OrderedDict()

    @cached_property
    def field(self) -> NDArray[np.bool_] | None:
        """The valid pixels (h, w) common to the frames; None if all are valid."""
        finder = self.finder
        if finder is None:
            return None
        field = finder.field
        if isinstance(finder, FrameMasks) and finder.disc_changes:
            # A mosaic should show the rim of hardly any frame.
            field = field & (np.mean([finder.of(image) for image in self._sample()], axis=0) > USUALLY_SHOWN)
        return None if field.all() else field

    def mask(self, number: int, image: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
        """Return the valid pixels of a frame (h, w, 3); None if all are valid."""
        return None if self.finder is None else np.asarray(self.finder.find_parts(number, image) == Part.SCENE)

    def read_gray(self, number: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
        """Return a frame in gray (h, w), and its valid pixels."""
        image = self._source.read(number)
        return in_gray(image), self.mask(number, image)

    def prepared(self, number: int) -> Prepared:
        """Return a frame prepared for dense registration. The latest ones stay in memory."""
        if number not in self._prepared:
            self._prepared[number] = prepare(*self.read_gray(number))
            if len(self._prepared) > MOST_PREPARED:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(number)
        return self._prepared[number]

    def stars(self, number: int) -> Stars:
        """Return the spots of a frame; none if it has no flat ground or cannot be decoded. The latest are kept."""
        if number not in self._stars:
            try:
                spots = find_spots(*self.read_gray(number))
            except InputError:
                spots = NO_SPOTS
            self._stars[number] = Stars.of(spots.points, spots.strengths, spots.sigmas)
            if len(self._stars) > MOST_STARS:
                self._stars.popitem(last=False)
        self._stars.move_to_end(number)
        return self._stars[number]

    @cached_property
    def finder(self) -> PartFinder | None:
        """What finds the parts of each frame; None if nothing is to be masked."""
        source = self._source
        if self._choice == "none":
            return None
        if self._known is not None:
            return self._known
        field = None
        if self._choice != "auto":
            if kind_of(Path(self._choice)) == "folder":
                return read_masks(Path(self._choice), source)
            field = read_mask(Path(self._choice), source.width, source.height, scale=source.scale)
        return FrameMasks.of_sample(self._sample(), field)

    def _sample(self) -> Iterator[NDArray[np.uint8]]:
        """Yield some frames spread over the sequence."""
        frames = len(self._source)
        numbers = np.unique(np.linspace(0, frames - 1, min(SAMPLES, frames)).round().astype(int))
        return (image for _, image in self._source.read_many(numbers.tolist()))
