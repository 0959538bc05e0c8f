"""Tiles of a microscope's raster over a stained specimen: a grid with a small overlap, many tiles blank.

The specimen is a formula, evaluated at every pixel's own coordinates. No picture of it is kept, so a raster can have
any number of tiles, and the truth has no error of resampling. The stage misses its positions by a few pixels, and the
camera is turned a little against the stage. The specimen's outline and its holes are drawn so that the wanted share of
tiles shows background alone.
"""

from __future__ import annotations

import csv
import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UsageError
from smalti.records import Homographies
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.synthetic_files import write_frames
from smalti_lab.synthetic.synthetic_sequence import RenderedFrames

Order = Literal["snake", "rows"]

BACKGROUND = 222.0
"""Grey level of the slide without specimen."""

STAIN = 78.0
"""Grey levels that stained tissue lacks on average."""

OCTAVES = ((180.0, 0.55), (60.0, 0.5), (22.0, 0.5), (8.0, 0.4), (3.5, 0.35))
"""The tissue's texture: cells of smooth noise in pixels, and their strength as a fraction of the stain."""

NUCLEI_APART, NUCLEUS = 26.0, (4.0, 9.0)
"""Pixels between nuclei on average, and their radii."""

EDGE_PX = 12.0
"""Pixels over which tissue ends."""

LIGHT = Degradation(noise=1.5, vignetting=0.08)
FRAMES_PER_HOLE = 130
GRID_POINTS = 25
"""Points a side of a tile at which specimen is looked for. Tissue has no islands, so little of it can lie between."""


@dataclass(frozen=True, eq=False)
class StageRaster(RenderedFrames):
    """Columns × rows tiles that a stage takes line by line, whatever they show."""

    columns: int
    rows: int
    side: int = 400  # pixels
    overlap: float = 0.12  # of a tile's side, by the stage's plan
    stage_px: float = 3.0  # standard deviation of each coordinate's error, cut off at three
    camera_degrees: float = 0.3  # the camera's turn against the stage
    order: Order = "snake"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.columns < 1 or self.rows < 1 or self.side < 64:
            raise UsageError(f"a raster of {self.columns} × {self.rows} tiles of {self.side} px: give more")
        if not 0 < self.overlap < 1:
            raise UsageError(f"a raster with overlap {self.overlap}: give a fraction below 1")

    def __len__(self) -> int:
        return self.columns * self.rows

    @property
    def width(self) -> int:
        """Width of a tile in pixels."""
        return self.side

    @property
    def height(self) -> int:
        """Height of a tile in pixels."""
        return self.side

    @property
    @abstractmethod
    def is_blank(self) -> NDArray[np.bool_]:
        """(N,): which tiles show no specimen at all."""

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """(N, 2): column and row of each tile, in the order in which they are taken."""
        row, along = np.divmod(np.arange(len(self)), self.columns)
        back = (row % 2 == 1) & (self.order == "snake")
        return np.column_stack([np.where(back, self.columns - 1 - along, along), row])

    @cached_property
    def mosaic_from_frame(self) -> Homographies:
        """(N, 3, 3): the truth, in pixels of the specimen, along the stage's axes."""
        rng = np.random.default_rng([self.seed, 1])
        missed = self.stage_px * np.clip(rng.standard_normal((len(self), 2)), -3, 3)
        angle = math.radians(self.camera_degrees)
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        maps = np.zeros((len(self), 3, 3))
        maps[:, :2, :2], maps[:, 2, 2] = turn, 1.0
        centres = self.step_px * (self.cells + 0.5) + missed
        maps[:, :2, 2] = centres - turn @ np.full(2, (self.side - 1) / 2)
        return maps

    @property
    def step_px(self) -> float:
        """Distance of neighbouring tiles by the stage's plan."""
        return self.side * (1 - self.overlap)


