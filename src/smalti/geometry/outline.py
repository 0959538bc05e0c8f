"""The outline of a frame: the rectangle that it covers in its own pixels, and its units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smalti.errors import UsageError
from smalti.records import Points, Transforms


@dataclass(frozen=True, slots=True)
class Outline:
    """The rectangle Ω that every frame covers in its own coordinates."""

    left: float
    top: float
    right: float
    bottom: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.left, self.top, self.right, self.bottom]).all()):
            raise UsageError(f"a frame's outline must be finite, got {self}")
        if not (self.right > self.left and self.bottom > self.top):
            raise UsageError(f"a frame's outline must have an area, got {self}")

    @classmethod
    def of_pixels(cls, width: int, height: int) -> Outline:
        """Return the outline of an image whose top-left pixel has its centre at (0, 0)."""
        return cls(-0.5, -0.5, width - 0.5, height - 0.5)

    @property
    def width(self) -> float:
        """Extent along x, px."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Extent along y, px."""
        return self.bottom - self.top

    @property
    def area(self) -> float:
        """Width times height, px²."""
        return self.width * self.height

    @property
    def centre(self) -> Points:
        """(2,): the centre, the paper's γ, px."""
        return np.array(self.centre_x_y)

    @property
    def centre_x_y(self) -> tuple[float, float]:
        """The centre as two numbers, px."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    @property
    def corners(self) -> Points:
        """(4, 2), clockwise on the screen from the top left."""
        return np.array(
            [
                [self.left, self.top],
                [self.right, self.top],
                [self.right, self.bottom],
                [self.left, self.bottom],
            ]
        )

    @property
    def inner_half_side(self) -> float:
        """a_in: half the side of the largest square that fits into Ω at every angle."""
        return min(self.width, self.height) / (2 * math.sqrt(2))

    @property
    def outer_half_side(self) -> float:
        """a_out: half the side of a square that contains Ω at every angle."""
        return math.hypot(self.width, self.height) / 2

    @property
    def unit(self) -> float:
        """A quarter of width plus height, px: the engine's unit of length. It keeps equations well conditioned."""
        return (self.width + self.height) / 4

    @property
    def unit_from_pixels(self) -> Transforms:
        """(2, 3): from pixels to units, with the origin at the frame's centre."""
        x, y = self.centre
        return np.array([[1.0, 0.0, -x], [0.0, 1.0, -y]]) / self.unit

    def scaled(self, factor: float) -> Outline:
        """Return the outline scaled by `factor` about its centre."""
        x, y = self.centre_x_y
        half_width, half_height = factor * self.width / 2, factor * self.height / 2
        return Outline(x - half_width, y - half_height, x + half_width, y + half_height)

    def contains(self, points: Points, tolerance: float = 0.0) -> np.ndarray:
        """Tell for each point (..., 2) whether it lies in Ω."""
        x, y = points[..., 0], points[..., 1]
        inside: np.ndarray = (
            (x >= self.left - tolerance)
            & (x <= self.right + tolerance)
            & (y >= self.top - tolerance)
            & (y <= self.bottom + tolerance)
        )
        return inside
