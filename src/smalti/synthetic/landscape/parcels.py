"""The land divided into fields, meadows and woods."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.records import Points

LARGEST_SIDE = 760.0
SMALLEST_SIDE = 230.0
BEND = 60.0
"""Pixels by which a boundary strays from a straight line."""


@dataclass(frozen=True, slots=True)
class Land:
    """What grows on a parcel: two colours between which it varies, and how its rows look."""

    name: str
    light: tuple[int, int, int]
    dark: tuple[int, int, int]
    period: tuple[float, float]  # of the rows, in pixels
    contrast: float  # of the rows, in grey levels
    patches: float  # strength of the irregular patches, in grey levels
    share: float


LANDS = (
    Land("wheat", (207, 181, 122), (176, 150, 92), (5.0, 8.0), 9.0, 9.0, 1.6),
    Land("stubble", (222, 203, 154), (194, 168, 116), (7.0, 11.0), 11.0, 10.0, 1.2),
    Land("young crop", (121, 150, 74), (92, 122, 56), (6.0, 9.0), 10.0, 9.0, 1.5),
    Land("maize", (78, 112, 52), (58, 88, 42), (9.0, 12.0), 15.0, 8.0, 1.2),
    Land("ploughed", (146, 115, 88), (118, 90, 68), (8.0, 13.0), 14.0, 10.0, 1.4),
    Land("harrowed", (172, 144, 114), (148, 121, 94), (16.0, 26.0), 7.0, 10.0, 0.8),
    Land("meadow", (136, 158, 86), (106, 133, 66), (30.0, 46.0), 8.0, 11.0, 1.3),
    Land("pasture", (148, 152, 92), (112, 134, 72), (90.0, 140.0), 3.0, 15.0, 1.0),
    Land("rape", (216, 199, 72), (194, 180, 62), (6.0, 8.0), 8.0, 8.0, 0.5),
    Land("orchard", (138, 154, 88), (116, 134, 72), (20.0, 26.0), 6.0, 9.0, 0.7),
    Land("wood", (66, 82, 46), (50, 66, 38), (60.0, 90.0), 2.0, 10.0, 1.7),
)


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """A piece of land with one owner and one use."""

    land: Land
    border: Points  # (n, 2), closed, clockwise or not
    row_angle: float
    row_period: float
    tint: NDArray[np.float64]  # (3,), grey levels by which it differs from others of its kind

    def draw_on(self, labels: NDArray[np.int32], label: int) -> None:
        """Set the parcel's pixels to `label`."""
        cv2.fillPoly(labels, [np.round(self.border).astype(np.int32)], (label,))


def divide_land(width: int, height: int, rng: np.random.Generator) -> list[Parcel]:
    """Cover the picture with parcels, along one main direction that the land bends."""
    angle = rng.uniform(-0.5, 0.5)
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    reach = np.hypot(width, height) / 2 + 2 * BEND
    middle = np.array([width, height]) / 2
    waves = [(rng.uniform(0, 2 * np.pi, 2), rng.uniform(900, 2600)) for _ in range(3)]
    shares = np.array([land.share for land in LANDS])
    parcels = []
    for left, top, right, bottom in _split((-reach, -reach, reach, reach), rng):
        ring = _ring(left, top, right, bottom)
        border = middle + ring[:, :1] * along + ring[:, 1:] * across
        for phase, length in waves:
            border = border + BEND / 2 * np.sin(border[:, ::-1] * 2 * np.pi / length + phase)
        land = LANDS[rng.choice(len(LANDS), p=shares / shares.sum())]
        longer = right - left > bottom - top
        row_angle = angle + (0.0 if longer else np.pi / 2) + rng.normal(0, 0.04)
        parcels.append(
            Parcel(land, border, row_angle, rng.uniform(*land.period), rng.normal(0, 8) + rng.normal(0, 3, 3))
        )
    return [parcel for parcel in parcels if _in_picture(parcel.border, width, height)]


def _split(
    rectangle: tuple[float, float, float, float], rng: np.random.Generator
) -> list[tuple[float, float, float, float]]:
    """Halve a rectangle again and again across its longer side, off the middle."""
    left, top, right, bottom = rectangle
    sides = right - left, bottom - top
    if max(sides) < LARGEST_SIDE and (max(sides) < 2 * SMALLEST_SIDE or rng.random() < 0.45):
        return [rectangle]
    part = rng.uniform(0.36, 0.64)
    if sides[0] > sides[1] * rng.uniform(0.75, 1.3):
        cut = left + part * sides[0]
        halves = [(left, top, cut, bottom), (cut, top, right, bottom)]
    else:
        cut = top + part * sides[1]
        halves = [(left, top, right, cut), (left, cut, right, bottom)]
    return [piece for half in halves for piece in _split(half, rng)]


def _ring(left: float, top: float, right: float, bottom: float) -> Points:
    """Return a rectangle's border with so many points that it can be bent."""
    t = np.linspace(0.0, 1.0, 24, endpoint=False)
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    sides = np.roll(corners, -1, axis=0) - corners
    ring: Points = (corners[:, None] + t[None, :, None] * sides[:, None]).reshape(-1, 2)
    return ring


def _in_picture(border: Points, width: int, height: int) -> bool:
    low, high = border.min(axis=0), border.max(axis=0)
    return bool(low[0] < width and low[1] < height and (high > 0).all())
