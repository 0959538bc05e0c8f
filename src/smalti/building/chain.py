"""The chain: consecutive frames registered, bridges over failures, and pairs that check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.building.source_questions import usable
from smalti.engine.links import map_in_pixels
from smalti.errors import LandmarkError
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.project.entries import Role
from smalti.records import Answer, Expectation, Homographies, Landmarks, Pair

BRIDGES = ((1, 1), (0, 2), (2, 1), (1, 2), (0, 3))
"""Pairs (n - a, n + b) to try if (n, n + 1) failed."""

SHORTEST_RUN = 3
"""With so many consecutive joined frames, the camera counts as not lost."""

LONGEST_BRIDGED = 3
"""Up to so many unusable frames in a row, each is tried by itself. With more, the camera was lost for a while."""

CROSSINGS = ((0, 0), (2, 2), (0, 4), (4, 0), (4, 4))
"""Offsets from the last frame of a run and from the first frame of the next run: pairs that may join the two."""

SPEED_TOLERANCE = 0.05
"""In diagonals of a frame: how much the camera's motion changes from one frame to the next."""

CHECKED_SHARE = 1 / 6
FEWEST_CHECKS, MOST_CHECKS = 4, 24
"""Pairs (n, n + 2) registered directly, to measure how good the two links between them are."""

SHORTEST_BASELINE = 8
"""Frames. Over shorter baselines, links from frame to frame are hardly worse."""

FARTHEST_BASELINE = 0.5
"""In shorter sides of a frame: the largest camera motion over a long-baseline link."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The links between frames before the first question."""

    links: tuple[Landmarks, ...]
    bridges: tuple[Pair, ...]  # the links that lead over a failure


class Asking(Protocol):
    """Asks about a pair, in a role, with an expected map."""

    def __call__(self, pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
        """Return the answer."""
        ...


def register_chain(frames: int, outline: Outline, ask: Asking, attempts: int, longest_baseline: int = 0) -> Chain:
    """Register consecutive frames with at most `attempts` questions, and some pairs that check the links.

    Frames up to `longest_baseline` apart are registered directly too, if the matcher can do that. Such a long-baseline
    link errs hardly more than a link from frame to frame, so a chain with them drifts far less.
    """
    links = _follow(frames, outline, ask)
    spare = attempts - (frames - 1)
    bridges: list[Pair] = []
    tried: set[Pair] = set()
    part = _parts(frames, links)
    for pairs_to_try in (
        *_crossings(frames, links),
        *(_bridges(first, frames) for first in _short_gaps(frames, links)),
    ):
        for pair in pairs_to_try:
            if spare <= 0 or pair in tried or part[pair.i] == part[pair.j]:
                continue
            spare -= 1
            tried.add(pair)
            answer = usable(ask(pair, Role.BRIDGE), partial(map_in_pixels, outline=outline))
            if answer.landmarks is not None:
                links.append(answer.landmarks)
                bridges.append(pair)
                part[part == part[pair.j]] = part[pair.i]
                break
    further = [*_checks(frames, outline, links, tried), *_long_baselines(frames, outline, links, longest_baseline)]
    for pair, expected in further[: max(spare, 0)]:
        answer = usable(ask(pair, Role.CHECK, expected), partial(map_in_pixels, outline=outline))
        if answer.landmarks is not None:
            links.append(answer.landmarks)
    return Chain(tuple(links), tuple(bridges))


def _follow(frames: int, outline: Outline, ask: Asking) -> list[Landmarks]:
    """Register consecutive frames. The camera is expected to continue its motion."""
    links = []
    motion: Expectation | None = None
    for n in range(frames - 1):
        landmarks = ask(Pair(n, n + 1), Role.CHAIN, motion).landmarks
        motion = None
        # Landmarks that make no map link nothing. Only a person or another program can have given such.
        with suppress(LandmarkError):
            if landmarks is not None:
                motion = _about(map_in_pixels(landmarks, outline), outline)
                links.append(landmarks)
    return links


def _parts(frames: int, links: Sequence[Landmarks]) -> NDArray[np.int64]:
    """Return the part of every frame (N,)."""
    part = np.arange(frames)
    for landmarks in links:
        part[part == part[landmarks.pair.j]] = part[landmarks.pair.i]
    return part


def _gaps(frames: int, links: Sequence[Landmarks]) -> list[int]:
    """Return the smallest list of frames n such that joining each n to n + 1 would connect all frames."""
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
    long_runs = [run for run in runs if len(run) >= SHORTEST_RUN]
    return [(before, after) for before, after in pairwise(long_runs) if after.start - before.stop > LONGEST_BRIDGED]


def _crossings(frames: int, links: Sequence[Landmarks]) -> Iterator[list[Pair]]:
    """Yield the pairs that may join two runs over a stretch in which the camera was lost."""
    for before, after in _lost(frames, links):
        yield [
            Pair(before[-1] - back, after[0] + on) for back, on in CROSSINGS if back < len(before) and on < len(after)
        ]


def _short_gaps(frames: int, links: Sequence[Landmarks]) -> list[int]:
    """Return the gaps, except those beside a series of unusable frames."""
    lost = {n for before, after in _lost(frames, links) for n in range(before[-1], after.start)}
    return [n for n in _gaps(frames, links) if n not in lost]


def _bridges(first: int, frames: int) -> Iterator[Pair]:
    for before, after in BRIDGES:
        if first - before >= 0 and first + after < frames:
            yield Pair(first - before, first + after)


def _checks(
    frames: int, outline: Outline, links: Sequence[Landmarks], tried: set[Pair]
) -> list[tuple[Pair, Expectation]]:
    """Return pairs spread over the sequence, with registered frames between, and the maps that the links predict."""
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


def _long_baselines(
    frames: int, outline: Outline, links: Sequence[Landmarks], longest: int
) -> list[tuple[Pair, Expectation]]:
    """Return long-baseline pairs, each time twice as long and half as many, and the maps that the links predict.

    Pairs of the same length overlap by half. So two frames near each other always have a short path of such links.
    """
    if longest < SHORTEST_BASELINE:
        return []
    steps = {
        landmarks.pair.i: map_in_pixels(landmarks, outline)
        for landmarks in links
        if landmarks.pair.j == landmarks.pair.i + 1
    }
    found = []
    for first in range(0, frames, SHORTEST_BASELINE // 2):
        span = SHORTEST_BASELINE
        for last, first_from_last in _in_reach(first, outline, steps, longest):
            if last - first == span and first % (span // 2) == 0:
                found.append((Pair(first, last), _about(first_from_last, outline)))
                span *= 2
    return found


def _in_reach(
    first: int, outline: Outline, steps: Mapping[int, Homographies], longest: int
) -> Iterator[tuple[int, Homographies]]:
    """Yield later frames that still show much of what a frame shows, and the maps that the links predict."""
    reach = FARTHEST_BASELINE * min(outline.width, outline.height)
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
