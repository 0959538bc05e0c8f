"""Small synthetic problems of which the truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.engine.equations import System
from smalti.engine.links import Link, fit_link
from smalti.geometry.homographies import AFFINE, PROJECTIVE, Family, apply_map, exponential, normalise
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import compose
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Landmarks, Pair, Points, Transforms

# Neither square nor centred on the origin, so that no test passes by symmetry.
OUTLINE = Outline(-0.5, -0.5, 119.5, 79.5)

STEADY = (0.0, 0.0, 0.03, 0.02, 0.01, 0.01, 0.01, 0.01)
"""Deviations of a frame's turn, scale, stretch and perspective: a drone."""


# Cameras that tilt


@dataclass(frozen=True, eq=False)
class Flight:
    """Frames whose maps to the mosaic are known, in units, and what would be measured between them."""

    family: Family
    truth: Homographies  # (N, 3, 3)
    lens: Lens | None = None

    @property
    def frames(self) -> int:
        return len(self.truth)

    def i_from_j(self, pair: Pair) -> Homographies:
        """The true map (3, 3), in units."""
        return normalise(np.linalg.inv(self.truth[pair.i]) @ self.truth[pair.j])

    def see(
        self,
        pair: Pair,
        rng: np.random.Generator,
        *,
        count: int = 8,
        sigma: float = 0.5,
        noise: float | None = None,
        by: tuple[float, float] = (0.0, 0.0),
    ) -> Landmarks:
        """Return landmarks that say σ, err by `noise` px (σ by default) and are wrong `by` some px."""
        points_j = shared_by(self.i_from_j(pair), rng, count)
        points_i = apply_map(self.i_from_j(pair), points_j)
        points_i, points_j = (points * OUTLINE.unit + OUTLINE.centre for points in (points_i, points_j))
        if self.lens is not None:
            points_i, points_j = self.lens.distort(points_i), self.lens.distort(points_j)
        points_i = points_i + (sigma if noise is None else noise) * rng.normal(size=points_i.shape)
        return Landmarks(pair, points_i + by, points_j, sigma)

    def links(self, pairs: Iterable[Pair], rng: np.random.Generator, **how: float) -> list[Link]:
        """Return links of pairs as the engine takes them."""
        return [fit_link(self.see(pair, rng, **how), OUTLINE, None, self.family) for pair in pairs]

    def system(self, links: Iterable[Link], reference: int | None = None) -> System:
        return System.of(self.frames, OUTLINE, self.family, list(links), reference)

    @property
    def chain(self) -> list[Pair]:
        return [Pair(n, n + 1) for n in range(self.frames - 1)]

    def off_px(self, maps: Homographies, pairs: Iterable[Pair] | None = None) -> NDArray[np.float64]:
        """Return by how many px maps in units misplace the middle of what pairs show; of all that overlap."""
        pairs = self.overlapping() if pairs is None else list(pairs)
        found = []
        for pair in pairs:
            middle = shared_by(self.i_from_j(pair), np.random.default_rng(0), 30).mean(axis=0, keepdims=True)
            told = np.linalg.inv(maps[pair.i]) @ maps[pair.j]
            found.append(apply_map(told, middle) - apply_map(self.i_from_j(pair), middle))
        return np.linalg.norm(np.concatenate(found), axis=1) * OUTLINE.unit

    def error_px(self, maps: Homographies) -> float:
        """The root mean square of that."""
        return float(np.sqrt(np.mean(self.off_px(maps) ** 2)))

    def overlapping(self, furthest: float = 0.6) -> list[Pair]:
        """Pairs whose centres lie within so many frame sizes of each other."""
        size = np.array([OUTLINE.width, OUTLINE.height]) / OUTLINE.unit
        places = self.truth[:, :2, 2] / self.truth[:, 2:, 2] / size
        i, j = np.triu_indices(self.frames, 1)
        near = (np.abs(places[i] - places[j]) < furthest).all(axis=1)
        return [Pair(a, b) for a, b in zip(i[near].tolist(), j[near].tolist(), strict=True)]


def shared_by(i_from_j: Homographies, rng: np.random.Generator, count: int) -> Points:
    """Return points of j (count, 2), in units, that i shows too, far from each other."""
    half = np.array([OUTLINE.width, OUTLINE.height]) / 2.0 / OUTLINE.unit
    points = rng.uniform(-half, half, (2000, 2))
    inside = points[(np.abs(apply_map(i_from_j, points)) < half).all(axis=1)]
    assert len(inside) >= count, "these frames hardly overlap"
    chosen = [0]
    distance = np.sum((inside - inside[0]) ** 2, axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.sum((inside - inside[chosen[-1]]) ** 2, axis=1))
    return inside[chosen]


