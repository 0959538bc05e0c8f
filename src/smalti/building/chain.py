"""The chain: consecutive frames registered, bridges over failures, and pairs that check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.engine.links import map_in_pixels
from smalti.geometry.maps import apply_map
from smalti.geometry.outline import Outline
from smalti.project.entries import Role
from smalti.records import Answer, Expectation, Landmarks, Pair

BRIDGES = ((1, 1), (0, 2), (2, 1), (1, 2), (0, 3))
"""Pairs (n - a, n + b) that are tried where (n, n + 1) failed."""

SHORTEST_RUN = 3
"""Consecutive frames that hold together, from which on the camera was not lost."""

LONGEST_BRIDGED = 3
"""Frames of no use in a row up to which each is tried by itself; with more, the camera was lost for a while."""

CROSSINGS = ((0, 0), (2, 2), (0, 4), (4, 0), (4, 4))
"""Frames before the last one and after the first one by which two runs are joined over what lies between."""

STEADINESS = 0.05
"""In diagonals of a frame: how much the camera's motion changes from one frame to the next."""

CHECKED_SHARE = 1 / 6
FEWEST_CHECKS, MOST_CHECKS = 4, 24
"""Pairs (n, n + k) that are registered directly to learn how good the k links between them are."""

FARTHEST_CHECKED = 0.35
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


def register_chain(frames: int, outline: Outline, ask: Asking, attempts: int, longest_check: int = 2) -> Chain:
    """Register consecutive frames with at most `attempts` questions, and some that tell how good the links are.

    These are frames that are registered with one up to `longest_check` frames on. The longer, the more is seen of what
    neighbouring links get wrong alike, if the matcher can see that far.
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
    for pair, expected in _checks(frames, outline, links, tried, longest_check)[: max(spare, 0)]:
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
            motion = Expectation(map_in_pixels(landmarks, outline), STEADINESS * 2 * outline.outer_half_side)
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
    frames: int, outline: Outline, links: Sequence[Landmarks], tried: set[Pair], longest: int
) -> list[tuple[Pair, Expectation]]:
    """Return pairs spread over the sequence, all of whose frames between are registered, and what the links expect."""
    by_pair = {landmarks.pair: landmarks for landmarks in links}
    possible = [
        n
        for n in range(frames - 2)
        if Pair(n, n + 1) in by_pair and Pair(n + 1, n + 2) in by_pair and Pair(n, n + 2) not in tried
    ]
    wanted = int(np.clip(round(CHECKED_SHARE * frames), FEWEST_CHECKS, MOST_CHECKS))
    chosen = np.unique(np.linspace(0, len(possible) - 1, min(wanted, len(possible))).round().astype(int))
    return [_reach_on(possible[n], outline, by_pair, longest) for n in chosen]


def _reach_on(
    first: int, outline: Outline, by_pair: Mapping[Pair, Landmarks], longest: int
) -> tuple[Pair, Expectation]:
    """Return the farthest frame that still shows much of what a frame shows, and where the links put it."""
    sigma = STEADINESS * 2 * outline.outer_half_side
    reach = FARTHEST_CHECKED * min(outline.width, outline.height)
    first_from_last = map_in_pixels(by_pair[Pair(first, first + 1)], outline)
    last = first + 1
    while last - first < max(longest, 2) and Pair(last, last + 1) in by_pair:
        further = first_from_last @ map_in_pixels(by_pair[Pair(last, last + 1)], outline)
        moved = float(np.linalg.norm(apply_map(further, outline.centre[None])[0] - outline.centre))
        if last - first >= 2 and moved > reach:
            break
        first_from_last, last = further, last + 1
    return Pair(first, last), Expectation(first_from_last, sigma)
