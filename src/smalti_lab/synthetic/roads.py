"""A river, roads, and the tracks and verges between parcels."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.records import Points
from smalti_lab.synthetic.terrain import Parcel

RIVER_WIDTH = 92.0
ROAD_WIDTH = 26
SUBPIXEL_BITS = 4
Colour = tuple[int, int, int]
CARS: tuple[Colour, ...] = (
    (214, 216, 218),
    (158, 40, 36),
    (44, 70, 122),
    (40, 42, 46),
    (226, 226, 220),
    (122, 128, 132),
)


def draw_curve(
    width: int, height: int, rng: np.random.Generator, *, upright: bool, place: float, bends: float
) -> Points:
    """Draw a curve across the whole picture, from left to right or `upright`: (n, 2), about 8 pixels apart.

    `place` is where it crosses, as a fraction of the other side. `bends` are the pixels by which it deviates.
    """
    length, breadth = (height, width) if upright else (width, height)
    along = np.arange(-200.0, length + 200.0, 8.0)
    across = np.full_like(along, place * breadth) + rng.normal(0, 0.12) * (along - length / 2)
    for wave in (2600.0, 1300.0, 620.0):
        across += bends * wave / 2600.0 * rng.normal() * np.sin(2 * np.pi * (along / wave + rng.random()))
    return np.column_stack([across, along] if upright else [along, across])


def draw_river(picture: NDArray[np.uint8], curve: Points, rng: np.random.Generator) -> None:
    """Paint wet banks, gravel, and water that is deeper in its middle."""
    swell = 1 + 0.25 * np.sin(np.arange(len(curve)) / 23.0 + rng.random() * 6)
    for part, colour in ((1.45, (112, 124, 70)), (1.12, (186, 172, 138)), (1.0, (96, 118, 104)), (0.72, (74, 102, 98))):
        _draw_ribbon(picture, curve, RIVER_WIDTH * part * swell, colour)
    across = normals(curve)
    for start in rng.integers(len(curve) - 6, size=3 * len(curve)):
        streak = slice(start, start + int(rng.integers(2, 6)))
        off = rng.uniform(-0.46, 0.46) * RIVER_WIDTH * swell[streak]
        grey = rng.normal(0, 14)
        _draw_line(picture, curve[streak] + off[:, None] * across[streak], 1, _shift((84, 110, 102), grey))


def draw_road(picture: NDArray[np.uint8], curve: Points) -> None:
    """Paint verge, asphalt, the lines at its edges and the dashes in its middle."""
    _draw_line(picture, curve, ROAD_WIDTH + 16, (134, 140, 88))
    _draw_line(picture, curve, ROAD_WIDTH + 5, (172, 162, 138))
    _draw_line(picture, curve, ROAD_WIDTH, (118, 117, 118))
    across = normals(curve)
    for side in (-1, 1):
        _draw_line(picture, curve + side * (ROAD_WIDTH / 2 - 2.5) * across, 1, (196, 196, 190))
    for start in range(0, len(curve) - 3, 6):
        _draw_line(picture, curve[start : start + 3], 2, (222, 222, 214))


def draw_cars(picture: NDArray[np.uint8], curve: Points, rng: np.random.Generator) -> None:
    """Put cars on a road, each on its right-hand side."""
    across = normals(curve)
    for n in rng.choice(len(curve) - 2, size=len(curve) // 26, replace=False):
        side = int(rng.choice([-1, 1]))
        spot = curve[n : n + 2] + side * (ROAD_WIDTH / 4) * across[n]
        paint = _shift(CARS[int(rng.integers(len(CARS)))], rng.normal(0, 12))
        _draw_ribbon(picture, spot + 2.0, np.full(2, 7.0), (62, 62, 66))
        _draw_ribbon(picture, _stretch(spot, 15.0), np.full(2, 7.0), paint)
        _draw_ribbon(picture, _stretch(spot, 8.0), np.full(2, 5.5), (52, 60, 70))
        _draw_ribbon(picture, _stretch(spot, 5.0), np.full(2, 5.5), paint)


def draw_lane(picture: NDArray[np.uint8], curve: Points) -> None:
    """Paint a narrow street without lines."""
    _draw_line(picture, curve, 18, (168, 160, 134))
    _draw_line(picture, curve, 13, (140, 137, 134))


def draw_bounds(picture: NDArray[np.uint8], parcels: Sequence[Parcel], rng: np.random.Generator) -> None:
    """Paint a verge around every parcel, and a farm track along some."""
    for parcel in parcels:
        _draw_line(picture, parcel.border, int(rng.integers(3, 8)), (128, 140, 82), closed=True)
    for parcel in parcels:
        if rng.random() < 0.5:
            continue
        first = int(rng.integers(4)) * len(parcel.border) // 4
        side = np.roll(parcel.border, -first, axis=0)[: len(parcel.border) // 4 + 1]
        _draw_line(picture, side, 11, (150, 148, 96))
        across = normals(side)
        for track in (-2.6, 2.6):
            _draw_line(picture, side + track * across, 3, (204, 184, 146))


def normals(curve: Points) -> Points:
    """Return the unit vectors (n, 2) at right angles to a curve."""
    tangent = np.gradient(curve, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.column_stack([-tangent[:, 1], tangent[:, 0]])


def _draw_line(
    picture: NDArray[np.uint8], curve: Points, thickness: int, colour: Colour, *, closed: bool = False
) -> None:
    fixed = np.round(curve * 2**SUBPIXEL_BITS).astype(np.int32)
    cv2.polylines(picture, [fixed], closed, colour, thickness, cv2.LINE_AA, SUBPIXEL_BITS)


def _draw_ribbon(picture: NDArray[np.uint8], curve: Points, widths: NDArray[np.float64], colour: Colour) -> None:
    half = normals(curve) * widths[:, None] / 2
    band = np.concatenate([curve + half, (curve - half)[::-1]])
    cv2.fillPoly(picture, [np.round(band * 2**SUBPIXEL_BITS).astype(np.int32)], colour, cv2.LINE_AA, SUBPIXEL_BITS)


def _stretch(ends: Points, length: float) -> Points:
    """Return a segment of this length about the same centre."""
    middle = ends.mean(axis=0)
    stretched: Points = middle + (ends - middle) * (length / np.linalg.norm(ends[1] - ends[0]))
    return stretched


def _shift(colour: Colour, grey: float) -> Colour:
    red, green, blue = (int(min(max(value + grey, 0), 255)) for value in colour)
    return red, green, blue
