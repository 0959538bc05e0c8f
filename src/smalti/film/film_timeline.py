"""The times of the film's steps, and the part of the plane that it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.film.film_story import State, Story
from smalti.geometry.homographies import project_points

OPENING_SECONDS = 1.5
"""Time for the chain alone."""

FINISH_SECONDS = 1.2
"""Time from the last answer to the finished mosaic."""

HOLD_SECONDS = 2.0
"""Time for the finished mosaic."""

LEAST_SECONDS = 0.1
"""Shortest time of a step. A shorter one is not visible."""

LONGEST_SECONDS = 2.0
"""Longest time of a step. A longer one is slow."""

FEWEST_SECONDS = 6.0
"""Shortest film: about twice the time of its opening, its finish and its hold."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time between two states: `share` of the way, from 0 to 1, from state number `before` to the next one."""

    seconds: float  # since the beginning of the film
    before: int
    share: float
    has_begun: bool  # whether the first step has begun


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The times at which the steps from one state to the next begin and end."""

    begins: NDArray[np.float64]  # (states - 1,), seconds
    ends: NDArray[np.float64]

    @property
    def seconds(self) -> float:
        """The length of the film."""
        return float(self.ends[-1]) + HOLD_SECONDS

    def moment(self, seconds: float) -> Moment:
        """Return the state of the film at a time."""
        before = max(int(np.searchsorted(self.begins, seconds, side="right")) - 1, 0)
        share = (seconds - self.begins[before]) / (self.ends[before] - self.begins[before])
        return Moment(seconds, before, _ease(float(np.clip(share, 0.0, 1.0))), bool(seconds >= self.begins[0]))

    def moments(self, per_second: int) -> list[Moment]:
        """Return the moments of all pictures. The last one shows the finished mosaic."""
        return [self.moment(n / per_second) for n in range(round(self.seconds * per_second))]


def most_steps(seconds: float) -> int:
    """Return how many answers, or groups of answers, a film has time for. Half of it goes to steps that move much."""
    return max(1, int(_seconds_of_answers(seconds) / 2 / LEAST_SECONDS))


def plan_timeline(story: Story, seconds: float) -> Timeline:
    """Give every step its time. A film of few answers is shorter than `seconds`."""
    moves = np.array([movement_px(story, *pair) for pair in zip(story.states, story.states[1:], strict=False)])
    times = np.append(share_seconds(moves[:-1], _seconds_of_answers(seconds)), FINISH_SECONDS)
    ends = OPENING_SECONDS + np.cumsum(times)
    return Timeline(ends - times, ends)


def share_seconds(moves: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
    """Divide at most `seconds` in proportion to `moves`; no step gets less than the least or more than the longest."""
    times = np.full(len(moves), LONGEST_SECONDS)
    # Steps that move nothing share what the others leave.
    weights = moves + 1e-6 * max(1.0, float(moves.max(initial=0.0)))
    open_ = np.ones(len(moves), dtype=np.bool_)
    while open_.any():
        left = seconds - LONGEST_SECONDS * np.sum(~open_) - LEAST_SECONDS * open_.sum()
        shares = LEAST_SECONDS + max(left, 0.0) * weights / weights[open_].sum()
        too_long = open_ & (shares > LONGEST_SECONDS)
        if not too_long.any():
            times[open_] = shares[open_]
            break
        open_ &= ~too_long
    return times


def movement_px(story: Story, before: State, after: State) -> float:
    """Return the mean movement of the frame corners. A frame that is new moves by half of its side."""
    corners = story.lens.outline.corners
    both = before.is_placed & after.is_placed
    new = after.is_placed & ~before.is_placed
    moved = np.linalg.norm(
        project_points(after.maps[both], corners) - project_points(before.maps[both], corners), axis=2
    )
    return float((moved.mean(axis=1).sum() + story.lens.outline.unit * new.sum()) / after.is_placed.sum())


def _seconds_of_answers(seconds: float) -> float:
    return seconds - OPENING_SECONDS - FINISH_SECONDS - HOLD_SECONDS


def _ease(share: float) -> float:
    """Begin and end slowly."""
    return share * share * (3.0 - 2.0 * share)


MARGIN = 0.04
"""Margin on every side, as a share of the longer side of the visible part."""

FARTHEST = 1.0
"""The view extends at most this far beyond the finished mosaic, in its longer sides, however far the chain drifts."""

LEAST_RATIO = 9 / 16
"""Least ratio of the picture's shorter side to its longer side. A long mosaic has space beside it; the caption fits."""

CAPTION_SHARE = 0.055
LOWEST_CAPTION = 26
"""Height of the caption: as a share of the longer side, and at least in pixels."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A picture of `width` × `height` pixels with a caption below it. The height does not include the caption.

    It shows a box (left, top, right, bottom) of the mosaic. In the last step it moves closer to the finished mosaic.
    """

    width: int
    height: int
    caption_height: int
    opening: NDArray[np.float64]  # (4,)
    closing: NDArray[np.float64]  # (4,)

    @classmethod
    def of(cls, story: Story, size: int) -> View:
        """Return the view of all states, `size` pixels along its longer side with the caption. All sides are even."""
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
        """Return the map (3, 3) to pixels of the picture. A `closeness` of 1 shows only the finished mosaic."""
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
    rims = project_points(state.maps[state.is_placed], story.lens.rim).reshape(-1, 2)
    return np.concatenate([rims.min(axis=0), rims.max(axis=0)])


def _with_margin(box: NDArray[np.float64]) -> NDArray[np.float64]:
    margin = MARGIN * float((box[2:] - box[:2]).max())
    return box + margin * np.array([-1.0, -1.0, 1.0, 1.0])


def _even(length: float) -> int:
    return max(2, 2 * int(length / 2))
