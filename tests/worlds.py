"""Small synthetic problems of which the truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment, Reference
from smalti.adjustment.link import Link, fit_link
from smalti.geometry.affine import apply, compose, invert
from smalti.geometry.family import AFFINE, Family
from smalti.geometry.outline import Outline
from smalti.records import Landmarks, Pair, Points, Transforms

# Neither square nor centred on the origin, so that no test passes by symmetry.
OUTLINE = Outline(-0.5, -0.5, 119.5, 79.5)


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
    def links(self) -> list[Link]:
        return [fit_link(landmarks, self.family) for landmarks in self.landmarks]

    def adjustment(self, reference: Reference = 0, links: Iterable[Link] | None = None) -> Adjustment:
        return Adjustment(
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


def spread_points(rng: np.random.Generator, count: int) -> Points:
    """Return points of a frame that are far from collinear: its corners, moved, then any."""
    corners = OUTLINE.centre + 0.7 * (OUTLINE.corners[rng.permutation(4)] - OUTLINE.centre)
    corners += rng.uniform(-8.0, 8.0, size=corners.shape)
    inside = rng.uniform([OUTLINE.left, OUTLINE.top], [OUTLINE.right, OUTLINE.bottom], size=(count, 2))
    return np.vstack([corners, inside])[:count]


def random_walk(rng: np.random.Generator, frames: int, family: Family) -> Transforms:
    """Return the places of frames that each lie a random step further; frame 0 is the identity."""
    truth = [np.eye(2, 3)]
    for _ in range(frames - 1):
        truth.append(compose(truth[-1], random_map(rng, family)))
    return np.array(truth)


def random_map(rng: np.random.Generator, family: Family) -> Transforms:
    """Return a map of the family near the identity, with a shift of a third of a frame."""
    shift = rng.normal([OUTLINE.width / 3, 0.0], OUTLINE.height / 8)
    linear = np.eye(2)
    if family.name == "similarity":
        angle, scale = rng.normal(0.0, 0.1), np.exp(rng.normal(0.0, 0.05))
        linear = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    elif family.name == "affine":
        linear = np.eye(2) + rng.normal(0.0, 0.05, size=(2, 2))
    return np.column_stack([linear, shift])
