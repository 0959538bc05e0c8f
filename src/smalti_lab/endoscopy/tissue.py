"""Soft tissue: it moves slowly under the scope, and has little contrast."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Points
from smalti_lab.endoscopy.endoscope_settings import Tissue
from smalti_lab.synthetic.degradation import draw_drift
from smalti_lab.synthetic.terrain import fractal_noise

PATTERNS = 6
"""Modes of deformation with independent time courses."""

GREY, DEVIATION = 128.0, 40.0
"""Mean and deviation of prepared tissue, in grey levels, so that little is clipped and nothing is lost by rounding."""

NEIGHBOURHOOD_PX = 35.0
REDUCTION = 8
FINE_PX = 6.0
GRAIN_PX = (32, 4)
GRAIN, LEAST_GRAIN = 0.6, 0.25
"""Amount of grain where there is no fine detail, for a scene of deviation below 1; and its least fraction anywhere."""

CLOSE_PX = 1e-11
STEPS = 100
"""Never reached: every step reduces the error by the slope of the field, a few hundredths."""


@dataclass(frozen=True, slots=True, eq=False)
class Deformation:
    """A displacement field that changes with time: the plane point g shows the scene point g + E_n(g).

    E_n is a bicubic B-spline, twice differentiable, over a lattice of `cell_px`. Beyond the scene it continues
    unchanged.
    """

    cell_px: float
    lattices: NDArray[np.float64]  # (N, rows, columns, 2), the spline's coefficients

    def deform(self, n: int, points: Points) -> Points:
        """Return the positions in the scene of plane points (m, 2) at frame n."""
        return _deform(self.lattices[n], self.cell_px, np.ascontiguousarray(points))

    def undo(self, n: int, points: Points) -> Points:
        """Return the positions in the plane of scene points (m, 2) at frame n."""
        return _undo(self.lattices[n], self.cell_px, np.ascontiguousarray(points))


def draw_deformation(tissue: Tissue, frames: int, scene_size: tuple[int, int], rng: np.random.Generator) -> Deformation:
    """Draw a smooth field that moves smoothly, with the given root mean square displacement."""
    columns, rows = (math.ceil(side / tissue.cell_px) + 3 for side in scene_size)
    patterns = rng.standard_normal((PATTERNS, rows, columns, 2))
    weights = np.stack([draw_drift(frames, tissue.slowness_frames, rng) for _ in range(PATTERNS)], axis=1)
    # A spline of independent coefficients of variance 1 has the variance (151/315)² between its knots on average, the
    # square of the autocorrelation of the basis. tanh of a normal number has the variance 0.394.
    strength = tissue.deformation_px / math.sqrt((151 / 315) ** 2 * 0.394 * PATTERNS)
    return Deformation(tissue.cell_px, strength * np.tensordot(weights, patterns, axes=1))


def prepare_tissue(scene: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the scene (h, w, 3) as tissue (h, w): grey, with about the same contrast everywhere.

    Where the scene has no detail, as in a shadow, grain replaces it, because registration needs structure.
    """
    grey = cv2.cvtColor(scene, cv2.COLOR_RGB2GRAY).astype(np.float32)
    detail = grey - _neighbourhood_mean(grey)
    spread = np.sqrt(_neighbourhood_mean(detail * detail))
    normal = detail / (spread + 0.5 * float(spread.mean()) + 1e-3)
    fine = grey - cv2.GaussianBlur(grey, (0, 0), FINE_PX)
    richness = np.sqrt(_neighbourhood_mean(fine * fine))
    lack = np.clip(1 - richness / (float(richness.mean()) + 1e-3), LEAST_GRAIN, 1)
    normal += GRAIN * lack * fractal_noise(grey.shape[1], grey.shape[0], *GRAIN_PX, rng)
    normal *= DEVIATION / float(normal.std())
    return np.clip(np.rint(GREY + normal), 0, 255).astype(np.uint8)


def _neighbourhood_mean(field: NDArray[np.float32]) -> NDArray[np.float32]:
    """Blur widely, on a reduced copy, which is cheap."""
    height, width = field.shape
    size = (math.ceil(width / REDUCTION), math.ceil(height / REDUCTION))
    small = cv2.GaussianBlur(
        cv2.resize(field, size, interpolation=cv2.INTER_AREA), (0, 0), NEIGHBOURHOOD_PX / REDUCTION
    )
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


@compiled
def displacement(lattice: NDArray[np.float64], cell_px: float, x: float, y: float) -> tuple[float, float]:
    """Return E (2,) at one plane point."""
    rows, columns = lattice.shape[0] - 3, lattice.shape[1] - 3
    s, t = min(max(x / cell_px, 0.0), columns), min(max(y / cell_px, 0.0), rows)
    column, row = min(int(s), columns - 1), min(int(t), rows - 1)
    s, t = s - column, t - row
    a0, a1, a2, a3 = _spline_weights(s)
    b0, b1, b2, b3 = _spline_weights(t)
    e_x = e_y = 0.0
    for k, b in enumerate((b0, b1, b2, b3)):
        line = lattice[row + k]
        e_x += b * (
            a0 * line[column, 0] + a1 * line[column + 1, 0] + a2 * line[column + 2, 0] + a3 * line[column + 3, 0]
        )
        e_y += b * (
            a0 * line[column, 1] + a1 * line[column + 1, 1] + a2 * line[column + 2, 1] + a3 * line[column + 3, 1]
        )
    return e_x, e_y


@compiled
def _spline_weights(t: float) -> tuple[float, float, float, float]:
    """Return the four weights of the uniform cubic B-spline at t of a cell."""
    rest = 1 - t
    return rest**3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (4 - 6 * rest**2 + 3 * rest**3) / 6, t**3 / 6


@compiled
def _deform(lattice: NDArray[np.float64], cell_px: float, points: Points) -> Points:
    moved = np.empty_like(points)
    for n in range(len(points)):
        e_x, e_y = displacement(lattice, cell_px, points[n, 0], points[n, 1])
        moved[n, 0], moved[n, 1] = points[n, 0] + e_x, points[n, 1] + e_y
    return moved


@compiled
def _undo(lattice: NDArray[np.float64], cell_px: float, points: Points) -> Points:
    """Solve g + E(g) = s by Newton's steps with the derivative 1, which is close to that of g + E(g)."""
    found = points.copy()
    for n in range(len(points)):
        for _ in range(STEPS):
            e_x, e_y = displacement(lattice, cell_px, found[n, 0], found[n, 1])
            x, y = points[n, 0] - e_x, points[n, 1] - e_y
            moved = max(abs(x - found[n, 0]), abs(y - found[n, 1]))
            found[n, 0], found[n, 1] = x, y
            if moved < CLOSE_PX:
                break
    return found
