"""The chain: consecutive frames registered, bridges over failures, guesses where parts fall apart, and its noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.innovation import Agreement
from smalti.adjustment.link import fit_link
from smalti.adjustment.refinement import refine
from smalti.belief import MEDIAN_CHI2
from smalti.geometry.outline import Outline
from smalti.project.entries import Role
from smalti.records import Answer, Landmarks, Pair

BRIDGES = ((1, 1), (0, 2), (2, 1), (1, 2), (0, 3))
"""Pairs (n - a, n + b) that are tried where (n, n + 1) failed."""

CHECKED_SHARE = 1 / 6
FEWEST_CHECKS, MOST_CHECKS = 4, 24
"""Triangles (n, n + 1, n + 2) that are closed to learn how good the links are."""

SMALLEST_NOISE, LARGEST_NOISE = 0.3, 100.0

GUESS_SIGMA = 2.0
"""In diagonals of a frame: how far a part may be from where the one before it ended."""

GUESS_REACH = 8.0
"""In frames: the guess speaks of points so far out, which says that a camera turns and zooms little between frames."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """What joins the frames before the first question is asked."""

    links: tuple[Landmarks, ...]
    guesses: tuple[Landmarks, ...]
    bridges: tuple[Pair, ...]  # those of the links that lead over a failure
    noise: float  # by how much the links are worse than their landmarks' σ says


def register_chain(frames: int, outline: Outline, ask: Callable[[Pair, Role], Answer], attempts: int) -> Chain:
    """Register consecutive frames with at most `attempts` questions, and learn how good the links are."""
    links = [
        answer.landmarks for n in range(frames - 1) if (answer := ask(Pair(n, n + 1), Role.CHAIN)).landmarks is not None
    ]
    spare = attempts - (frames - 1)
    bridges: list[Pair] = []
    tried: set[Pair] = set()
    for first in _gaps(frames, links):
        for pair in _bridges(first, frames):
            if spare <= 0 or pair in tried:
                continue
            spare -= 1
            tried.add(pair)
            answer = ask(pair, Role.BRIDGE)
            if answer.landmarks is not None:
                links.append(answer.landmarks)
                bridges.append(pair)
                break
    closed = []
    for pair in _triangles(frames, links, tried)[: max(spare, 0)]:
        answer = ask(pair, Role.CHECK)
        if answer.landmarks is not None:
            closed.append(answer.landmarks)
    noise = measured_noise(links, closed, outline)
    links += closed
    guesses = tuple(_guess(Pair(n, n + 1), outline) for n in _gaps(frames, links))
    return Chain(tuple(links), guesses, tuple(bridges), noise)


def measured_noise(links: Sequence[Landmarks], closed: Sequence[Landmarks], outline: Outline) -> float:
    """Return the noise of links in units of their landmarks' σ, from how well triangles (n, n + 1, n + 2) close.

    Perspective, relief and neighbouring landmarks that err alike make a link worse than its many landmarks suggest. The
    median does not see the few links that are wrong.
    """
    by_pair = {landmarks.pair: landmarks for landmarks in links}
    chi2 = []
    for across in closed:
        first = across.pair.i
        sides = [by_pair.get(Pair(first, first + 1)), by_pair.get(Pair(first + 1, first + 2))]
        known = [fit_link(_renumbered(side, first)) for side in sides if side is not None]
        if len(known) == 2:
            triangle = Adjustment(3, outline, known)
            chi2.append(Agreement(triangle, refine(triangle)).of_new(fit_link(_renumbered(across, first))))
    if not chi2:
        return 1.0
    return float(np.clip(np.sqrt(np.median(chi2) / MEDIAN_CHI2), SMALLEST_NOISE, LARGEST_NOISE))


def _renumbered(landmarks: Landmarks, first: int) -> Landmarks:
    return landmarks.of_pair(Pair(landmarks.pair.i - first, landmarks.pair.j - first))


def _gaps(frames: int, links: Sequence[Landmarks]) -> list[int]:
    """Return the frames n such that joining each to n + 1, and nothing less, would connect all frames."""
    part = np.arange(frames)
    for landmarks in links:
        part[part == part[landmarks.pair.j]] = part[landmarks.pair.i]
    gaps = []
    for n in range(frames - 1):
        if part[n] != part[n + 1]:
            gaps.append(n)
            part[part == part[n + 1]] = part[n]
    return gaps


def _bridges(first: int, frames: int) -> Iterator[Pair]:
    for before, after in BRIDGES:
        if first - before >= 0 and first + after < frames:
            yield Pair(first - before, first + after)


def _triangles(frames: int, links: Sequence[Landmarks], tried: set[Pair]) -> list[Pair]:
    """Return pairs (n, n + 2) spread over the sequence, both of whose sides are registered."""
    have = {landmarks.pair for landmarks in links}
    possible = [
        Pair(n, n + 2)
        for n in range(frames - 2)
        if Pair(n, n + 1) in have and Pair(n + 1, n + 2) in have and Pair(n, n + 2) not in tried
    ]
    wanted = int(np.clip(round(CHECKED_SHARE * frames), FEWEST_CHECKS, MOST_CHECKS))
    chosen = np.unique(np.linspace(0, len(possible) - 1, min(wanted, len(possible))).round().astype(int))
    return [possible[n] for n in chosen]


def _guess(pair: Pair, outline: Outline) -> Landmarks:
    """Return the guess that a part begins about where the one before it ended."""
    corners = outline.scaled(GUESS_REACH).corners
    return Landmarks(pair, corners, corners, GUESS_SIGMA * 2 * outline.outer_half_side)
