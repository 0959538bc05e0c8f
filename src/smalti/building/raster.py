"""Rasters: tiles that a stage took line by line, found from the steps between consecutive tiles.

In a raster, consecutive tiles lie one step apart along a line, always the same way (`rows`) or there and back
(`snake`). Where a line ends, or beside blank tiles, no link follows. `propose_rasters` finds the length of the lines by
four signs: links that fail or lead across at equal distances, steps that turn round from line to line, blank tiles that
lie beside each other in neighbouring lines, and lines that are all full. `find_raster` then tries the best proposals on
a few pairs of neighbouring lines. Nothing else is asked if the steps are not those of a raster: a video's are short, a
flight's differ in length.

Tiles have *places*, which count missing ones too (`places_of`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.outline import Outline
from smalti.records import Points

Order = Literal["snake", "rows"]

FEWEST_STEPS = 4
"""Steps along lines that are needed to tell anything."""

SHORTEST_STEP, LONGEST_STEP = 0.5, 1.0
"""Of a step along a line or across, in widths or heights of a tile: tiles of a raster share at most half."""

EQUAL_WITHIN = 0.1
"""Of the shorter side: by how much steps along lines differ at most; a tenth is about what tiles of a raster share."""

ACROSS_WITHIN = 0.15
"""Of the shorter side: by how much steps across lines differ, backlash included."""

STRAIGHT = 0.4
"""Tangent of the largest angle between a step and the lines, or what is at right angles to them."""

LEAST_ALONG = 0.6
"""Share of all steps that lead along a line."""

MOST_MISSING = 1.25
"""Places per tile. If numbers in file names leave more out, they do not count tiles."""

# Probabilities of what two consecutive tiles with detail show, within a line and over its end.
_LINKED_WITHIN, _LINKED_OVER_END = 0.9, 0.02
_CROSSED_WITHIN, _CROSSED_OVER_END = 0.005, 0.5
_FAILED_WITHIN, _FAILED_OVER_END = 0.1, 0.95
_TURNED_WITHIN = 0.02

_BLANK_WEIGHT = 0.25  # blank tiles lie in patches: so much of their agreement is independent
_FULL_LINES, _FROM_START = 4.0, 2.0  # in favour of lines that are all full, and of a first line that is
_ENDS_TRIED = 8
"""For every length of a line, so many places of its end are looked at."""

LEAST_FAVOUR = 3.0
"""A raster is proposed if it is e³ times as likely as one long line."""

PROPOSALS = 4
PROBES, FEWEST_PROBES = 8, 2
"""Proposals that are tried, and pairs of neighbouring lines that each is tried on. A third must match and agree."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The places of the tiles with detail."""

    shown: Sequence[int]  # ascending, from 0
    count: int  # of all places, those of blank and missing tiles too


