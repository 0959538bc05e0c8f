"""The round field of view of an endoscope: a circle, and a notch in its rim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.outline import Outline
from smalti.records import Points
from smalti.synthetic.drift import draw_drift
from smalti.synthetic.endoscopy.hand import Motion
from smalti.synthetic.endoscopy.settings import EndoscopeSettings

DRIFT_FRAMES = 40.0

CELLS_A_SIDE = 8
"""Of the square about the circle, each of which has a point for measuring in its middle."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldsOfView:
    """Of every frame, in its own pixels."""

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
        """Return points (m, 2) spread evenly over the circle of frame n, those in the notch or outside included."""
        middles = (np.arange(CELLS_A_SIDE) + 0.5) / CELLS_A_SIDE * 2 - 1
        square = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
        points: Points = self.centres[n] + self.radius_px * square[np.linalg.norm(square, axis=1) <= 1]
        return points


def draw_fields(settings: EndoscopeSettings, motion: Motion, rng: np.random.Generator) -> FieldsOfView:
    """Draw where the field of view lies in every frame."""
    eyepiece, frames = settings.eyepiece, settings.frames
    unit = min(settings.width, settings.height) / 2
    drift = np.stack([draw_drift(frames, DRIFT_FRAMES, rng) for _ in range(2)], axis=1)
    middle = Outline.of_pixels(settings.width, settings.height).centre
    centres = middle + unit * (np.array([eyepiece.offset_x, eyepiece.offset_y]) + eyepiece.drift * drift)
    angle = math.radians(eyepiece.notch_degrees) + (motion.turn if eyepiece.notch_turns else np.zeros(frames))
    radius = unit * eyepiece.radius
    notches = centres + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return FieldsOfView(settings.width, settings.height, radius, centres, unit * eyepiece.notch, notches)
