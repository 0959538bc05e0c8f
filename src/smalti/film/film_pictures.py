"""One picture of the film: the mosaic, the camera's path, the newest answers, and the caption."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from smalti.compiled import compiled
from smalti.film.film_frames import FilmFrames, paint
from smalti.film.film_story import State, Story
from smalti.film.film_timeline import Moment, Timeline, View
from smalti.geometry.homographies import project_points
from smalti.records import Homographies, Pair, Points

PATH_STRENGTH = 0.45

BACKGROUND = (22, 25, 30)
CAPTION_BACKGROUND = (14, 16, 20)
RAIL = (38, 43, 51)
WORDS = (226, 229, 233)
QUIET_WORDS = (139, 147, 158)
PATH = (240, 242, 245)
ANSWER = (255, 184, 77)

AFTERGLOW_SECONDS = 0.5
"""The outlines of an answer's frames fade after its step, so that they do not flicker when many answers follow."""

LINES = 1 / 480
"""Thickness of outlines, as a share of the longer side."""


class Drawing:
    """Draws any moment of a film. It stores what all moments have in common."""

    def __init__(self, story: Story, timeline: Timeline, view: View, film_frames: FilmFrames) -> None:
        self._story, self._timeline, self._view, self._film_frames = story, timeline, view, film_frames
        self._caption = Caption(story, view.width, view.caption_height)

    def draw(self, moment: Moment) -> NDArray[np.uint8]:
        """Return the picture (h, w, 3) of a moment, with the caption."""
        view, lens, indices = self._view, self._story.lens, self._film_frames.indices
        before, after = self._story.states[moment.before : moment.before + 2]
        maps, strengths = blend_states(before, after, moment.share)
        # In the last step the view moves closer and the camera's path fades, so that only the mosaic remains.
        closeness = moment.share if moment.before == len(self._story.states) - 2 else 0.0
        canvas_from_frame = view.canvas_from_mosaic(closeness) @ maps
        picture = paint(
            self._film_frames, canvas_from_frame[indices], strengths[indices], (view.width, view.height), BACKGROUND
        )
        centres = project_points(canvas_from_frame[strengths > 0], lens.outline.centre[None])[:, 0]
        lay_lines(picture, [(centres, PATH_STRENGTH * (1.0 - closeness))], PATH, thickness=1, is_closed=False)
        outlines = []
        for pair, strength in self._outlined(moment):
            ends = [end for end in (pair.i, pair.j) if strengths[end] > 0]
            outlines += [(rim, strength) for rim in project_points(canvas_from_frame[ends], lens.rim)]
        thickness = max(1, round(LINES * max(view.width, view.height)))
        lay_lines(picture, outlines, ANSWER, thickness=thickness, is_closed=True)
        return np.concatenate([picture, self._caption.write(moment)])

    def _outlined(self, moment: Moment) -> list[tuple[Pair, float]]:
        """Return the pairs of the answers to outline, newest last, and the strength of each outline."""
        outlined = []
        for step in range(moment.before + 1 if moment.has_begun else 0):
            newest = self._story.states[step + 1].newest
            age_seconds = max(moment.seconds - float(self._timeline.ends[step]), 0.0)
            if newest is not None and age_seconds < AFTERGLOW_SECONDS:
                outlined.append((newest, 1.0 - age_seconds / AFTERGLOW_SECONDS))
        return outlined


def blend_states(before: State, after: State, share: float) -> tuple[Homographies, NDArray[np.float64]]:
    """Return the maps (n, 3, 3) between two states, and the strength (n,) of each frame.

    Entries are interpolated linearly: frames that fit together before and after fit all the way. A new frame does not
    move.
    """
    shares = np.where(before.is_placed, share, 1.0)[:, None, None]
    maps = (1.0 - shares) * before.maps + shares * after.maps
    return maps, np.where(before.is_placed, 1.0, share * after.is_placed)


LETTERS = 0.46
"""Height of the letters, as a share of the caption's height. They are smaller if the caption is too narrow."""

MARGIN = 0.45
"""Margin beside the words, as a share of the caption's height."""

CHAIN = "chain only"
LONGEST_NUMBER = "0000 px error"


class Caption:
    """Writes the caption, `width` × `height` pixels, for any moment, in letters of one size."""

    def __init__(self, story: Story, width: int, height: int) -> None:
        self._story, self._width, self._height = story, width, height
        steps = zip(story.states, story.states[1:], strict=False)
        self._words = [describe_step(story, before, after) for before, after in steps]
        size = LETTERS * height
        needed = max(map(_font(size).getlength, (CHAIN, *self._words))) + _font(size).getlength(LONGEST_NUMBER)
        room = width - 4 * MARGIN * height
        self._font = _font(size * min(1.0, room / needed))

    def write(self, moment: Moment) -> NDArray[np.uint8]:
        """Return the caption (h, w, 3) of a moment."""
        before, after = self._story.states[moment.before : moment.before + 2]
        strip = Image.new("RGB", (self._width, self._height), CAPTION_BACKGROUND)
        pen = ImageDraw.Draw(strip)
        middle, margin = 0.54 * self._height, MARGIN * self._height
        words = self._words[moment.before] if moment.has_begun else CHAIN
        pen.text((margin, middle), words, fill=WORDS, font=self._font, anchor="lm")
        if before.loop_error_px is not None and after.loop_error_px is not None:
            error = describe_error(_between(before.loop_error_px, after.loop_error_px, moment.share))
            pen.text((self._width - margin, middle), error, fill=QUIET_WORDS, font=self._font, anchor="rm")
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


def describe_error(loop_error_px: float) -> str:
    """Return the RMS error at the loops in words. Larger errors have fewer digits."""
    return f"{loop_error_px:.0f} px error" if loop_error_px >= 9.95 else f"{loop_error_px:.1f} px error"


def _font(size: float) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow's wheels have FreeType"
    return font


def _between(before: float, after: float, share: float) -> float:
    return (1.0 - share) * before + share * after


_FRACTION_BITS = 4
_FARTHEST = 1e5
"""Lines are drawn to 1/16 pixel, and no further out than this."""


def lay_lines(
    picture: NDArray[np.uint8],
    lines: Sequence[tuple[Points, float]],
    colour: tuple[int, int, int],
    *,
    thickness: int,
    is_closed: bool,
) -> None:
    """Draw lines (n, 2) of one colour into a picture (h, w, 3), each with its strength from 0 to 1."""
    strengths = np.zeros(picture.shape[:2], dtype=np.uint8)
    for points, strength in lines:
        fixed = np.round(np.clip(points, -_FARTHEST, _FARTHEST) * 2**_FRACTION_BITS).astype(np.int32)
        cv2.polylines(strengths, [fixed], is_closed, round(255 * strength), thickness, cv2.LINE_AA, _FRACTION_BITS)
    _mix_in(picture, strengths, np.array(colour, dtype=np.float32))


@compiled
def _mix_in(picture: NDArray[np.uint8], strengths: NDArray[np.uint8], colour: NDArray[np.float32]) -> None:
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            if strengths[row, column] > 0:
                share = np.float32(strengths[row, column]) / np.float32(255.0)
                for channel in range(3):
                    old = np.float32(picture[row, column, channel])
                    picture[row, column, channel] = np.uint8(old + share * (colour[channel] - old) + np.float32(0.5))