@dataclass(frozen=True, eq=False)
class MicroscopeRaster(StageRaster):
    """Tiles of a stained specimen on a bright slide."""

    blank: float = 1 / 3  # share of the tiles without specimen

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.blank < 0.9:
            raise UsageError(f"a raster of which {self.blank} is blank: give a fraction below 0.9")

    @cached_property
    def is_blank(self) -> NDArray[np.bool_]:
        """(N,): which tiles show no specimen at all."""
        return np.asarray(self._deepest <= self._begins, np.bool_)

    def frame(self, n: int) -> NDArray[np.uint8]:
        """Render tile n: (side, side, 3), RGB."""
        if not 0 <= n < len(self):
            raise UsageError(f"tile {n}: the raster has tiles 0 to {len(self) - 1}")
        view = np.empty((self.side, self.side), np.float32)
        _paint(view, self.mosaic_from_frame[n], self._specimen, self._begins, self.seed)
        sharp = np.repeat(view[:, :, None], 3, axis=2)
        return LIGHT.apply(sharp, np.zeros(2), 1.0, np.random.default_rng([self.seed, 3, n]))

    @cached_property
    def _specimen(self) -> NDArray[np.float64]:
        """Outline and holes, one a row: centre x and y, the half axes; the outline first."""
        rng = np.random.default_rng([self.seed, 2])
        size = self.step_px * np.array([self.columns, self.rows])
        holes = [
            [*(size * rng.uniform(0.3, 0.7, 2)), *(self.step_px * rng.uniform(0.9, 1.8, 2))]
            for _ in range(len(self) // FRAMES_PER_HOLE)
        ]
        return np.array([[*(size / 2), *(size / 2)], *holes])

    @cached_property
    def _deepest(self) -> NDArray[np.float64]:
        """(N,): how far inside the specimen's ellipse each tile reaches outside of holes, in pixels or so."""
        at = np.linspace(-0.5, self.side - 0.5, GRID_POINTS)
        grid = np.stack([*np.meshgrid(at, at), np.ones((GRID_POINTS, GRID_POINTS))], axis=-1).reshape(-1, 3)
        return _find_deepest(self.mosaic_from_frame, grid, self._specimen, self.seed)

    @cached_property
    def _begins(self) -> float:
        """How far inside its ellipse the specimen begins, so that the wanted share of tiles is blank."""
        ordered = np.sort(self._deepest)
        count = round(self.blank * len(self))
        return float(ordered[count - 1]) if count else float(ordered[0]) - 1.0


def write_raster(raster: StageRaster, folder: str | Path, extension: str = ".jpg") -> Path:
    """Write the tiles to `folder/tiles`, and beside them `truth.npy` and `truth.csv`; return the tiles' folder.

    `truth.npy` is mosaic_from_frame (N, 3, 3). `truth.csv` has a line a tile: file, column, row, x and y of its first
    pixel on the mosaic, and whether it is blank.
    """
    tiles = Path(folder) / "tiles"
    files = write_frames(raster, tiles, extension)
    np.save(Path(folder) / "truth.npy", raster.mosaic_from_frame)
    with (Path(folder) / "truth.csv").open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["file", "column", "row", "x", "y", "blank"])
        for n, file in enumerate(files):
            x, y = raster.mosaic_from_frame[n, :2, 2]
            writer.writerow([file.name, *raster.cells[n], f"{x:.4f}", f"{y:.4f}", int(raster.is_blank[n])])
    return tiles


@compiled
def _paint(
    view: NDArray[np.float32],
    mosaic_from_frame: Homographies,
    specimen: NDArray[np.float64],
    begins: float,
    seed: int,
) -> None:
    for v in range(view.shape[0]):
        for u in range(view.shape[1]):
            x = mosaic_from_frame[0, 0] * u + mosaic_from_frame[0, 1] * v + mosaic_from_frame[0, 2]
            y = mosaic_from_frame[1, 0] * u + mosaic_from_frame[1, 1] * v + mosaic_from_frame[1, 2]
            outer, hole = _depths(x, y, specimen, seed)
            depth = min(min(outer - begins, hole) / EDGE_PX, 1.0)
            grey = BACKGROUND
            if depth > 0:
                stain = 1.0
                for octave in range(len(OCTAVES)):
                    cell, strength = OCTAVES[octave]
                    stain += strength * smooth_noise(x / cell, y / cell, seed + 17 * octave)
                stain += 0.9 * _nuclei(x, y, seed)
                grey -= STAIN * max(stain, 0.15) * depth * depth * (3.0 - 2.0 * depth)
            view[v, u] = max(grey, 12.0)


