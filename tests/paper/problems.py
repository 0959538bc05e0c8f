"""Small linear problems of which the truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.linear_maps import AFFINE, Family, compose, invert
from smalti.paper.linear_adjustment import AffineLink, LinearAdjustment, fit_affine_link
from smalti.records import Pair, Transforms
from tests import worlds
from tests.worlds import OUTLINE, measured, random_walk, spread_points


class Problem(worlds.Problem):
    """One that the paper's adjustment solves."""

    family: Family

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


def raster(rng: np.random.Generator, frames: int, loops: int) -> Problem:
    """Make a camera that goes straight on and comes back beside its way, linked across at `loops` places."""
    plain = worlds.raster(rng, frames, loops)
    return Problem(AFFINE, plain.outline, plain.truth, plain.landmarks)
