"""Which part of the plane the film shows, and how large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.film.story import State, Story
from smalti.geometry.homography import project

MARGIN = 0.04
"""Of the longer side of what is seen, on every side of it."""

FARTHEST = 1.0
"""In longer sides of the finished mosaic: so far beyond it goes the view, however far the chain strays."""

LEAST_RATIO = 9 / 16
"""Of the shorter side of the picture to the longer one: what is long has room beside it, and for the words."""

CAPTION_SHARE = 0.055
LOWEST_CAPTION = 26
"""Height of the strip for the words: of the longer side, and in pixels at least."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A picture of `width` × `height` pixels with a strip of words below it, which belongs to the height of neither.

    It shows a box (left, top, right, bottom) of the mosaic, and while the mosaic is finished it goes nearer to that.
    """

    width: int
    height: int
    caption_height: int
    opening: NDArray[np.float64]  # (4,)
    closing: NDArray[np.float64]  # (4,)

    @classmethod
    def of(cls, story: Story, size: int) -> View:
        """Return the view of all states, `size` pixels along its longer side with the words; all sides are even."""
        closing = _bounds(story, story.states[-1])
        farthest = FARTHEST * float((closing[2:] - closing[:2]).max())
        all_states = np.array([_bounds(story, state) for state in story.states])
        low = np.maximum(all_states[:, :2].min(axis=0), closing[:2] - farthest)
        high = np.minimum(all_states[:, 2:].max(axis=0), closing[2:] + farthest)
        opening, closing = (_with_margin(box) for box in (np.concatenate([low, high]), closing))
        caption = _even(max(LOWEST_CAPTION, CAPTION_SHARE * size))
        width, height = opening[2:] - opening[:2]
        width, height = max(width, LEAST_RATIO * height), max(height, LEAST_RATIO * width)
        scale = min(size / width, (size - caption) / height)
        return cls(_even(scale * width), _even(scale * height), caption, opening, closing)

    def canvas_from_mosaic(self, closeness: float = 0.0) -> NDArray[np.float64]:
        """Return the map (3, 3) to pixels of the picture; a `closeness` of 1 shows the finished mosaic alone."""
        box = (1.0 - closeness) * self.opening + closeness * self.closing
        left, top, right, bottom = box
        scale = min(self.width / (right - left), self.height / (bottom - top))
        x, y = (left + right) / 2, (top + bottom) / 2
        return np.array(
            [
                [scale, 0.0, (self.width - 1) / 2 - scale * x],
                [0.0, scale, (self.height - 1) / 2 - scale * y],
                [0.0, 0.0, 1.0],
            ]
        )


def _bounds(story: Story, state: State) -> NDArray[np.float64]:
    rims = project(state.maps[state.is_placed], story.lens.rim).reshape(-1, 2)
    return np.concatenate([rims.min(axis=0), rims.max(axis=0)])


def _with_margin(box: NDArray[np.float64]) -> NDArray[np.float64]:
    margin = MARGIN * float((box[2:] - box[:2]).max())
    return box + margin * np.array([-1.0, -1.0, 1.0, 1.0])


def _even(length: float) -> int:
    return max(2, 2 * int(length / 2))
