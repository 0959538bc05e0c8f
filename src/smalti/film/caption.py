"""The words below the picture: which answer, how far off the mosaic is, and how many answers are given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from smalti.film.colours import ANSWER, CAPTION_BACKGROUND, QUIET_WORDS, RAIL, WORDS
from smalti.film.story import State, Story
from smalti.film.timeline import Moment

LETTERS = 0.46
"""Height of the letters, of that of their strip; where it is too narrow for the words they are smaller."""

MARGIN = 0.45
"""Beside the words, likewise."""

CHAIN = "chain only"
LONGEST_NUMBER = "0000 px off"


class Caption:
    """Writes the strip of words of `width` × `height` pixels for any moment, in letters of one size."""

    def __init__(self, story: Story, width: int, height: int) -> None:
        self._story, self._width, self._height = story, width, height
        steps = zip(story.states, story.states[1:], strict=False)
        self._words = [describe_step(story, before, after) for before, after in steps]
        size = LETTERS * height
        needed = max(map(_font(size).getlength, (CHAIN, *self._words))) + _font(size).getlength(LONGEST_NUMBER)
        room = width - 4 * MARGIN * height
        self._font = _font(size * min(1.0, room / needed))

    def write(self, moment: Moment) -> NDArray[np.uint8]:
        """Return the strip (h, w, 3) of a moment."""
        before, after = self._story.states[moment.before : moment.before + 2]
        strip = Image.new("RGB", (self._width, self._height), CAPTION_BACKGROUND)
        pen = ImageDraw.Draw(strip)
        middle, margin = 0.54 * self._height, MARGIN * self._height
        words = self._words[moment.before] if moment.has_begun else CHAIN
        pen.text((margin, middle), words, fill=WORDS, font=self._font, anchor="lm")
        if before.off_px is not None and after.off_px is not None:
            told = say_off(_between(before.off_px, after.off_px, moment.share))
            pen.text((self._width - margin, middle), told, fill=QUIET_WORDS, font=self._font, anchor="rm")
        thickness = max(2, self._height // 16)
        pen.rectangle((0, 0, self._width, thickness - 1), fill=RAIL)
        answers = _between(before.answers, after.answers, moment.share)
        if answers > 0:
            pen.rectangle((0, 0, self._width * answers / self._story.answers, thickness - 1), fill=ANSWER)
        return np.asarray(strip)


def describe_step(story: Story, before: State, after: State) -> str:
    """Return the words for a step."""
    if after.newest is None:
        count = f"{after.answers} answer{'' if after.answers == 1 else 's'}"
        return f"finished: {len(story.frames)} frames, {count}"
    i, j = story.frames[after.newest.i], story.frames[after.newest.j]
    first, last = before.answers + 1, after.answers
    which = f"answer {last}" if first == last else f"answers {first} to {last}"
    return f"{which} of {story.answers}: frames {i} and {j} overlap"


def say_off(off_px: float) -> str:
    """Return by how much the mosaic misses the loops, in words as short as it is large."""
    return f"{off_px:.0f} px off" if off_px >= 9.95 else f"{off_px:.1f} px off"


def _font(size: float) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow's wheels have FreeType"
    return font


def _between(before: float, after: float, share: float) -> float:
    return (1.0 - share) * before + share * after
