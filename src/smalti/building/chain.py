"""The chain: consecutive frames registered, bridges over failures, and pairs that check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.engine.links import map_in_pixels
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.project.entries import Role
from smalti.records import Answer, Expectation, Homographies, Landmarks, Pair

BRIDGES = ((1, 1), (0, 2), (2, 1), (1, 2), (0, 3))
"""Pairs (n - a, n + b) that are tried where (n, n + 1) failed."""

SHORTEST_RUN = 3
"""Consecutive frames that hold together, from which on the camera was not lost."""

LONGEST_BRIDGED = 3
"""Frames of no use in a row up to which each is tried by itself; with more, the camera was lost for a while."""

CROSSINGS = ((0, 0), (2, 2), (0, 4), (4, 0), (4, 4))
"""Frames before the last one and after the first one by which two runs are joined over what lies between."""

SPEED_TOLERANCE = 0.05
"""In diagonals of a frame: how much the camera's motion changes from one frame to the next."""

CHECKED_SHARE = 1 / 6
FEWEST_CHECKS, MOST_CHECKS = 4, 24
"""Pairs (n, n + 2) that are registered directly to learn how good the two links between them are."""

SHORTEST_TIE = 8
"""Frames on: over fewer, links from frame to frame are hardly worse."""

FARTHEST_TIED = 0.5
"""In shorter sides of a frame: how far the camera may have moved meanwhile."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """What joins the frames before the first question is asked."""

    links: tuple[Landmarks, ...]
    bridges: tuple[Pair, ...]  # those of the links that lead over a failure


class Asking(Protocol):
    """Asks about a pair, in a role, with what is expected of it."""

    def __call__(self, pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
        """Return the answer."""
        ...


def register_chain(frames: int, outline: Outline, ask: Asking, attempts: int, longest_tie: int = 0) -> Chain:
    """Register consecutive frames with at most `attempts` questions, and some that tell how good the links are.

    Frames up to `longest_tie` on are registered directly as well, if the matcher can see that far: a link over many
    frames errs hardly more than one from frame to frame, so that a chain tied by such links drifts far less.
    """
    links = _follow(frames, outline, ask)
    spare = attempts - (frames - 1)
    bridges: list[Pair] = []
    tried: set[Pair] = set()
    part = _parts(frames, links)
    for ways in (*_crossings(frames, links), *(_bridges(first, frames) for first in _short_gaps(frames, links))):
        for pair in ways:
            if spare <= 0 or pair in tried or part[pair.i] == part[pair.j]:
                continue
            spare -= 1
            tried.add(pair)
            answer = ask(pair, Role.BRIDGE)
            if answer.landmarks is not None:
                links.append(answer.landmarks)
                bridges.append(pair)
                part[part == part[pair.j]] = part[pair.i]
                break
    further = [*_checks(frames, outline, links, tried), *_ties(frames, outline, links, longest_tie)]
    for pair, expected in further[: max(spare, 0)]:
        answer = ask(pair, Role.CHECK, expected)
        if answer.landmarks is not None:
            links.append(answer.landmarks)
    return Chain(tuple(links), tuple(bridges))


def _follow(frames: int, outline: Outline, ask: Asking) -> list[Landmarks]:
    """Register consecutive frames; a camera is expected to go on as it went."""
    links = []
    motion: Expectation | None = None
    for n in range(frames - 1):
        landmarks = ask(Pair(n, n + 1), Role.CHAIN, motion).landmarks
        motion = None
        if landmarks is not None:
            links.append(landmarks)
            motion = _about(map_in_pixels(landmarks, outline), outline)
    return links


def _parts(frames: int, links: Sequence[Landmarks]) -> NDArray[np.int64]:
    """Return the part of every frame (N,)."""
    part = np.arange(frames)
    for landmarks in links:
        part[part == part[landmarks.pair.j]] = part[landmarks.pair.i]
    return part


def _gaps(frames: int, links: Sequence[Landmarks]) -> list[int]:
    """Return the frames n such that joining each to n + 1, and nothing less, would connect all frames."""
    part = _parts(frames, links)
    gaps = []
    for n in range(frames - 1):
        if part[n] != part[n + 1]:
            gaps.append(n)
            part[part == part[n + 1]] = part[n]
    return gaps


def _lost(frames: int, links: Sequence[Landmarks]) -> list[tuple[range, range]]:
    """Return the runs before and after every stretch in which the camera was lost."""
    have = {landmarks.pair for landmarks in links}
    breaks = [n + 1 for n in range(frames - 1) if Pair(n, n + 1) not in have]
    runs = [range(*ends) for ends in pairwise([0, *breaks, frames])]
    held = [run for run in runs if len(run) >= SHORTEST_RUN]
    return [(before, after) for before, after in pairwise(held) if after.start - before.stop > LONGEST_BRIDGED]


def _crossings(frames: int, links: Sequence[Landmarks]) -> Iterator[list[Pair]]:
    """Yield the pairs by which each two runs may be joined over a stretch in which the camera was lost."""
    for before, after in _lost(frames, links):
        yield [
            Pair(before[-1] - back, after[0] + on) for back, on in CROSSINGS if back < len(before) and on < len(after)
        ]


def _short_gaps(frames: int, links: Sequence[Landmarks]) -> list[int]:
    """Return the gaps but those beside frames that show nothing for a while."""
    lost = {n for before, after in _lost(frames, links) for n in range(before[-1], after.start)}
    return [n for n in _gaps(frames, links) if n not in lost]


def _bridges(first: int, frames: int) -> Iterator[Pair]:
    for before, after in BRIDGES:
        if first - before >= 0 and first + after < frames:
            yield Pair(first - before, first + after)


def _checks(
    frames: int, outline: Outline, links: Sequence[Landmarks], tried: set[Pair]
) -> list[tuple[Pair, Expectation]]:
    """Return pairs spread over the sequence, whose frames between are registered, and what the links expect."""
    by_pair = {landmarks.pair: landmarks for landmarks in links}
    possible = [
        n
        for n in range(frames - 2)
        if Pair(n, n + 1) in by_pair and Pair(n + 1, n + 2) in by_pair and Pair(n, n + 2) not in tried
    ]
    wanted = int(np.clip(round(CHECKED_SHARE * frames), FEWEST_CHECKS, MOST_CHECKS))
    chosen = np.unique(np.linspace(0, len(possible) - 1, min(wanted, len(possible))).round().astype(int))
    found = []
    for first in (possible[n] for n in chosen):
        there, on = (map_in_pixels(by_pair[Pair(n, n + 1)], outline) for n in (first, first + 1))
        found.append((Pair(first, first + 2), _about(there @ on, outline)))
    return found


def _ties(frames: int, outline: Outline, links: Sequence[Landmarks], longest: int) -> list[tuple[Pair, Expectation]]:
    """Return pairs over ever longer stretches, twice as long and half as many each time, and what the links expect.

    Ties of the same length overlap by half, so that two frames near each other always have a short way of ties.
    """
    if longest < SHORTEST_TIE:
        return []
    steps = {
        landmarks.pair.i: map_in_pixels(landmarks, outline)
        for landmarks in links
        if landmarks.pair.j == landmarks.pair.i + 1
    }
    found = []
    for first in range(0, frames, SHORTEST_TIE // 2):
        span = SHORTEST_TIE
        for last, first_from_last in _in_reach(first, outline, steps, longest):
            if last - first == span and first % (span // 2) == 0:
                found.append((Pair(first, last), _about(first_from_last, outline)))
                span *= 2
    return found


def _in_reach(
    first: int, outline: Outline, steps: Mapping[int, Homographies], longest: int
) -> Iterator[tuple[int, Homographies]]:
    """Yield the frames on that still show much of what a frame shows, and where the links put them."""
    reach = FARTHEST_TIED * min(outline.width, outline.height)
    first_from_last = np.eye(3)
    for last in range(first, first + longest):
        if last not in steps:
            return
        first_from_last = first_from_last @ steps[last]
        if np.linalg.norm(apply_map(first_from_last, outline.centre[None])[0] - outline.centre) > reach:
            return
        yield last + 1, first_from_last


def _about(i_from_j: Homographies, outline: Outline) -> Expectation:
    return Expectation(i_from_j, SPEED_TOLERANCE * 2 * outline.outer_half_side)