@dataclass(frozen=True, slots=True)
class Raster:
    """Lines of equal length; the first may begin with places that were left out."""

    length: int  # places of a line
    order: Order
    left_out: int = 0  # places of the first line before the first tile

    def cell(self, place: int) -> tuple[int, int]:
        """Return the line of a place, and where on the line it is."""
        line, along = divmod(place + self.left_out, self.length)
        return line, self.length - 1 - along if self.order == "snake" and line % 2 else along

    def place(self, line: int, along: int) -> int:
        """Return the place of a cell."""
        at = self.length - 1 - along if self.order == "snake" and line % 2 else along
        return line * self.length + at - self.left_out

    def across(self, place: int) -> int:
        """Return the place beside a place on the next line."""
        line, along = self.cell(place)
        return self.place(line + 1, along)

    def lines(self, places: int) -> int:
        """Return the number of lines that hold `places`."""
        return self.cell(places - 1)[0] + 1


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A raster that holds, with its steps in pixels of a tile."""

    raster: Raster
    along: Points  # (2,): from a tile to the next of an even line
    across: Points  # (2,): from a tile to the one beside it on the next line
    scatter_px: float  # of steps across


def places_of(labels: Sequence[str]) -> list[int]:
    """Return the place of every tile in the raster, from 0: by the numbers in file names if these count tiles."""
    numbers = [re.findall(r"\d+", label.rpartition(".")[0] or label) for label in labels]
    if all(numbers) and all(len(found[-1]) < 10 for found in numbers):
        counted = [int(found[-1]) for found in numbers]
        rising = all(one < following for one, following in pairwise(counted))
        if rising and counted[-1] - counted[0] < MOST_MISSING * len(counted):
            return [number - counted[0] for number in counted]
    return list(range(len(labels)))


def propose_rasters(
    places: Places, steps: Mapping[int, Points], failed: Collection[int], outline: Outline
) -> list[Raster]:
    """Return rasters that explain the steps, the most likely first; none if the tiles are no raster.

    `steps` (2,) lead from a place to the next, for linked tiles, in pixels; `failed` are the places whose tile does not
    match the next one though both have detail.
    """
    along = step_along(steps.values(), outline)
    if along is None:
        return []
    count = places.count
    kind = np.zeros(count, dtype=np.int64)  # of the step from a place: 1 or -1 along, 2 across
    for place, step in steps.items():
        kind[place] = 2 if _is_across(step, along, outline) else _sign(step, along)
    at_end = np.zeros(count)  # log likelihood ratio: the line ends after a place
    at_end[np.abs(kind) == 1] = np.log(_LINKED_OVER_END / _LINKED_WITHIN)
    at_end[kind == 2] = np.log(_CROSSED_OVER_END / _CROSSED_WITHIN)
    at_end[list(failed)] = np.log(_FAILED_OVER_END / _FAILED_WITHIN)
    detail = np.zeros(count, dtype=bool)
    detail[list(places.shown)] = True
    one_line = _favour_of_signs(np.where(np.abs(kind) == 1, kind, 0))
    scores: dict[Raster, float] = {}
    for length in range(2, count // 2 + 1):
        ends = np.bincount(np.arange(count) % length, at_end, length)
        likely = np.argsort(-ends, kind="stable")[:_ENDS_TRIED].tolist()
        snakes = [Raster(length, "snake", length - 1 - end) for end in {*likely, length - 1}]
        # Where the first row begins does not matter to which tiles lie beside each other: one proposal is enough.
        rows = [replace(snake, order="rows") for snake in snakes]
        for choice in (*([snake] for snake in snakes), rows):
            favours = {
                raster: ends[length - 1 - raster.left_out]
                + _favour(raster, kind, detail)
                + (0.0 if raster.left_out else _FROM_START if count % length else _FULL_LINES)
                - one_line
                for raster in choice
            }
            best = max(favours, key=lambda raster: (favours[raster], -raster.left_out))
            scores[best] = favours[best]
    ranked = sorted(scores, key=lambda raster: -scores[raster])
    return [raster for raster in ranked[:PROPOSALS] if scores[raster] > LEAST_FAVOUR]


def find_raster(
    places: Places,
    steps: Mapping[int, Points],
    failed: Collection[int],
    outline: Outline,
    step_between: Callable[[Sequence[tuple[int, int]]], list[Points | None]],
    probes: int,
) -> Found | None:
    """Return the raster of tiles, None if they are no raster. See `propose_rasters`.

    `step_between` matches pairs of places and returns the steps (2,) between them, None for those that do not match.
    It is asked about at most `probes` pairs.
    """
    along = step_along(steps.values(), outline)
    for raster in propose_rasters(places, steps, failed, outline):
        beside = pairs_across(raster, places.shown)
        chosen = np.unique(np.linspace(0, len(beside) - 1, min(PROBES, len(beside), probes)).round().astype(int))
        if along is None or len(chosen) < FEWEST_PROBES:
            continue
        probes -= len(chosen)
        found = np.array([step for step in step_between([beside[n] for n in chosen]) if step is not None])
        held = _agree_across(found, along, outline) if len(found) else found
        if len(held) >= max(FEWEST_PROBES, len(chosen) / 3):
            sign = _first_sign(raster, steps, along)
            scatter = float(np.sqrt(np.mean((held - held.mean(axis=0)) ** 2)))
            return Found(raster, sign * along, held.mean(axis=0), scatter)
    return None


def pairs_across(raster: Raster, shown: Collection[int]) -> list[tuple[int, int]]:
    """Return the pairs of places side by side on neighbouring lines, both with detail."""
    known = set(shown)
    # Consecutive places, where a snake turns, are links of the chain.
    return [(n, beside) for n in sorted(known) if (beside := raster.across(n)) in known and beside > n + 1]


def step_along(steps: Iterable[Points], outline: Outline) -> Points | None:
    """Return the step (2,) that most steps equal up to its sign; None if they are not those of a raster."""
    taken = np.array(list(islice(steps, 100_000))).reshape(-1, 2)
    if len(taken) < FEWEST_STEPS:
        return None
    within = EQUAL_WITHIN * min(outline.width, outline.height)
    candidates = taken[np.unique(np.linspace(0, len(taken) - 1, 100).round().astype(int))]
    best = np.zeros(0)
    for candidate in candidates:
        signs = np.where(taken @ candidate >= 0.0, 1.0, -1.0)
        equal = np.linalg.norm(signs[:, None] * taken - candidate, axis=1) < within
        if np.sum(equal) > len(best):
            best = signs[equal, None] * taken[equal]
    along = np.asarray(np.median(best, axis=0))
    if len(best) < max(FEWEST_STEPS, LEAST_ALONG * len(taken)) or not _is_step(along, outline):
        return None
    return along


def _is_step(step: Points, outline: Outline) -> bool:
    """Tell whether neighbours of a raster lie a step (2,) apart."""
    share = np.abs(step) / [outline.width, outline.height]
    return bool(SHORTEST_STEP <= share.max() < LONGEST_STEP and share.min() < SHORTEST_STEP)


def _sign(step: Points, along: Points) -> int:
    """Return 1 or -1 for a step along a line, which may be shorter than others at the line's end; 0 for another."""
    forth, beside = along @ step, abs(along[0] * step[1] - along[1] * step[0])
    return 0 if beside > STRAIGHT * abs(forth) else 1 if forth > 0 else -1


