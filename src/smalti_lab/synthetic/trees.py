"""Trees: their positions, crowns and shadows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Points
from smalti_lab.synthetic.roads import normals
from smalti_lab.synthetic.terrain import Parcel

GREENS = np.array([(74, 104, 48), (92, 118, 54), (60, 88, 46), (106, 124, 62), (84, 96, 44)], np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Crowns as discs, painted in their order."""

    centres: Points  # (n, 2)
    radii: NDArray[np.float64]  # (n,)

    def where_free(self, taken: NDArray[np.uint8]) -> Trees:
        """Leave out trees outside the picture, on a road, on water or on a house."""
        x, y = np.floor(self.centres).astype(int).T
        inside = (x >= 0) & (y >= 0) & (x < taken.shape[1]) & (y < taken.shape[0])
        inside[inside] = taken[y[inside], x[inside]] == 0
        return Trees(self.centres[inside], self.radii[inside])


def plant(parcels: Sequence[Parcel], waters: Sequence[Points], houses: Points, rng: np.random.Generator) -> Trees:
    """Plant woods, orchards, hedges, trees on the river's banks, in gardens (n, 2) and alone in the fields."""
    groups = [_alone(parcels, rng), _around(houses, rng)]
    groups += [_along(curve, rng) for curve in waters]
    for parcel in parcels:
        if parcel.land.name == "wood":
            groups.append(_in_grid(parcel, 19.0, 6.5, (8.0, 15.0), rng))
        elif parcel.land.name == "orchard":
            groups.append(_in_grid(parcel, 30.0, 1.6, (7.0, 9.5), rng))
        elif rng.random() < 0.45:
            groups.append(_hedge(parcel, rng))
    centres = np.concatenate([centres for centres, _ in groups])
    radii = np.concatenate([radii for _, radii in groups])
    return Trees(centres, radii)


def draw_tree_shadows(shade: NDArray[np.uint8], trees: Trees, rough: NDArray[np.float32], shadow: int) -> None:
    """Darken the shadows of the trees."""
    _throw(shade, trees.centres + 0.8 * trees.radii[:, None], trees.radii, rough, shadow)


def draw_trees(picture: NDArray[np.uint8], trees: Trees, rough: NDArray[np.float32], rng: np.random.Generator) -> None:
    """Paint crowns whose edge and leaves follow `rough`, a noise as large as the picture."""
    colours = GREENS[rng.integers(len(GREENS), size=len(trees.radii))]
    colours = colours * rng.uniform(0.8, 1.25, (len(colours), 1)) + rng.normal(0, 5, (len(colours), 3))
    _crown(picture, trees.centres, trees.radii, colours, rough)


Group = tuple[Points, NDArray[np.float64]]


def _in_grid(parcel: Parcel, apart: float, stray: float, radii: tuple[float, float], rng: np.random.Generator) -> Group:
    low, high = parcel.border.min(axis=0), parcel.border.max(axis=0)
    middle, reach = (low + high) / 2, float(np.hypot(*(high - low))) / 2
    steps = np.arange(-reach, reach, apart)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    cos, sin = np.cos(parcel.row_angle), np.sin(parcel.row_angle)
    centres = middle + grid @ np.array([[cos, sin], [-sin, cos]]) + rng.normal(0, stray, grid.shape)
    centres = centres[_inside(parcel.border, centres)]
    return centres, rng.uniform(*radii, len(centres))


def _hedge(parcel: Parcel, rng: np.random.Generator) -> Group:
    quarter = len(parcel.border) // 4
    first = int(rng.integers(4)) * quarter
    side = np.roll(parcel.border, -first, axis=0)[: quarter + 1]
    t = np.sort(rng.uniform(0, quarter, 34))
    t = t[rng.random(len(t)) < rng.uniform(0.25, 1.0)]
    centres = np.column_stack([np.interp(t, np.arange(quarter + 1), side[:, c]) for c in (0, 1)])
    return centres + rng.normal(0, 2.5, centres.shape), rng.uniform(5.0, 12.0, len(centres))


