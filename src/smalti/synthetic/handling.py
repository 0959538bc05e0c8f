"""How steadily a camera is held: its heading, its zoom and the shake of the hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.outline import Outline
from smalti.records import Points, Transforms
from smalti.synthetic.drift import draw_drift

SLOWNESS_FRAMES = 15.0
"""Heading and zoom change over about so many frames."""
SHAKE_LIMIT = 3.0
"""Shake beyond so many standard deviations is cut off, so that a path's reach is known beforehand."""


@dataclass(frozen=True, slots=True)
class Handling:
    """How far a camera strays from flying level and straight; all zero: it only shifts."""

    heading_degrees: float = 0.0  # slow turns, up to so much either way
    zoom: float = 0.0  # slow changes of scale, up to this fraction either way
    shake_px: float = 0.0  # standard deviation of each coordinate, in frame pixels, independent from frame to frame
    shake_degrees: float = 0.0  # the same for the heading
    scale: float = 1.0  # scene pixels a frame pixel, without zoom

    def __post_init__(self) -> None:
        for name in ("heading_degrees", "zoom", "shake_px", "shake_degrees"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise UsageError(f"handling: {name} is {value}, give 0 or a positive number")
        if not 0 < self.scale < math.inf:
            raise UsageError(f"handling: scale is {self.scale}, give a positive number")

    def reach(self, width: int, height: int) -> tuple[float, float]:
        """Return how far, in scene pixels, a frame may extend from its place on the path along x and y."""
        turn = math.radians(self.heading_degrees + SHAKE_LIMIT * self.shake_degrees)
        largest = self.scale * (1 + self.zoom)
        shake = SHAKE_LIMIT * self.shake_px * self.scale * (1 + self.zoom)
        diagonal = math.hypot(width, height) / 2
        # A side reaches furthest when the diagonal lies along the axis, or else at the largest turn.
        to_x, to_y = math.atan2(height, width), math.atan2(width, height)
        reach_x = diagonal * math.cos(max(to_x - turn, 0.0))
        reach_y = diagonal * math.cos(max(to_y - turn, 0.0))
        return largest * reach_x + shake, largest * reach_y + shake

    def hold(self, frames: int, rng: np.random.Generator) -> Pose:
        """Draw heading, scale and shake of all frames."""
        heading = self.heading_degrees * draw_drift(frames, SLOWNESS_FRAMES, rng)
        heading += self.shake_degrees * _shake((frames,), rng)
        scale = self.scale * (1 + self.zoom) ** draw_drift(frames, SLOWNESS_FRAMES, rng)
        shift = self.shake_px * scale[:, None] * _shake((frames, 2), rng)
        return Pose(np.radians(heading), scale, shift)


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Each frame's turn, scale and shift."""

    heading: NDArray[np.float64]  # (N,), radians, clockwise on the screen
    scale: NDArray[np.float64]  # (N,), scene pixels a frame pixel
    shift: Points  # (N, 2), scene pixels

    def place(self, centres: Points, outline: Outline) -> Transforms:
        """Return `mosaic_from_frame` (N, 2, 3) of frames whose own centres are held over `centres` (N, 2)."""
        cos, sin = self.scale * np.cos(self.heading), self.scale * np.sin(self.heading)
        linear = np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=-2)
        origin = centres + self.shift - linear @ outline.centre
        return np.concatenate([linear, origin[:, :, None]], axis=2)


def _shake(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.clip(rng.standard_normal(shape), -SHAKE_LIMIT, SHAKE_LIMIT)
