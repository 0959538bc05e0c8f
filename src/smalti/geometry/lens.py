"""The radial distortion of a lens, one lens for all frames of a sequence.

Positions x are relative to the centre of a frame, in half its longer side. A point at x in a frame (*distorted*, as
recorded) would be at x (1 + k₁|x|² + k₂|x|⁴) without distortion (*undistorted*). Homographies relate undistorted
points. Pictures, clicks and landmarks are distorted.

`Lens` comes first, then landmarks, then the kernels that distort.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.outline import Outline
from smalti.records import Landmarks, Points

FORMULA = (
    "From a pixel of the recorded frame to its undistorted pixel: subtract centre and divide by unit_px to get (x, y), "
    "let r2 = x*x + y*y, multiply (x, y) by 1 + k1*r2 + k2*r2*r2, multiply by unit_px and add centre. "
    "The inverse must be solved numerically. Homographies map undistorted pixels to undistorted pixels."
)
"""For other programs: written to files next to the coefficients."""

RIM_STEPS = 32
"""Points per side of an undistorted border. A polygon through them differs from the curve by a thousandth of the side's
sagitta."""

NEWTON_STEPS = 12
SMALLEST_STEP = 1e-12


class LensRecord(TypedDict):
    """A lens in a file for other programs."""

    model: str
    k1: float
    k2: float
    centre: list[float]
    unit_px: float
    formula: str


@dataclass(frozen=True, slots=True)
class Lens:
    """The radial distortion of a camera whose frames have this outline."""

    outline: Outline
    k1: float = 0.0
    k2: float = 0.0

    @property
    def is_undistorted(self) -> bool:
        """Tell whether the lens has no distortion."""
        return self.k1 == 0.0 and self.k2 == 0.0

    def moved(self, k1: float, k2: float) -> Lens:
        """Return a lens with `k1` and `k2` added to its coefficients."""
        return replace(self, k1=self.k1 + k1, k2=self.k2 + k2)

    def by_coefficients(self, points: Points) -> NDArray[np.float64]:
        """Return the derivatives (n, 2, 2), px, of undistorted points by k₁ and k₂, given distorted points (n, 2)."""
        offset = (points - self.outline.centre) / self.unit
        squared = np.sum(offset**2, axis=1, keepdims=True)
        return np.stack([offset * squared, offset * squared**2], axis=2) * self.unit

    @property
    def unit(self) -> float:
        """Half the longer side of a frame, px."""
        return max(self.outline.width, self.outline.height) / 2.0

    @property
    def numbers(self) -> tuple[float, float, float, float, float]:
        """Centre x and y, unit, k₁, k₂: as kernels take them."""
        return (*self.outline.centre_x_y, self.unit, self.k1, self.k2)

    @property
    def rim(self) -> Points:
        """(n, 2): undistorted points along a frame's border, clockwise from the top left; 4 without distortion."""
        corners = self.outline.corners
        if self.is_undistorted:
            return corners
        along = np.linspace(0.0, 1.0, RIM_STEPS, endpoint=False)[:, None]
        sides = [
            start + along * (end - start) for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True)
        ]
        return self.undistort(np.concatenate(sides))

    @property
    def stretch(self) -> float:
        """The relative change of a corner's distance from the centre by undistortion."""
        squared = float(np.sum((self.outline.corners[0] - self.outline.centre) ** 2)) / self.unit**2
        return squared * (self.k1 + squared * self.k2)

    @property
    def folds(self) -> bool:
        """Tell whether two points of a frame have the same undistorted point, which no real lens does."""
        squared = float(np.sum((self.outline.corners[0] - self.outline.centre) ** 2)) / self.unit**2
        turning = [squared]
        if self.k2 != 0.0:
            turning.append(min(max(-3.0 * self.k1 / (10.0 * self.k2), 0.0), squared))
        return any(1.0 + at * (3.0 * self.k1 + 5.0 * at * self.k2) <= 0.0 for at in turning)

    @property
    def record(self) -> LensRecord | None:
        """The lens as written to files for other programs; None without distortion."""
        if self.is_undistorted:
            return None
        return {
            "model": "radial",
            "k1": self.k1,
            "k2": self.k2,
            "centre": list(self.outline.centre_x_y),
            "unit_px": self.unit,
            "formula": FORMULA,
        }

    def undistort(self, points: Points) -> Points:
        """Return the undistorted points of distorted ones (..., 2), px."""
        if self.is_undistorted:
            return np.asarray(points, dtype=np.float64)
        offset = (np.asarray(points, dtype=np.float64) - self.outline.centre) / self.unit
        squared = np.sum(offset**2, axis=-1, keepdims=True)
        undistorted: Points = offset * (1.0 + squared * (self.k1 + squared * self.k2)) * self.unit + self.outline.centre
        return undistorted

    def distort(self, points: Points) -> Points:
        """Return the distorted points of undistorted ones (..., 2), px: the inverse of `undistort`.

        Beyond the radius up to which the distortion is one to one, the farthest point of that range is returned.
        """
        points = np.asarray(points, dtype=np.float64)
        if self.is_undistorted:
            return points
        distorted = np.empty((points.size // 2, 2))
        _distort(np.ascontiguousarray(points.reshape(-1, 2)), *self.numbers, distorted)
        return distorted.reshape(points.shape)

    def slopes(self, points: Points) -> NDArray[np.float64]:
        """Return the derivatives (..., 2, 2) of `undistort` at distorted points (..., 2)."""
        offset = (np.asarray(points, dtype=np.float64) - self.outline.centre) / self.unit
        squared = np.sum(offset**2, axis=-1)[..., None, None]
        outer = offset[..., :, None] * offset[..., None, :]
        along = (1.0 + squared * (self.k1 + squared * self.k2)) * np.eye(2)
        slopes: NDArray[np.float64] = along + (2.0 * self.k1 + 4.0 * self.k2 * squared) * outer
        return slopes


def undistort_landmarks(landmarks: Landmarks, lens: Lens) -> Landmarks:
    """Return landmarks with undistorted points in both frames."""
    if lens.is_undistorted:
        return landmarks
    return replace(
        landmarks,
        points_i=lens.undistort(landmarks.points_i),
        points_j=lens.undistort(landmarks.points_j),
        along=undistort_directions(landmarks, lens),
    )


def undistort_directions(landmarks: Landmarks, lens: Lens) -> NDArray[np.float64] | None:
    """Return the directions (n, 2) of landmarks along curves in frame i as they are without the lens."""
    if landmarks.along is None:
        return None
    along = np.einsum("nab,nb->na", lens.slopes(landmarks.points_i), landmarks.along)
    length = np.linalg.norm(along, axis=1, keepdims=True)
    return np.asarray(np.divide(along, length, out=np.zeros_like(along), where=length > 0))


@compiled
def distort_radius(undistorted: float, k1: float, k2: float) -> float:
    """Return the distorted distance from the centre for an undistorted one, both in half the longer side."""
    # The distortion is one to one up to the radius where its derivative 1 + 3 k1 r² + 5 k2 r⁴ is 0.
    farthest = math.inf
    if k2 == 0.0:
        if k1 < 0.0:
            farthest = math.sqrt(-1.0 / (3.0 * k1))
    else:
        inside = 9.0 * k1 * k1 - 20.0 * k2
        if inside >= 0.0:
            for sign in (-1.0, 1.0):
                squared = (-3.0 * k1 + sign * math.sqrt(inside)) / (10.0 * k2)
                if squared > 0.0:
                    farthest = min(farthest, math.sqrt(squared))
    radius = min(undistorted, farthest)
    for _ in range(NEWTON_STEPS):
        squared = radius * radius
        value = radius * (1.0 + squared * (k1 + squared * k2)) - undistorted
        slope = 1.0 + squared * (3.0 * k1 + 5.0 * squared * k2)
        if slope <= 1e-9:
            break
        step = value / slope
        radius = min(max(radius - step, 0.0), farthest)
        if abs(step) <= SMALLEST_STEP:
            break
    return radius


@compiled
def distort_point(
    x: float, y: float, centre_x: float, centre_y: float, unit: float, k1: float, k2: float
) -> tuple[float, float]:
    """Return the distorted point of an undistorted one, px."""
    dx, dy = (x - centre_x) / unit, (y - centre_y) / unit
    undistorted = math.sqrt(dx * dx + dy * dy)
    if undistorted == 0.0:
        return x, y
    scale = distort_radius(undistorted, k1, k2) / undistorted
    return dx * scale * unit + centre_x, dy * scale * unit + centre_y


@compiled
def _distort(
    points: NDArray[np.float64],
    centre_x: float,
    centre_y: float,
    unit: float,
    k1: float,
    k2: float,
    distorted: NDArray[np.float64],
) -> None:
    for n in range(len(points)):
        distorted[n, 0], distorted[n, 1] = distort_point(points[n, 0], points[n, 1], centre_x, centre_y, unit, k1, k2)