def _along(curve: Points, rng: np.random.Generator) -> Group:
    row = rng.integers(len(curve), size=len(curve) * 2)
    across = rng.choice([-1.0, 1.0], len(row)) * rng.normal(76.0, 14.0, len(row))
    centres = curve[row] + across[:, None] * normals(curve)[row] + rng.normal(0, 4, (len(row), 2))
    return centres, rng.uniform(6.0, 15.0, len(row))


def _around(houses: Points, rng: np.random.Generator) -> Group:
    centres = np.repeat(houses, 5, axis=0)
    angle = rng.uniform(0, 2 * np.pi, len(centres))
    away = rng.uniform(24, 44, len(centres))[:, None]
    return centres + away * np.column_stack([np.cos(angle), np.sin(angle)]), rng.uniform(4.0, 9.5, len(centres))


def _alone(parcels: Sequence[Parcel], rng: np.random.Generator) -> Group:
    low = np.min([parcel.border.min(axis=0) for parcel in parcels], axis=0)
    high = np.max([parcel.border.max(axis=0) for parcel in parcels], axis=0)
    # One tree or bush on about the area of half a frame of 320 × 240.
    count = int(np.prod(high - low) / 40_000)
    return rng.uniform(low, high, (count, 2)), 3.0 + rng.gamma(2.0, 1.8, count)


def _inside(border: Points, points: Points) -> NDArray[np.bool_]:
    """Tell which points lie in a polygon. A ray from such a point to the right crosses it an odd number of times."""
    inside = np.zeros(len(points), bool)
    for (x0, y0), (x1, y1) in zip(border, np.roll(border, -1, axis=0), strict=True):
        if y0 != y1:
            crosses = (points[:, 1] < y0) != (points[:, 1] < y1)
            inside ^= crosses & (points[:, 0] < x0 + (points[:, 1] - y0) * (x1 - x0) / (y1 - y0))
    return inside


@compiled
def _throw(
    shade: NDArray[np.uint8], centres: Points, radii: NDArray[np.float64], rough: NDArray[np.float32], shadow: int
) -> None:
    height, width = shade.shape
    for tree in range(len(radii)):
        cx, cy, radius = centres[tree, 0], centres[tree, 1], radii[tree]
        for y in range(max(int(cy - 1.5 * radius), 0), min(int(cy + 1.5 * radius) + 1, height)):
            for x in range(max(int(cx - 1.5 * radius), 0), min(int(cx + 1.5 * radius) + 1, width)):
                away = np.hypot(x - cx, y - cy) / radius + 0.16 * rough[y, x]
                if away < 1.0:
                    shade[y, x] = shadow


@compiled
def _crown(
    picture: NDArray[np.uint8],
    centres: Points,
    radii: NDArray[np.float64],
    colours: NDArray[np.float64],
    rough: NDArray[np.float32],
) -> None:
    height, width = picture.shape[:2]
    for tree in range(len(radii)):
        cx, cy, radius = centres[tree, 0], centres[tree, 1], radii[tree]
        for y in range(max(int(cy - 1.5 * radius), 0), min(int(cy + 1.5 * radius) + 1, height)):
            for x in range(max(int(cx - 1.5 * radius), 0), min(int(cx + 1.5 * radius) + 1, width)):
                away = np.hypot(x - cx, y - cy) / radius + 0.16 * rough[y, x]
                cover = min(max((1.0 - away) * radius, 0.0), 1.0)
                if cover > 0:
                    # A crown is a hemisphere: lit in the upper left, dark in the lower right and at its edge.
                    towards_sun = -(x - cx + y - cy) / radius
                    light = 0.98 + 0.30 * towards_sun - 0.22 * away * away + 0.16 * rough[y, x]
                    for c in range(3):
                        value = cover * colours[tree, c] * light + (1 - cover) * picture[y, x, c]
                        picture[y, x, c] = np.uint8(min(max(value, 0.0), 255.0))