@compiled
def _depths(x: float, y: float, specimen: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """Return how far a point lies inside the ellipse, and how far outside of the nearest hole, in pixels or so."""
    outer, hole = 0.0, 1e9
    for k in range(len(specimen)):
        along_x, along_y = (x - specimen[k, 0]) / specimen[k, 2], (y - specimen[k, 1]) / specimen[k, 3]
        if k > 0 and along_x * along_x + along_y * along_y > 4.0:
            continue  # too far away to matter, and most holes are
        size = min(specimen[k, 2], specimen[k, 3])
        # All borders are wavy.
        away = math.hypot(along_x, along_y) + 0.12 * smooth_noise(along_x * 2.5 + 7.0 * k, along_y * 2.5, seed + 101)
        if k == 0:
            outer = size * (1.0 - away)
        else:
            hole = min(hole, size * (away - 1.0))
    return outer, hole


@compiled
def _find_deepest(
    mosaic_from_frame: Homographies, grid: NDArray[np.float64], specimen: NDArray[np.float64], seed: int
) -> NDArray[np.float64]:
    deepest = np.full(len(mosaic_from_frame), -1e9)
    for n in range(len(mosaic_from_frame)):
        for k in range(len(grid)):
            x, y, _ = mosaic_from_frame[n] @ grid[k]
            outer, hole = _depths(x, y, specimen, seed)
            if hole > 0:
                deepest[n] = max(deepest[n], outer)
    return deepest


@compiled
def _nuclei(x: float, y: float, seed: int) -> float:
    """Return the darkness of the nuclei at a point, 0 to about 1: one nucleus at random in every cell."""
    column, row = math.floor(x / NUCLEI_APART), math.floor(y / NUCLEI_APART)
    darkness = 0.0
    for j in range(row - 1, row + 2):
        for i in range(column - 1, column + 2):
            apart_x = x - (i + hash_chance(i, j, seed + 201)) * NUCLEI_APART
            apart_y = y - (j + hash_chance(i, j, seed + 202)) * NUCLEI_APART
            radius = NUCLEUS[0] + (NUCLEUS[1] - NUCLEUS[0]) * hash_chance(i, j, seed + 203)
            # Nuclei are oblong, each along its own direction.
            angle = math.pi * hash_chance(i, j, seed + 204)
            along = apart_x * math.cos(angle) + apart_y * math.sin(angle)
            across = apart_y * math.cos(angle) - apart_x * math.sin(angle)
            near = 1.0 - (along / (1.3 * radius)) ** 2 - (across / radius) ** 2
            if near > 0:
                darkness = max(darkness, near * near * (0.5 + 0.5 * hash_chance(i, j, seed + 205)))
    return darkness


@compiled
def smooth_noise(x: float, y: float, seed: int) -> float:
    """Return smooth noise between -1 and 1 with cells of size 1."""
    column, row = math.floor(x), math.floor(y)
    u, v = x - column, y - row
    # The fifth degree has no steps of the second derivative.
    u, v = u * u * u * (u * (u * 6 - 15) + 10), v * v * v * (v * (v * 6 - 15) + 10)
    top = (1 - u) * hash_chance(column, row, seed) + u * hash_chance(column + 1, row, seed)
    bottom = (1 - u) * hash_chance(column, row + 1, seed) + u * hash_chance(column + 1, row + 1, seed)
    return 2 * ((1 - v) * top + v * bottom) - 1


@compiled
def hash_chance(i: int, j: int, seed: int) -> float:
    """Return a number between 0 and 1 that depends on whole numbers alone (the finaliser of splitmix64)."""
    mixed = np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(j) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed += np.uint64(seed) * np.uint64(0x165667B19E3779F9)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * 2.0**-53