def flight(
    rng: np.random.Generator,
    frames: int = 24,
    family: Family = PROJECTIVE,
    *,
    lane: int = 12,
    step: float = 0.35,
    deviations: tuple[float, ...] = STEADY,
    lens: Lens | None = None,
) -> Flight:
    """Make a camera that flies lane beside lane, `step` frames further each time, held level within some deviations."""
    row, at = np.divmod(np.arange(frames), lane)
    size = np.array([OUTLINE.width, OUTLINE.height]) / OUTLINE.unit
    places = np.column_stack([np.where(row % 2, lane - 1 - at, at), row]) * step * size
    return Flight(family, at_places(rng, places, family, deviations), lens)


def at_places(rng: np.random.Generator, places: Points, family: Family, deviations: tuple[float, ...]) -> Homographies:
    """Return maps (N, 3, 3) of a camera at places (N, 2), turned and tilted by chance, as far as a family can be."""
    truth = np.tile(np.eye(3), (len(places), 1, 1))
    truth[:, :2, 2] = places
    increments = rng.normal(size=(len(places), 8)) * np.array(deviations)
    turned = truth @ exponential(increments[:, : family.freedom])
    return np.ascontiguousarray(turned / turned[:, 2:, 2:])


def across(frames: int, lane: int) -> list[Pair]:
    """Pairs of frames that lie beside each other in neighbouring lanes."""
    pairs = []
    for n in range(frames):
        row, at = divmod(n, lane)
        beside = (row + 1) * lane + lane - 1 - at
        if beside < frames and beside - n > 1:
            pairs.append(Pair(n, beside))
    return pairs


# Cameras that look straight down


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


def raster(rng: np.random.Generator, frames: int, loops: int, noise: float = 1.0) -> Problem:
    """Make a camera that goes straight on and comes back beside its way, linked across at `loops` places."""
    step = OUTLINE.width / 3
    n = np.arange(frames)
    truth = np.tile(np.eye(2, 3), (frames, 1, 1))
    truth[:, 0, 2] = np.minimum(n, frames - 1 - n) * step
    truth[:, 1, 2] = np.where(n < frames / 2, 0.0, OUTLINE.height / 3)
    pairs = [Pair(i, i + 1) for i in range(frames - 1)]
    opposite = np.linspace(0, frames // 2 - 2, loops).astype(int)
    pairs += [Pair(int(i), int(frames - 1 - i)) for i in opposite]
    corners_and_middle = np.vstack([OUTLINE.corners, OUTLINE.centre])
    landmarks = [measured(rng, truth, pair, corners_and_middle, noise) for pair in pairs]
    return Problem(AFFINE, OUTLINE, truth, tuple(landmarks))


def measured(
    rng: np.random.Generator,
    truth: Transforms | Homographies,
    pair: Pair,
    points_j: Points,
    sigma: float | NDArray[np.float64],
    *,
    exact: bool = False,
) -> Landmarks:
    """Return landmarks of a pair, exact in j, with noise in i; the truth may have perspective."""
    maps = truth
    if truth.shape[-2] == 2:
        maps = np.concatenate([truth, np.broadcast_to([[0.0, 0.0, 1.0]], (len(truth), 1, 3))], axis=1)
    i_from_j = np.linalg.inv(maps[pair.i]) @ maps[pair.j]
    noise = np.broadcast_to(np.asarray(sigma), (len(points_j),))[:, None] * rng.normal(size=points_j.shape)
    points_i = apply_map(i_from_j, points_j) + (0.0 if exact else noise)
    return Landmarks(pair, points_i, points_j, sigma)


def spread_points(rng: np.random.Generator, count: int) -> Points:
    """Return points of a frame that are far from collinear: its corners, moved, then any."""
    corners = OUTLINE.centre + 0.7 * (OUTLINE.corners[rng.permutation(4)] - OUTLINE.centre)
    corners += rng.uniform(-8.0, 8.0, size=corners.shape)
    inside = rng.uniform([OUTLINE.left, OUTLINE.top], [OUTLINE.right, OUTLINE.bottom], size=(count, 2))
    return np.vstack([corners, inside])[:count]


def random_walk(rng: np.random.Generator, frames: int, family: Family) -> Transforms:
    """Return the places (N, 2, 3) of frames that each lie a random step further; frame 0 is the identity."""
    truth = [np.eye(2, 3)]
    for _ in range(frames - 1):
        truth.append(compose(truth[-1], random_map(rng, family)))
    return np.array(truth)


def random_map(rng: np.random.Generator, family: Family) -> Transforms:
    """Return an affine map (2, 3) of the family near the identity, with a shift of a third of a frame."""
    shift = rng.normal([OUTLINE.width / 3, 0.0], OUTLINE.height / 8)
    linear = np.eye(2)
    if family.name == "similarity":
        angle, scale = rng.normal(0.0, 0.1), np.exp(rng.normal(0.0, 0.05))
        linear = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    elif family.name == "affine":
        linear = np.eye(2) + rng.normal(0.0, 0.05, size=(2, 2))
    return np.column_stack([linear, shift])
