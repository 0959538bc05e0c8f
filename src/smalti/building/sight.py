"""What the registration sees of frames: the part of each that shows the scene."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.frames.gray import in_gray
from smalti.frames.mask import read_mask
from smalti.frames.source import FrameSource
from smalti.frames.visibility import FrameMasks
from smalti.registration.dense import Prepared, prepare

SAMPLES = 32
USUALLY_SHOWN = 0.9
"""Of the sample: what fewer frames show does not count where the field of view changes."""

MOST_PREPARED = 24
"""Frames prepared for dense registration that stay in memory."""


class Sight:
    """Tells of every frame where it shows the scene. What that takes is learned when it is first needed."""

    def __init__(self, source: FrameSource, choice: str) -> None:
        """`choice` is auto, none or the path of a mask."""
        self._source = source
        self._choice = choice
        self._prepared: OrderedDict[int, Prepared] = OrderedDict()

    @cached_property
    def field(self) -> NDArray[np.bool_] | None:
        """Where frames show the scene (h, w), by what they have in common; None for everywhere."""
        if self._masks is None:
            return None
        field = self._masks.field
        if self._masks.disc_changes:
            # What is drawn of a mosaic should not show the rim of any frame, or hardly any.
            field = field & (np.mean([self._masks.of(image) for image in self._sample()], axis=0) > USUALLY_SHOWN)
        return None if field.all() else field

    def mask(self, image: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
        """Return where a frame (h, w, 3) shows the scene, None for everywhere."""
        return None if self._masks is None else self._masks.of(image)

    def look(self, number: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
        """Return a frame in gray (h, w), and where it shows the scene."""
        image = self._source.read(number)
        return in_gray(image), self.mask(image)

    def prepared(self, number: int) -> Prepared:
        """Return a frame as dense registration wants it; the latest used stay in memory."""
        if number not in self._prepared:
            self._prepared[number] = prepare(*self.look(number))
            if len(self._prepared) > MOST_PREPARED:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(number)
        return self._prepared[number]

    @cached_property
    def _masks(self) -> FrameMasks | None:
        source = self._source
        if self._choice == "none":
            return None
        field = None
        if self._choice != "auto":
            field = read_mask(Path(self._choice), source.width, source.height, scale=source.scale)
        return FrameMasks.of_sample(self._sample(), field)

    def _sample(self) -> Iterator[NDArray[np.uint8]]:
        """Yield some frames spread over the sequence."""
        frames = len(self._source)
        numbers = np.unique(np.linspace(0, frames - 1, min(SAMPLES, frames)).round().astype(int))
        return (image for _, image in self._source.read_many(numbers.tolist()))
