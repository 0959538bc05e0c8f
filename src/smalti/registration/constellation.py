"""Match two frames by where their points lie alone, as constellations are recognised: bright dots all look alike.

Two tiles of a microscope's stage differ by a shift. `find_shift` finds the shift at which most points of one frame
meet points of the other. It is accepted if so many would hardly ever meet by chance: the expected number of shifts, of
all that were tried, at which as many points of two unrelated frames meet, is below `MOST_BY_CHANCE`. This is the
a-contrario test of Desolneux, Moisan and Morel. So a few points are enough where points are rare or the place is known,
and many are needed where points are dense.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import gammainc

from smalti.records import Points

__all__ = ["Shift", "Stars", "find_shift"]

MEET_PX = 1.5
"""Points meet within so many pixels."""

MOST_BY_CHANCE = 1e-6
"""Expected number of shifts that look as good by chance, in all that is tried with a pair."""

BRIGHTEST = (30, 80, 200, 500)
"""The points of either frame that are looked at, brightest first: of few bright ones fewer meet by chance, and faint
ones may be noise."""

SAME_POINT_PX = 1.0
CANDIDATES = 12
"""Shifts that are looked at closely, for every number of points."""

GRID = 64
"""Cells a side of the table by which points in a rectangle are counted."""

ROUNDS = 4
AROUND_PX = 12.0
"""Distance from a shift up to which others tell how many points meet by chance: points often come in clusters."""

FARTHEST_OFF, LEAST_OFF_PX = 3.0, 0.3
"""Of the median distance by which points that meet miss each other, and pixels: those farther off met by chance."""

RIVAL = 0.5
"""A shift with this share of the best one's points, itself not by chance, makes the best one ambiguous: a pattern that
repeats itself fits in many places."""


@dataclass(frozen=True, slots=True, eq=False)
class Stars:
    """Points with their strength, the strongest first, none twice."""

    points: Points  # (n, 2), px
    strengths: NDArray[np.float64]  # (n,)
    sigmas: NDArray[np.float64]  # (n,), px: of each coordinate

    @classmethod
    def of(
        cls,
        points: Points,
        strengths: NDArray[np.float64],
        sigmas: NDArray[np.float64],
        apart_px: float = SAME_POINT_PX,
    ) -> Stars:
        """Take points in any order; of those less than `apart_px` apart only the strongest stays."""
        order = np.argsort(-strengths, kind="stable")
        at = points[order]
        kept = np.ones(len(at), dtype=bool)
        for stronger, weaker in sorted(cKDTree(at).query_pairs(apart_px)) if len(at) else ():
            if kept[stronger]:
                kept[weaker] = False
        chosen = order[kept]
        return cls(points[chosen], strengths[chosen], sigmas[chosen])

    def __len__(self) -> int:
        return len(self.points)

    def above(self, strength: float) -> Stars:
        """Return those of at least this strength."""
        count = int(np.searchsorted(-self.strengths, -strength, side="right"))
        return Stars(self.points[:count], self.strengths[:count], self.sigmas[:count])


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """A shift that makes points of two frames meet."""

    offset: Points  # (2,): points of i minus points of j
    points_i: Points  # (k, 2)
    points_j: Points  # (k, 2)
    sigmas: NDArray[np.float64]  # (k,), px: of a coordinate of the difference of two points that meet
    by_chance: float  # expected number of shifts that look as good by chance

    def __len__(self) -> int:
        return len(self.points_i)

    @property
    def sigma_px(self) -> float:
        """Standard deviation of a coordinate of the offset, from how the points scatter about it."""
        off = self.points_i - self.points_j - self.offset
        return float(np.sqrt(np.sum(off**2) / max(2 * len(self) - 2, 1) / len(self)))


def find_shift(
    in_i: Stars,
    in_j: Stars,
    width: float,
    height: float,
    near: tuple[Points, float] | None = None,
    share: float = 1.0,
) -> Shift | None:
    """Return the shift at which most points meet; None if chance or another shift explains as many.

    Of the points that meet, those farther off than the others are left out: they met by chance.

    Frames are width × height pixels. `near` is a shift (2,) and how far from it the right one is at most; without it
    frames may lie anywhere. `share` of what the frames have in common is where both can have points at all.
    """
    found: list[Shift] = []
    both = np.sort(np.concatenate([in_i.strengths, in_j.strengths]))[::-1]
    for brightest in BRIGHTEST:
        least = both[min(2 * brightest, len(both)) - 1] if len(both) else 0.0
        few_i, few_j = in_i.above(least), in_j.above(least)
        if len(few_i) and len(few_j):
            search = _Search(few_i, few_j, width, height, near, share)
            found += [shift for start in search.candidates() if (shift := search.refine(start)) is not None]
        if 2 * brightest >= len(both):
            break
    found.sort(key=lambda shift: (shift.by_chance, -len(shift)))
    if not found or found[0].by_chance > MOST_BY_CHANCE:
        return None
    best = found[0]
    for other in found[1:]:
        apart = np.abs(other.offset - best.offset).max() > 2 * MEET_PX
        if apart and other.by_chance <= MOST_BY_CHANCE and len(other) >= RIVAL * len(best):
            return None
    # Fainter points meet at the same shift: they tell it more precisely.
    offset = best.offset
    return _trim(max((shift for shift in found if np.abs(shift.offset - offset).max() <= MEET_PX), key=len))


def _trim(shift: Shift) -> Shift:
    """Leave out the points that lie much farther off than the others."""
    off = np.linalg.norm(shift.points_i - shift.points_j - np.median(shift.points_i - shift.points_j, axis=0), axis=1)
    kept = off <= max(FARTHEST_OFF * float(np.median(off)), LEAST_OFF_PX)
    points_i, points_j, sigmas = shift.points_i[kept], shift.points_j[kept], shift.sigmas[kept]
    offset = np.average(points_i - points_j, axis=0, weights=1.0 / sigmas**2)
    return Shift(offset, points_i, points_j, sigmas, shift.by_chance)


class _Search:
    """All shifts of the points of two frames."""

    def __init__(
        self,
        in_i: Stars,
        in_j: Stars,
        width: float,
        height: float,
        near: tuple[Points, float] | None,
        share: float,
    ) -> None:
        self._in_i, self._in_j = in_i, in_j
        self._size, self._share, self._near = np.array([width, height]), share, near
        self._tree = cKDTree(in_i.points)
        self._tables = [_count_table(stars.points, self._size) for stars in (in_i, in_j)]
        offsets = (in_i.points[:, None] - in_j.points[None]).reshape(-1, 2)
        tried = 4.0 * width * height
        if near is not None:
            offsets = offsets[np.sum((offsets - near[0]) ** 2, axis=1) <= near[1] ** 2]
            tried = min(tried, math.pi * (near[1] + MEET_PX) ** 2)
        self._offsets = offsets
        self._all = cKDTree(offsets) if len(offsets) else None
        # Shifts nearer to each other than this meet the same points.
        self._tests = len(BRIGHTEST) * max(tried / MEET_PX**2, 1.0)

    def candidates(self) -> Iterator[Points]:
        """Yield the shifts (2,) at which more pairs of points meet than by chance, the least likely ones first."""
        if not len(self._offsets):
            return
        low = self._offsets.min(axis=0)
        cell = ((self._offsets - low) // MEET_PX).astype(np.int64)
        shape = cell.max(axis=0) + 2
        counts = np.bincount(cell[:, 0] * shape[1] + cell[:, 1], minlength=int(shape.prod())).reshape(shape)
        counts[:-1] += counts[1:].copy()
        counts[:, :-1] += counts[:, 1:].copy()
        several = counts > 1
        at = low + MEET_PX * (np.argwhere(several) + 1.0)
        here: NDArray[np.float64] = counts[several].astype(np.float64)
        expected = self._usual(at, (2 * MEET_PX) ** 2)
        # The logarithm of a Poisson distribution's tail, nearly.
        unlikely = here * np.log(here / expected) - here + expected
        unlikely[here <= expected] = 0.0
        for n in np.argsort(-unlikely, kind="stable")[:CANDIDATES]:
            yield at[n]

    def refine(self, start: Points) -> Shift | None:
        """Return the shift near a start at which points meet one to one."""
        offset, within = start, 2 * MEET_PX
        for _ in range(ROUNDS):
            kept = self._meet(offset, within)
            if not len(kept):
                return None
            offset = np.median(self._in_i.points[kept[:, 0]] - self._in_j.points[kept[:, 1]], axis=0)
            within = MEET_PX
        kept = self._meet(offset, MEET_PX)
        if not len(kept) or (self._near is not None and np.hypot(*(offset - self._near[0])) > self._near[1] + MEET_PX):
            return None
        points_i, points_j = self._in_i.points[kept[:, 0]], self._in_j.points[kept[:, 1]]
        sigmas = np.hypot(self._in_i.sigmas[kept[:, 0]], self._in_j.sigmas[kept[:, 1]])
        return Shift(offset, points_i, points_j, sigmas, self._by_chance(offset, len(kept)))

    def _meet(self, offset: Points, within: float) -> NDArray[np.int64]:
        """Return the pairs (k, 2) of points that meet at a shift, each at most once."""
        found = self._tree.query(self._in_j.points + offset, distance_upper_bound=within)
        away, nearest = np.atleast_1d(found[0]), np.atleast_1d(found[1])
        j = np.flatnonzero(np.isfinite(away))
        order = np.lexsort((away[j], nearest[j]))
        _, first = np.unique(nearest[j][order], return_index=True)
        chosen = j[order][first]
        return np.column_stack([nearest[chosen], chosen]).astype(np.int64)

    def _by_chance(self, offset: Points, count: int) -> float:
        """Return the expected number of shifts at which so many points meet by chance."""
        disc = math.pi * MEET_PX**2
        usual = float(self._usual(offset[None], disc)[0])
        if self._all is not None:
            inner, outer = (len(self._all.query_ball_point(offset, radius)) for radius in (2 * MEET_PX, AROUND_PX))
            usual = max(usual, (outer - inner) * disc / (math.pi * (AROUND_PX**2 - (2 * MEET_PX) ** 2)))
        return float(self._tests * gammainc(count, usual))

    def _usual(self, offsets: Points, area: float) -> NDArray[np.float64]:
        """Return how many pairs (n,) have a shift in an area about the given ones, if points lie anywhere."""
        common = np.clip(self._size - np.abs(offsets), 1.0, None).prod(axis=1)
        in_i = _count_within(self._tables[0], self._size, offsets)
        in_j = _count_within(self._tables[1], self._size, -offsets)
        # Where a count is small, it tells little about how many there usually are.
        return np.asarray(np.maximum(in_i, 1.0) * np.maximum(in_j, 1.0) * area / (common * self._share))


def _count_table(points: Points, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many points lie left of and above the corners of a grid, (GRID + 1, GRID + 1)."""
    cells = np.clip((points + 0.5) * GRID / size, 0, GRID - 1).astype(np.int64)
    counts = np.bincount(cells[:, 0] * GRID + cells[:, 1], minlength=GRID**2).reshape(GRID, GRID)
    table = np.zeros((GRID + 1, GRID + 1))
    table[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    return table


def _count_within(table: NDArray[np.float64], size: NDArray[np.float64], offsets: Points) -> NDArray[np.float64]:
    """Return how many points lie in the part of the frame that another one at an offset covers (n,)."""
    low = np.floor(np.clip(offsets / size, 0.0, 1.0) * GRID).astype(np.int64)
    high = np.ceil(np.clip(1.0 + offsets / size, 0.0, 1.0) * GRID).astype(np.int64)
    (left, top), (right, bottom) = low.T, high.T
    return np.asarray(table[right, bottom] - table[left, bottom] - table[right, top] + table[left, top])