def _is_across(step: Points, along: Points, outline: Outline) -> bool:
    """Tell whether a step (2,) leads from a line to the next."""
    forth, beside = along @ step, abs(along[0] * step[1] - along[1] * step[0])
    return bool(abs(forth) < STRAIGHT * beside and _is_step(step, outline))


def _favour(raster: Raster, kind: NDArray[np.int64], detail: NDArray[np.bool_]) -> float:
    """Return the log likelihood of the signs of steps and of the blank tiles' places."""
    line, along = np.divmod(np.arange(len(kind)) + raster.left_out, raster.length)
    signs = np.where(np.abs(kind) == 1, kind, 0)
    if raster.order == "snake":
        signs = np.where(line % 2, -signs, signs)
        along = np.where(line % 2, raster.length - 1 - along, along)
    grid = np.full((line[-1] + 1, raster.length), -1)
    grid[line, along] = detail
    return _favour_of_signs(signs) + _favour_of_blanks(grid)


def _favour_of_signs(signs: NDArray[np.int64]) -> float:
    steps, excess = np.count_nonzero(signs), abs(int(signs.sum()))
    turned = (steps - excess) / 2
    return float(turned * np.log(_TURNED_WITHIN) + (steps - turned) * np.log1p(-_TURNED_WITHIN))


def _favour_of_blanks(grid: NDArray[np.int64]) -> float:
    """Return how much better blank cells (lines, length) of neighbouring lines agree than by chance."""
    upper, lower = grid[:-1].ravel(), grid[1:].ravel()
    both = (upper >= 0) & (lower >= 0)
    share = np.mean(grid[grid >= 0])
    by_chance = share**2 + (1.0 - share) ** 2
    pairs = int(np.sum(both))
    if not pairs or by_chance == 1.0:
        return 0.0
    agree = np.clip(np.sum(upper[both] == lower[both]) / pairs, 1e-3, 1.0 - 1e-3)
    gain = agree * np.log(agree / by_chance) + (1.0 - agree) * np.log((1.0 - agree) / (1.0 - by_chance))
    return float(_BLANK_WEIGHT * pairs * (gain if agree > by_chance else -gain))


def _agree_across(steps: Points, along: Points, outline: Outline) -> Points:
    """Return the most steps (n, 2) across lines that agree."""
    within = ACROSS_WITHIN * min(outline.width, outline.height)
    best = steps[:0]
    for candidate in steps:
        if _is_across(candidate, along, outline):
            equal = steps[np.linalg.norm(steps - candidate, axis=1) < within]
            best = equal if len(equal) > len(best) else best
    return best


def _first_sign(raster: Raster, steps: Mapping[int, Points], along: Points) -> int:
    """Return 1 if steps of the even lines lead along, -1 if they lead back."""
    total = 0
    for place, step in steps.items():
        turned = -1 if raster.order == "snake" and raster.cell(place)[0] % 2 else 1
        total += turned * _sign(step, along)
    return 1 if total >= 0 else -1
