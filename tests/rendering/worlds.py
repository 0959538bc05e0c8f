"""Frames of the smooth scene by maps of every kind, and what a mosaic of them must be."""

from __future__ import annotations

import numpy as np

from smalti.rendering import tile_scheduler as studio
from smalti.rendering.canvas import Canvas
from smalti.rendering.mosaic import Mosaic
from smalti.rendering.tile_scheduler import MemoryBudget
from tests.rendering.scene import Frames, frame_of, mapped, shift, tilt, turn

WIDTH, HEIGHT = 160, 120

WORLDS = {
    "shifts": {k: shift(70.0 * (k % 4), 50.0 * (k // 4)) for k in range(12)},
    "affine": {
        5 * k: shift(60.3 * (k % 4) - 40, 47.7 * (k // 4) + 12.2) @ turn(9 * k, 1 + 0.03 * k) for k in range(12)
    },
    "homographies": {
        k: shift(55.1 * (k % 4), 40.9 * (k // 4)) @ turn(5 * k - 20) @ tilt(8e-4 * (k % 3 - 1), 6e-4 * (k % 2))
        for k in range(12)
    },
}

LEAST_BUDGET = MemoryBudget(frames=0, chunk=1, paintings=1, bands=1)
"""No frame is kept in memory, tiles are painted one by one, bands have 64 rows."""


def reader_of(world: dict[int, np.ndarray]) -> Frames:
    return Frames({number: frame_of(matrix, WIDTH, HEIGHT) for number, matrix in world.items()})


def mosaic_of(
    world: dict[int, np.ndarray], mask: np.ndarray | None = None, reader: Frames | None = None, **options
) -> Mosaic:
    return Mosaic(reader_of(world) if reader is None else reader, world, WIDTH, HEIGHT, mask, **options)


def paint_small(monkeypatch, tile_width: int = 64, budget: MemoryBudget = LEAST_BUDGET) -> None:
    """Let every mosaic be painted in small tiles, with little room."""
    monkeypatch.setattr(studio, "TILE_WIDTH", tile_width)
    monkeypatch.setattr(MemoryBudget, "within", lambda memory_bytes: budget)


def canvas_points(canvas: Canvas) -> tuple[np.ndarray, np.ndarray]:
    """Mosaic coordinates of every pixel's centre, from the definition."""
    x = canvas.left + (np.arange(canvas.width) + 0.5) / canvas.scale - 0.5
    y = canvas.top + (np.arange(canvas.height) + 0.5) / canvas.scale - 0.5
    return np.meshgrid(x, y)


def count_views(world: dict[int, np.ndarray], canvas: Canvas, mask: np.ndarray | None = None) -> np.ndarray:
    """How many frames have a pixel that counts at each pixel's centre."""
    mask = np.ones((HEIGHT, WIDTH), dtype=bool) if mask is None else mask
    views = np.zeros((canvas.height, canvas.width), dtype=int)
    for matrix in world.values():
        u, v = mapped(np.linalg.inv(matrix), *canvas_points(canvas))
        column, row = np.floor(u + 0.5), np.floor(v + 0.5)
        within = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT)
        views[within] += mask[row[within].astype(int), column[within].astype(int)]
    return views


def disc() -> np.ndarray:
    """A round field of view."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return (x - 80) ** 2 + (y - 60) ** 2 < 55**2
