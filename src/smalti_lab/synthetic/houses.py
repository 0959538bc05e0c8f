"""Houses, their gardens and shadows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.records import Points
from smalti_lab.synthetic.roads import SUBPIXEL_BITS, Colour, normals

ROOFS: tuple[Colour, ...] = (
    (172, 92, 66),
    (154, 78, 58),
    (188, 112, 78),
    (120, 112, 112),
    (96, 92, 98),
    (146, 124, 104),
)
GARDENS: tuple[Colour, ...] = ((118, 148, 78), (134, 152, 92), (102, 132, 66), (168, 156, 122), (150, 150, 142))
SHADOW: Points = np.array([0.7, 0.7])
"""The shadow of a thing one pixel high. The sun is in the upper left."""


@dataclass(frozen=True, slots=True, eq=False)
class House:
    """A gable roof over a rectangle, with its ground."""

    centre: Points  # (2,)
    along: Points  # (2,), unit vector of the ridge
    size: tuple[float, float]
    storeys: float  # height in pixels
    roof: Colour
    garden: Colour

    def rectangle(self, grow: float = 0.0) -> Points:
        """(4, 2): the corners, `grow` pixels beyond the walls."""
        across = np.array([-self.along[1], self.along[0]])
        a, b = (side / 2 + grow for side in self.size)
        return np.array(
            [self.centre + s * a * self.along + t * b * across for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        )


def settle(curves: Sequence[Points], taken: NDArray[np.uint8], density: float, rng: np.random.Generator) -> list[House]:
    """Build houses along roads on free ground. `taken` is nonzero where something stands, and is filled in."""
    houses = []
    for curve in curves:
        across = normals(curve)
        # Houses gather in villages, with empty stretches between them.
        village = np.clip(
            0.5 + np.sin(np.arange(len(curve)) / rng.uniform(16, 26) + rng.uniform(0, 2 * np.pi)), 0.06, 1
        )
        for n in range(4, len(curve) - 4, 7):
            for side in (-1, 1):
                if rng.random() > density * village[n]:
                    continue
                house = _build(curve[n] + side * rng.uniform(50, 66) * across[n], across[n], rng)
                if _occupy(taken, house.rectangle(grow=9)):
                    houses.append(house)
    return houses


def draw_gardens(picture: NDArray[np.uint8], houses: Iterable[House]) -> None:
    """Paint the fenced ground around the houses."""
    for house in houses:
        _fill(picture, house.rectangle(grow=15), (148, 140, 108))
        _fill(picture, house.rectangle(grow=13), house.garden)


def draw_shadows(shade: NDArray[np.uint8], houses: Iterable[House], shadow: int) -> None:
    """Darken the shadows of the houses."""
    for house in houses:
        thrown = np.concatenate([house.rectangle(), house.rectangle() + house.storeys * SHADOW])
        hull = np.asarray(cv2.convexHull(thrown.astype(np.float32)), np.float64)[:, 0]
        _fill(shade, hull, (shadow,))


def draw_roofs(picture: NDArray[np.uint8], houses: Iterable[House], rng: np.random.Generator) -> None:
    """Paint both slopes of every roof, its ridge, and the things on it."""
    for house in houses:
        across = np.array([-house.along[1], house.along[0]])
        lit = 1.0 + 0.16 * float(np.sign(across @ SHADOW)) * np.array([1.0, -1.0])
        corners = house.rectangle(grow=2)
        ridge = (corners[0] + corners[3]) / 2, (corners[1] + corners[2]) / 2
        slopes = (corners[0], corners[1], ridge[1], ridge[0]), (ridge[0], ridge[1], corners[2], corners[3])
        for slope, light in zip(slopes, lit, strict=True):
            _fill(picture, np.array(slope), _lit(house.roof, light))
            for row in np.linspace(0.12, 0.95, 7):
                ends = [slope[0] + row * (slope[3] - slope[0]), slope[1] + row * (slope[2] - slope[1])]
                _stroke(picture, np.array(ends), _lit(house.roof, light * 0.93))
        _stroke(picture, np.array(ridge), _lit(house.roof, 0.68))
        for _ in range(int(rng.integers(1, 4))):
            spot = house.centre + rng.uniform(-0.38, 0.38) * house.size[0] * house.along
            spot = spot + rng.uniform(-0.35, 0.35) * house.size[1] * across
            thing = House(spot, house.along, (rng.uniform(3, 9), rng.uniform(3, 6)), 0, house.roof, house.garden)
            _fill(picture, thing.rectangle() + 1.5, _lit(house.roof, 0.55))
            grey = int(rng.integers(70, 235))
            _fill(picture, thing.rectangle(), (grey, grey, min(grey + 10, 255)))


def _build(centre: Points, across: Points, rng: np.random.Generator) -> House:
    turn = rng.normal(0, 0.05) + (np.pi / 2 if rng.random() < 0.4 else 0.0)
    cos, sin = np.cos(turn), np.sin(turn)
    along = np.array([across[1] * cos + across[0] * sin, across[1] * sin - across[0] * cos])
    is_barn = rng.random() < 0.12
    size = (rng.uniform(58, 84), rng.uniform(28, 36)) if is_barn else (rng.uniform(32, 50), rng.uniform(25, 34))
    roof = _lit(ROOFS[int(rng.integers(len(ROOFS)))], rng.uniform(0.88, 1.12))
    return House(centre, along, size, rng.uniform(12, 22), roof, GARDENS[int(rng.integers(len(GARDENS)))])


def _occupy(taken: NDArray[np.uint8], corners: Points) -> bool:
    low = np.floor(corners.min(axis=0)).astype(int)
    high = np.ceil(corners.max(axis=0)).astype(int)
    if (low < 0).any() or high[0] >= taken.shape[1] or high[1] >= taken.shape[0]:
        return False
    window = slice(low[1], high[1] + 1), slice(low[0], high[0] + 1)
    spot = np.zeros_like(taken[window])
    _fill(spot, corners - low, (1,))
    if (taken[window] & spot).any():
        return False
    taken[window] |= spot
    return True


def _lit(colour: Colour, light: float) -> Colour:
    red, green, blue = (min(int(value * light), 255) for value in colour)
    return red, green, blue


def _fill(picture: NDArray[np.uint8], corners: Points, colour: Colour | tuple[int]) -> None:
    fixed = np.round(corners * 2**SUBPIXEL_BITS).astype(np.int32)
    cv2.fillConvexPoly(picture, fixed, colour, cv2.LINE_AA, SUBPIXEL_BITS)


def _stroke(picture: NDArray[np.uint8], ends: Points, colour: Colour) -> None:
    first, last = np.round(ends * 2**SUBPIXEL_BITS).astype(int).tolist()
    cv2.line(picture, first, last, colour, 1, cv2.LINE_AA, SUBPIXEL_BITS)
