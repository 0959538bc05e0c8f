"""Small linear problems of which the truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.linear_maps import AFFINE, Family, apply, compose, invert
from smalti.geometry.outline import Outline
from smalti.paper.linear_adjustment import AffineLink, LinearAdjustment, fit_affine_link
from smalti.records import Landmarks, Pair, Points, Transforms
from tests.worlds import OUTLINE, random_walk, spread_points


@dataclass(frozen=True, eq=False)
class Problem:
    """Frames whose place is known, and landmarks between some of them."""

    family: Family
    outline: Outline
    truth: Transforms  # (N, 2, 3), in the coordinates of frame 0
    landmarks: tuple[Landmarks, ...]

    @property
    def frames(self) -> int:
        return len(self.truth)

    @cached_property
    def links(self) -> list[AffineLink]:
        return [fit_affine_link(landmarks, self.family) for landmarks in self.landmarks]

    def adjustment(self, reference: int = 0, links: Iterable[AffineLink] | None = None) -> LinearAdjustment:
        return LinearAdjustment(
            self.frames,
            self.outline,
            self.links if links is None else links,
            family=self.family,
            reference=reference,
        )

    def truth_about(self, reference: int) -> Transforms:
        return compose(invert(self.truth[reference]), self.truth)


def random_problem(
    rng: np.random.Generator,
    *,
    frames: int = 6,
    loops: int = 3,
    family: Family = AFFINE,
    noise: float = 1.0,
    exact: bool = False,
    unequal: bool = True,
) -> Problem:
    """Make a moving camera's frames, linked in a chain with some loops.

    `noise` is the standard deviation of the landmarks, in pixels; about it, if `unequal`, every pair and in
    every second pair every landmark has its own. An `exact` problem knows of the noise but has none.
    """
    truth = random_walk(rng, frames, family)
    pairs = [Pair(n, n + 1) for n in range(frames - 1)]
    apart = [Pair(i, j) for i in range(frames) for j in range(i + 2, frames)]
    pairs += [apart[at] for at in rng.choice(len(apart), size=loops, replace=False)]
    landmarks = []
    for at, pair in enumerate(pairs):
        count = int(rng.integers(4, 9))
        points_j = spread_points(rng, count)
        sigma: float | NDArray[np.float64] = noise
        if unequal:
            sigma = noise * (rng.uniform(0.3, 2.0, size=count) if at % 2 else float(rng.uniform(0.3, 2.0)))
        landmarks.append(measured(rng, truth, pair, points_j, sigma, exact=exact))
    return Problem(family, OUTLINE, truth, tuple(landmarks))


def raster(rng: np.random.Generator, frames: int, loops: int, noise: float = 1.0) -> Problem:
    """Make a camera that goes straight on and comes back beside its way, linked across at `loops` places."""
    step = OUTLINE.width / 3
    n = np.arange(frames)
    truth = np.tile(np.eye(2, 3), (frames, 1, 1))
    truth[:, 0, 2] = np.minimum(n, frames - 1 - n) * step
    truth[:, 1, 2] = np.where(n < frames / 2, 0.0, OUTLINE.height / 3)
    pairs = [Pair(i, i + 1) for i in range(frames - 1)]
    across = np.linspace(0, frames // 2 - 2, loops).astype(int)
    pairs += [Pair(int(i), int(frames - 1 - i)) for i in across]
    corners_and_middle = np.vstack([OUTLINE.corners, OUTLINE.centre])
    landmarks = [measured(rng, truth, pair, corners_and_middle, noise) for pair in pairs]
    return Problem(AFFINE, OUTLINE, truth, tuple(landmarks))


def measured(
    rng: np.random.Generator,
    truth: Transforms,
    pair: Pair,
    points_j: Points,
    sigma: float | NDArray[np.float64],
    *,
    exact: bool = False,
) -> Landmarks:
    """Return landmarks of a pair: exact in j, with noise in i."""
    i_from_j = compose(invert(truth[pair.i]), truth[pair.j])
    noise = np.broadcast_to(np.asarray(sigma), (len(points_j),))[:, None] * rng.normal(size=points_j.shape)
    points_i = apply(i_from_j, points_j) + (0.0 if exact else noise)
    return Landmarks(pair, points_i, points_j, sigma)
