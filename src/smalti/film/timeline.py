"""When the film shows what: time for every step by what moves in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.film.story import State, Story
from smalti.geometry.homography import project

OPENING_SECONDS = 1.5
"""Of the chain alone."""

FINISH_SECONDS = 1.2
"""From the last answer to the finished mosaic."""

HOLD_SECONDS = 2.0
"""Of the finished mosaic."""

LEAST_SECONDS = 0.1
"""Of a step: less is not seen."""

LONGEST_SECONDS = 2.0
"""Of a step: more is slow."""

FEWEST_SECONDS = 6.0
"""Of a film: about as long again as its opening, its finish and its hold."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time between two states: `share` of the way, from 0 to 1, from number `before` to the next one."""

    seconds: float  # since the film's beginning
    before: int
    share: float
    has_begun: bool  # the first step


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The times at which the steps from one state to the next begin and end."""

    begins: NDArray[np.float64]  # (states - 1,), seconds
    ends: NDArray[np.float64]

    @property
    def seconds(self) -> float:
        """How long the film is."""
        return float(self.ends[-1]) + HOLD_SECONDS

    def moment(self, seconds: float) -> Moment:
        """Return where the film is at a time."""
        before = max(int(np.searchsorted(self.begins, seconds, side="right")) - 1, 0)
        share = (seconds - self.begins[before]) / (self.ends[before] - self.begins[before])
        return Moment(seconds, before, _ease(float(np.clip(share, 0.0, 1.0))), bool(seconds >= self.begins[0]))

    def moments(self, per_second: int) -> list[Moment]:
        """Return the moments of all pictures; the last one shows the finished mosaic."""
        return [self.moment(n / per_second) for n in range(round(self.seconds * per_second))]


def most_steps(seconds: float) -> int:
    """Return how many answers, or groups of them, a film has time for: half of it goes to those that move much."""
    return max(1, int(_seconds_of_answers(seconds) / 2 / LEAST_SECONDS))


def plan_timeline(story: Story, seconds: float) -> Timeline:
    """Give every step its time; a film of few answers is shorter than `seconds`."""
    moves = np.array([movement_px(story, *pair) for pair in zip(story.states, story.states[1:], strict=False)])
    times = np.append(share_seconds(moves[:-1], _seconds_of_answers(seconds)), FINISH_SECONDS)
    ends = OPENING_SECONDS + np.cumsum(times)
    return Timeline(ends - times, ends)


def share_seconds(moves: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
    """Share at most so many seconds by what moves, none getting less than the least nor more than the longest."""
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
    """Return by how much the corners of the frames move, in the mean; a frame that comes in moves by its half side."""
    corners = story.lens.outline.corners
    both = before.is_placed & after.is_placed
    new = after.is_placed & ~before.is_placed
    moved = np.linalg.norm(project(after.maps[both], corners) - project(before.maps[both], corners), axis=2)
    return float((moved.mean(axis=1).sum() + story.lens.outline.unit * new.sum()) / after.is_placed.sum())


def _seconds_of_answers(seconds: float) -> float:
    return seconds - OPENING_SECONDS - FINISH_SECONDS - HOLD_SECONDS


def _ease(share: float) -> float:
    """Begin and end slowly."""
    return share * share * (3.0 - 2.0 * share)
