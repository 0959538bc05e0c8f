"""The chain: consecutive frames registered, bridges over failures, and pairs that check it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smalti.agents.agent import PREFETCHED
from smalti.building.raster import Found, Places, find_raster, pairs_across
from smalti.building.source_questions import usable
from smalti.engine.links import map_in_pixels
from smalti.errors import LandmarkError
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.project.entries import Role
from smalti.records import Answer, Expectation, Homographies, Landmarks, Pair, Points

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

PROBED_SHARE, FEWEST_PROBED = 1 / 4, 8
"""Share of the frames, and a number of pairs: at most so many are asked to find out whether the frames are a raster."""

STAGE_TOLERANCE = 0.02
"""In shorter sides of a tile: by how much the steps of a stage differ, at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The links between frames before the first question."""

    links: tuple[Landmarks, ...]
    bridges: tuple[Pair, ...]  # the links that lead over a failure or, in a raster, to the next line
    raster: Found | None = None


class Asking(Protocol):
    """Asks about a pair, in a role, with an expected map."""

    def __call__(self, pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
        """Return the answer."""
        ...


class Prefetching(Protocol):
    """Begins with pairs that will be asked about soon, so that several are registered at once."""

    def __call__(self, pairs: Iterable[Pair], role: Role) -> None:
        """Take the pairs, and their role."""
        ...


def register_chain(
    frames: int,
    outline: Outline,
    ask: Asking,
    attempts: int,
    longest_baseline: int = 0,
    places: Places | None = None,
    prefetch: Prefetching = lambda pairs, role: None,
) -> Chain:
    """Register consecutive frames with at most `attempts` questions, and some pairs that check the links.

    Frames up to `longest_baseline` apart are registered directly too, if the matcher can do that. Such a long-baseline
    link errs hardly more than a link from frame to frame, so a chain with them drifts far less. `places` are those of
    the frames in the sequence. If the frames are the tiles of a raster, neighbouring lines are linked instead.
    """
    places = Places(range(frames), frames) if places is None else places
    spare = attempts - (frames - 1)
    firsts = {
        is_next: [n for n in range(frames - 1) if (places.shown[n + 1] == places.shown[n] + 1) is is_next]
        for is_next in (True, False)
    }
    links = _follow(firsts[True], outline, ask, prefetch, [])
    tiles = _Tiles(places, outline, ask, max(spare, 0))
    raster = tiles.find(links)
    if raster is not None:
        tiles.link_lines(raster)
        return Chain((*links, *tiles.links), tuple(landmarks.pair for landmarks in tiles.links), raster)
    links = _follow(firsts[False], outline, ask, prefetch, links) + tiles.links
    spare -= len(tiles.asked)
    bridges: list[Pair] = [landmarks.pair for landmarks in tiles.links]
    tried: set[Pair] = set(tiles.asked)
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
    further = further[: max(spare, 0)]
    for n, (pair, expected) in enumerate(further):
        prefetch([soon for soon, _ in further[n : n + PREFETCHED]], Role.CHECK)
        answer = usable(ask(pair, Role.CHECK, expected), partial(map_in_pixels, outline=outline))
        if answer.landmarks is not None:
            links.append(answer.landmarks)
    return Chain(tuple(links), tuple(bridges))


def _follow(
    firsts: Sequence[int], outline: Outline, ask: Asking, prefetch: Prefetching, links: Sequence[Landmarks]
) -> list[Landmarks]:
    """Register frames n with n + 1, and return all links in order. The camera is expected to continue its motion."""
    by_first = {landmarks.pair.i: landmarks for landmarks in links}
    for place, n in enumerate(firsts):
        prefetch([Pair(soon, soon + 1) for soon in firsts[place : place + PREFETCHED]], Role.CHAIN)
        motion = _about(map_in_pixels(by_first[n - 1], outline), outline) if n - 1 in by_first else None
        landmarks = ask(Pair(n, n + 1), Role.CHAIN, motion).landmarks
        # Landmarks that make no map link nothing. Only a person or another program can have given such.
        with suppress(LandmarkError):
            if landmarks is not None:
                map_in_pixels(landmarks, outline)
                by_first[n] = landmarks
    return [by_first[n] for n in sorted(by_first)]


class _Tiles:
    """Frames as tiles that may be a raster, and the questions that this takes."""

    def __init__(self, places: Places, outline: Outline, ask: Asking, spare: int) -> None:
        self._places = places
        self._frame_at = {place: n for n, place in enumerate(places.shown)}
        self._outline, self._ask, self._spare = outline, ask, spare
        self.asked: list[Pair] = []
        self.links: list[Landmarks] = []

    def find(self, links: Sequence[Landmarks]) -> Found | None:
        """Return the raster of the frames, by the links of those that follow each other; None if they are none."""
        steps = {self._places.shown[landmarks.pair.i]: self._step(landmarks) for landmarks in links}
        failed = [place for place in self._frame_at if place + 1 in self._frame_at and place not in steps]
        probes = min(self._spare, max(FEWEST_PROBED, round(PROBED_SHARE * len(self._frame_at))))
        return find_raster(self._places, steps, failed, self._outline, self._probe, probes)

    def link_lines(self, found: Found) -> None:
        """Ask about all tiles that lie side by side on neighbouring lines."""
        beside = [self._pair(places) for places in pairs_across(found.raster, self._places.shown)]
        left = [pair for pair in beside if pair not in set(self.asked)]
        spare = self._spare - len(self.asked)
        if len(left) > spare:
            left = [left[n] for n in np.linspace(0, len(left) - 1, max(spare, 0)).astype(int)]
        i_from_j = np.eye(3)
        i_from_j[:2, 2] = found.across
        sigma_px = max(2 * found.scatter_px, STAGE_TOLERANCE * min(self._outline.width, self._outline.height))
        self._ask_all(left, Expectation(i_from_j, sigma_px))

    def _probe(self, pairs: Sequence[tuple[int, int]]) -> list[Points | None]:
        answers = self._ask_all([self._pair(places) for places in pairs], None)
        return [None if landmarks is None else self._step(landmarks) for landmarks in answers]

    def _ask_all(self, pairs: Sequence[Pair], expected: Expectation | None) -> list[Landmarks | None]:
        link_of = partial(map_in_pixels, outline=self._outline)
        answers = [usable(self._ask(pair, Role.BRIDGE, expected), link_of).landmarks for pair in pairs]
        known = set(self.asked)
        self.links += [
            landmarks
            for pair, landmarks in zip(pairs, answers, strict=True)
            if landmarks is not None and pair not in known
        ]
        self.asked += [pair for pair in pairs if pair not in known]
        return answers

    def _pair(self, places: tuple[int, int]) -> Pair:
        return Pair(*sorted(self._frame_at[place] for place in places))

    def _step(self, landmarks: Landmarks) -> Points:
        """Return the centre (2,) of j in i, relative to that of i, px."""
        centre = self._outline.centre
        return np.asarray(apply_map(map_in_pixels(landmarks, self._outline), centre[None])[0] - centre)


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
