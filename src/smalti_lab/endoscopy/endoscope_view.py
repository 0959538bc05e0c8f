"""The view of the endoscope: the round field of view, perspective and deformation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Points
from smalti_lab.endoscopy.endoscope_motion import Motion
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings
from smalti_lab.endoscopy.tissue import GREY, Deformation, displacement
from smalti_lab.synthetic.degradation import draw_drift
from smalti_lab.synthetic.resampling import HALF_WIDTH, weigh_pixels

DRIFT_FRAMES = 40.0

CELLS_A_SIDE = 8
"""Cells of the square around the circle. Each has a measuring point in its middle."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldsOfView:
    """The field of view of every frame, in its own pixels."""

    width: int
    height: int
    radius_px: float
    centres: Points  # (N, 2)
    notch_px: float
    notches: Points  # (N, 2), on the rim

    def contains(self, n: int, points: Points) -> NDArray[np.bool_]:
        """Tell for each point (..., 2) whether frame n shows tissue there."""
        in_frame = Outline.of_pixels(self.width, self.height).contains(points)
        return np.asarray(in_frame & (self._depth(n, points[..., 0], points[..., 1]) >= 0), np.bool_)

    def depths(self, n: int) -> NDArray[np.float32]:
        """Return how far inside the field's rim each pixel (h, w) of frame n lies, negative outside."""
        x, y = np.arange(self.width, dtype=np.float32), np.arange(self.height, dtype=np.float32)
        return np.asarray(self._depth(n, x, y[:, None]), np.float32)

    def _depth(self, n: int, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        (centre_x, centre_y), (notch_x, notch_y) = self.centres[n].tolist(), self.notches[n].tolist()
        from_rim = self.radius_px - np.sqrt((x - centre_x) ** 2 + (y - centre_y) ** 2)
        from_notch = np.sqrt((x - notch_x) ** 2 + (y - notch_y) ** 2) - self.notch_px
        depth: NDArray[Any] = np.minimum(from_rim, from_notch)
        return depth

    def grid(self, n: int) -> Points:
        """Return points (m, 2) spread evenly over the circle of frame n, including those in the notch or outside."""
        middles = (np.arange(CELLS_A_SIDE) + 0.5) / CELLS_A_SIDE * 2 - 1
        square = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
        points: Points = self.centres[n] + self.radius_px * square[np.linalg.norm(square, axis=1) <= 1]
        return points


def draw_fields(settings: EndoscopeSettings, motion: Motion, rng: np.random.Generator) -> FieldsOfView:
    """Draw the position of the field of view in every frame."""
    eyepiece, frames = settings.eyepiece, settings.frames
    unit = min(settings.width, settings.height) / 2
    drift = np.stack([draw_drift(frames, DRIFT_FRAMES, rng) for _ in range(2)], axis=1)
    middle = Outline.of_pixels(settings.width, settings.height).centre
    centres = middle + unit * (np.array([eyepiece.offset_x, eyepiece.offset_y]) + eyepiece.drift * drift)
    angle = math.radians(eyepiece.notch_degrees) + (motion.turn if eyepiece.notch_turns else np.zeros(frames))
    radius = unit * eyepiece.radius
    notches = centres + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return FieldsOfView(settings.width, settings.height, radius, centres, unit * eyepiece.notch, notches)


def view_tissue(
    tissue: NDArray[np.uint8], motion: Motion, deformation: Deformation, fields: FieldsOfView, n: int, margin: int
) -> NDArray[np.float32]:
    """Return the tissue in frame n, with `margin` more pixels on every side: (height, width), not clipped.

    Only the field of view and a margin around it are filled in.
    """
    view = np.full((fields.height + 2 * margin, fields.width + 2 * margin), GREY, np.float32)
    _sample(
        tissue,
        motion.plane_from_frame[n],
        deformation.lattices[n],
        deformation.cell_px,
        max(float(motion.scale[n]), 1.0),
        fields.centres[n],
        fields.radius_px + margin + 1,
        margin,
        view,
    )
    return view


@compiled
def _sample(
    tissue: NDArray[np.uint8],
    plane_from_frame: Homographies,
    lattice: NDArray[np.float64],
    cell_px: float,
    stretch: float,
    centre: Points,
    radius: float,
    margin: int,
    view: NDArray[np.float32],
) -> None:
    """Fill in the view inside a circle. The kernel is wider by `stretch`, the number of tissue pixels a frame pixel."""
    rows, columns = tissue.shape
    h = plane_from_frame
    weights_x = np.empty(int(2 * HALF_WIDTH * stretch) + 2, np.float32)
    weights_y = np.empty_like(weights_x)
    for v in range(view.shape[0]):
        for u in range(view.shape[1]):
            x, y = u - margin, v - margin
            if (x - centre[0]) ** 2 + (y - centre[1]) ** 2 > radius**2:
                continue
            depth = h[2, 0] * x + h[2, 1] * y + h[2, 2]
            room_x = (h[0, 0] * x + h[0, 1] * y + h[0, 2]) / depth
            room_y = (h[1, 0] * x + h[1, 1] * y + h[1, 2]) / depth
            e_x, e_y = displacement(lattice, cell_px, room_x, room_y)
            first_x, count_x = weigh_pixels(room_x + e_x, stretch, weights_x)
            first_y, count_y = weigh_pixels(room_y + e_y, stretch, weights_y)
            total = np.float32(0)
            for j in range(count_y):
                row = min(max(first_y + j, 0), rows - 1)
                line = np.float32(0)
                for i in range(count_x):
                    line += weights_x[i] * tissue[row, min(max(first_x + i, 0), columns - 1)]
                total += weights_y[j] * line
            view[v, u] = total
