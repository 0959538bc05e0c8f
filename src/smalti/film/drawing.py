"""A picture of the film: the mosaic at a moment, the camera's path, the newest answers, and words below."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.film.caption import Caption
from smalti.film.colours import ANSWER, BACKGROUND, PATH
from smalti.film.lines import lay_lines
from smalti.film.painting import paint
from smalti.film.stock import Stock
from smalti.film.story import State, Story
from smalti.film.timeline import Moment, Timeline
from smalti.film.view import View
from smalti.geometry.homography import project
from smalti.records import Homographies, Pair

PATH_STRENGTH = 0.45

AFTERGLOW_SECONDS = 0.5
"""The outlines of an answer's frames fade after its step: where many follow each other, they do not flicker."""

LINES = 1 / 480
"""Thickness of outlines, of the longer side."""


class Drawing:
    """Draws any moment of a film; it holds what is the same in all of them."""

    def __init__(self, story: Story, timeline: Timeline, view: View, stock: Stock) -> None:
        self._story, self._timeline, self._view, self._stock = story, timeline, view, stock
        self._caption = Caption(story, view.width, view.caption_height)

    def draw(self, moment: Moment) -> NDArray[np.uint8]:
        """Return the picture (h, w, 3) of a moment, words included."""
        view, lens, held = self._view, self._story.lens, self._stock.places
        before, after = self._story.states[moment.before : moment.before + 2]
        maps, strengths = blend_states(before, after, moment.share)
        # While the mosaic is finished the view goes nearer, and the path goes: the mosaic stands for itself.
        closeness = moment.share if moment.before == len(self._story.states) - 2 else 0.0
        canvas_from_frame = view.canvas_from_mosaic(closeness) @ maps
        picture = paint(self._stock, canvas_from_frame[held], strengths[held], (view.width, view.height), BACKGROUND)
        centres = project(canvas_from_frame[strengths > 0], lens.outline.centre[None])[:, 0]
        lay_lines(picture, [(centres, PATH_STRENGTH * (1.0 - closeness))], PATH, thickness=1, is_closed=False)
        outlines = []
        for pair, strength in self._glowing(moment):
            ends = [end for end in (pair.i, pair.j) if strengths[end] > 0]
            outlines += [(rim, strength) for rim in project(canvas_from_frame[ends], lens.rim)]
        thickness = max(1, round(LINES * max(view.width, view.height)))
        lay_lines(picture, outlines, ANSWER, thickness=thickness, is_closed=True)
        return np.concatenate([picture, self._caption.write(moment)])

    def _glowing(self, moment: Moment) -> list[tuple[Pair, float]]:
        """Return the pairs of the answers to be seen, the newest last, and how strongly."""
        seen = []
        for step in range(moment.before + 1 if moment.has_begun else 0):
            newest = self._story.states[step + 1].newest
            age_seconds = max(moment.seconds - float(self._timeline.ends[step]), 0.0)
            if newest is not None and age_seconds < AFTERGLOW_SECONDS:
                seen.append((newest, 1.0 - age_seconds / AFTERGLOW_SECONDS))
        return seen


def blend_states(before: State, after: State, share: float) -> tuple[Homographies, NDArray[np.float64]]:
    """Return the maps (n, 3, 3) between two states and how much of each frame is there (n,).

    Entries are mixed linearly: frames that fit together before and after do so all the way. A frame that comes in does
    not move.
    """
    shares = np.where(before.is_placed, share, 1.0)[:, None, None]
    maps = (1.0 - shares) * before.maps + shares * after.maps
    return maps, np.where(before.is_placed, 1.0, share * after.is_placed)
