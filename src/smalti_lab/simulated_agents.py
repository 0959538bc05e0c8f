"""Agents that know the truth: an exact or noisy oracle, and a simulated person."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.linear_maps import apply, compose, invert
from smalti.geometry.outline import Outline
from smalti.records import Answer, Author, Landmarks, Pair, Points, Transforms

TOLERANCE = 1e-9
"""A control point that is on the border in exact arithmetic counts as inside."""


class OracleAgent:
    """Answers from the true maps, with normal noise of `sigma` pixels on the points of i.

    Two frames overlap if at least three control points of j that are not on one line fall inside i. The noise of a pair
    depends on (seed, i, j) alone: every question about it gets the same landmarks.
    """

    def __init__(
        self,
        mosaic_from_frame: Transforms,
        outline: Outline,
        control_points: Points,
        *,
        sigma: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.mosaic_from_frame = mosaic_from_frame
        self.outline = outline
        self.control_points = control_points
        self.sigma = sigma
        self.seed = seed

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with noisy landmarks, or no."""
        exact = self.exact_landmarks(pair)
        if exact is None:
            return Answer.no(pair)
        rng = np.random.default_rng([self.seed, pair.i, pair.j])
        noise: NDArray[np.float64] = rng.normal(0.0, self.sigma, size=exact.points_i.shape)
        return Answer.yes(Landmarks(pair, exact.points_i + noise, exact.points_j, self.sigma))

    def exact_landmarks(self, pair: Pair) -> Landmarks | None:
        """Return the control points that both frames show, without noise, or None if the frames do not overlap."""
        maps = self.mosaic_from_frame
        i_from_j = compose(invert(maps[pair.i]), maps[pair.j])
        points_i = apply(i_from_j, self.control_points)
        inside = self.outline.contains(points_i, TOLERANCE)
        landmarks = Landmarks(pair, points_i[inside], self.control_points[inside], self.sigma)
        if not landmarks.determine_affine:
            return None
        return landmarks


PointsIn: TypeAlias = Callable[[int, int, Points], Points]
"""Takes i, j and points (n, 2) of frame j. Returns their positions in frame i."""

Field: TypeAlias = Callable[[int], NDArray[np.bool_]]
"""Takes the number of a frame. Returns which of its pixels (h, w) are valid."""

LANDMARKS = (5, 8)
"""The least and the largest number of points that a person clicks."""

CANDIDATES_A_SIDE = 24


class SimulatedPerson:
    """Answers from the truth, with normal noise of `sigma` pixels on the points of i.

    The answer is yes if i shows at least the fraction `least` of what j shows. With probability `unsure`, or if one of
    the frames is in `disturbed`, the answer is "cannot tell". All draws for a pair depend on (seed, i, j) alone.
    """

    def __init__(
        self,
        points_in: PointsIn,
        field: Field,
        disturbed: Collection[int] = (),
        *,
        sigma: float = 1.5,
        least: float = 0.15,
        unsure: float = 0.05,
        seed: int = 0,
    ) -> None:
        if not (sigma > 0 and 0 < least <= 1 and 0 <= unsure <= 1):
            raise UsageError(
                f"a person with sigma {sigma}, least {least} and unsure {unsure}: give a positive sigma, and fractions"
            )
        self._points_in = points_in
        self._field = field
        self._disturbed = frozenset(map(int, disturbed))
        self._sigma, self._least, self._unsure, self._seed = sigma, least, unsure, seed

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with a few landmarks, no, or unsure."""
        for frame in (pair.i, pair.j):
            if frame in self._disturbed:
                return Answer.unsure(pair, f"frame {frame} shows nothing", Author.PERSON)
        rng = np.random.default_rng([self._seed, pair.i, pair.j])
        if rng.random() < self._unsure:
            return Answer.unsure(pair, "the two frames are hard to compare", Author.PERSON)
        points_j = _spread_out(self._field(pair.j), rng)
        points_i = self._points_in(pair.i, pair.j, points_j)
        common = _shows(self._field(pair.i), points_i)
        if np.count_nonzero(common) < max(self._least * len(common), LANDMARKS[0]):
            return Answer.no(pair, "the two frames show different places", Author.PERSON)
        chosen = np.flatnonzero(common)[_select(points_j[common], int(rng.integers(LANDMARKS[0], LANDMARKS[1] + 1)))]
        noise = rng.normal(0.0, self._sigma, size=(len(chosen), 2))
        landmarks = Landmarks(pair, points_i[chosen] + noise, points_j[chosen], self._sigma)
        return Answer.yes(landmarks, author=Author.PERSON)


def _spread_out(field: NDArray[np.bool_], rng: np.random.Generator) -> Points:
    """Return points (n, 2) all over a field of view, one at random in every cell of a grid."""
    height, width = field.shape
    cells = np.stack(np.meshgrid(np.arange(CANDIDATES_A_SIDE), np.arange(CANDIDATES_A_SIDE)), axis=-1).reshape(-1, 2)
    points = (cells + rng.random(cells.shape)) / CANDIDATES_A_SIDE * [width, height] - 0.5
    return np.asarray(points[_shows(field, points)], np.float64)


def _shows(field: NDArray[np.bool_], points: Points) -> NDArray[np.bool_]:
    """Tell for each point (n, 2) whether it lies in the field of view."""
    height, width = field.shape
    columns, rows = np.rint(points).astype(np.int64).T
    within = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    shown: NDArray[np.bool_] = within & field[np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)]
    return shown


def _select(points: Points, count: int) -> NDArray[np.int64]:
    """Choose points far apart: the one farthest from the middle, then always the one farthest from those chosen."""
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    nearest = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < min(count, len(points)):
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)
