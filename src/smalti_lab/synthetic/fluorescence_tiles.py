"""Tiles of a microscope's raster that show points: bright dots on black, outlines in a dark field, grains on grey.

Like the stained specimen of `microscope_tiles.py`, the points are a formula of their place. They are dense here and
rare there; a set share of the tiles shows hardly any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UsageError
from smalti.geometry.homographies import apply_map
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.microscope_tiles import StageRaster, hash_chance, smooth_noise

Look = Literal["fluorescence", "dark-field", "electron"]

APART = 14.0
"""Pixels of a cell that holds at most one point."""

RICH, BARE = 0.75, 0.01
"""Share of the cells that hold a point where they are dense, and where there are hardly any."""

PATCH = 1.3
"""Of a tile's side: how large dense and bare patches are."""

SIZE = (0.9, 3.5)
"""Standard deviations of a point in pixels; most are small."""

PEAK = (14.0, 220.0)
"""Gray levels of points above the background; most are faint."""

BACKGROUND: dict[Look, float] = {"fluorescence": 6.0, "dark-field": 9.0, "electron": 120.0}
NOISE: dict[Look, float] = {"fluorescence": 2.0, "dark-field": 2.5, "electron": 9.0}
RING = 2.5
"""Standard deviations of a point: the radius of an outline in a dark field."""

REACH = 5.0
"""Standard deviations of a point that are drawn."""


@dataclass(frozen=True, eq=False)
class FluorescenceRaster(StageRaster):
    """Tiles of points; `look` tells how a point looks, and on what."""

    overlap: float = 0.1
    bare: float = 0.2  # share of the tiles in whose middle there are hardly any points
    look: Look = "fluorescence"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.bare < 0.9:
            raise UsageError(f"a raster of which {self.bare} is bare: give a fraction below 0.9")

    @cached_property
    def is_blank(self) -> NDArray[np.bool_]:
        """(N,): which tiles show no point at all."""
        return np.array([len(self.points(n)) == 0 for n in range(len(self))])

    @cached_property
    def is_bare(self) -> NDArray[np.bool_]:
        """(N,): which tiles show hardly any points in their middle."""
        return np.asarray(self._richness <= self._bare_below, np.bool_)

    def points(self, n: int) -> NDArray[np.float64]:
        """Return the points of tile n, (k, 4): x and y in its pixels, standard deviation, gray levels."""
        found = self._within_reach(n)
        inside = (np.abs(found[:, :2] - (self.side - 1) / 2) < self.side / 2).all(axis=1)
        return found[inside]

    def shared(self, n: int, m: int) -> NDArray[np.float64]:
        """Return the points of tile n (k, 4) that tile m shows too."""
        found = self.points(n)
        in_m = apply_map(np.linalg.inv(self.mosaic_from_frame[m]) @ self.mosaic_from_frame[n], found[:, :2])
        return found[(np.abs(in_m - (self.side - 1) / 2) < self.side / 2).all(axis=1)]

    def frame(self, n: int) -> NDArray[np.uint8]:
        """Render tile n: (side, side, 3), RGB, all channels alike as of a camera without colours."""
        if not 0 <= n < len(self):
            raise UsageError(f"tile {n}: the raster has tiles 0 to {len(self) - 1}")
        view = np.full((self.side, self.side), BACKGROUND[self.look], np.float32)
        _paint_points(view, self._within_reach(n), self.look == "dark-field", self.look == "electron")
        degraded = Degradation(noise=NOISE[self.look], vignetting=0.08)
        rng = np.random.default_rng([self.seed, 3, n])
        return np.repeat(degraded.apply(view[:, :, None], np.zeros(2), 1.0, rng), 3, axis=2)

    def _within_reach(self, n: int) -> NDArray[np.float64]:
        margin = REACH * RING * SIZE[1]
        low, high = -margin, self.side + margin
        ends = apply_map(self.mosaic_from_frame[n], np.array([[low, low], [low, high], [high, low], [high, high]]))
        (left, top), (right, bottom) = ends.min(axis=0), ends.max(axis=0)
        found = _list_points(left, top, right, bottom, self._bare_below, PATCH * self.side, self.seed)
        found[:, :2] = apply_map(np.linalg.inv(self.mosaic_from_frame[n]), found[:, :2])
        return found

    @cached_property
    def _richness(self) -> NDArray[np.float64]:
        """(N,): the noise that tells how dense the points are, in the middle of every tile."""
        centre = np.full((1, 2), (self.side - 1) / 2)
        middles = [apply_map(one, centre)[0] for one in self.mosaic_from_frame]
        return np.array([_rich(x, y, PATCH * self.side, self.seed) for x, y in middles])

    @cached_property
    def _bare_below(self) -> float:
        count = round(self.bare * len(self))
        return float(np.sort(self._richness)[count - 1]) if count else -2.0


@compiled
def _rich(x: float, y: float, patch: float, seed: int) -> float:
    """Return a smooth number between -1 and 1."""
    return smooth_noise(x / patch, y / patch, seed + 301)


@compiled
def _list_points(
    left: float, top: float, right: float, bottom: float, bare_below: float, patch: float, seed: int
) -> NDArray[np.float64]:
    """Return all points of a rectangle: x, y, standard deviation, gray levels."""
    found = []
    for row in range(math.floor(top / APART), math.floor(bottom / APART) + 1):
        for column in range(math.floor(left / APART), math.floor(right / APART) + 1):
            x = (column + hash_chance(column, row, seed + 311)) * APART
            y = (row + hash_chance(column, row, seed + 312)) * APART
            rich = (_rich(x, y, patch, seed) - bare_below) / 0.4
            share = BARE + (RICH - BARE) * min(max(rich, 0.0), 1.0) ** 2
            if hash_chance(column, row, seed + 313) < share:
                small = hash_chance(column, row, seed + 314) ** 2
                faint = hash_chance(column, row, seed + 315) ** 1.5
                size = SIZE[0] * (SIZE[1] / SIZE[0]) ** small
                found.append((x, y, size, PEAK[0] * (PEAK[1] / PEAK[0]) ** faint))
    points = np.empty((len(found), 4))
    for n in range(len(found)):
        points[n, 0], points[n, 1], points[n, 2], points[n, 3] = found[n]
    return points


@compiled
def _paint_points(view: NDArray[np.float32], points: NDArray[np.float64], outlines: bool, dark: bool) -> None:
    for n in range(len(points)):
        x, y, size, peak = points[n]
        radius = RING * size if outlines else 0.0
        reach = REACH * size + radius
        for v in range(max(math.ceil(y - reach), 0), min(math.floor(y + reach) + 1, view.shape[0])):
            for u in range(max(math.ceil(x - reach), 0), min(math.floor(x + reach) + 1, view.shape[1])):
                away = (math.hypot(u - x, v - y) - radius) / size
                light = peak * math.exp(-away * away / 2)
                view[v, u] += -0.5 * light if dark else light
