"""The ground of a procedural landscape: smooth noise, parcels of land, colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Points


def fractal_noise(
    width: int, height: int, largest: int, smallest: int, rng: np.random.Generator, roughness: float = 0.6
) -> NDArray[np.float32]:
    """Sum smooth noise of cells from `largest` down to `smallest` pixels: (height, width), mean 0, deviation near 1.

    Both are powers of two. Every octave is half as large as the one before, and `roughness` times as strong.
    """
    cell, strength, power = largest, 1.0, 0.0
    total = np.zeros((math.ceil(height / cell), math.ceil(width / cell)), np.float32)
    while True:
        total += np.float32(strength) * rng.standard_normal(total.shape, dtype=np.float32)
        power += strength**2
        if cell <= smallest:
            break
        # A coarse octave is magnified while it is small, step by step, so that all octaves cost little more than the
        # finest.
        cell, strength = cell // 2, strength * roughness
        total = _magnify(total, 2)[: math.ceil(height / cell), : math.ceil(width / cell)]
    return (_magnify(total, cell) * np.float32(power**-0.5))[:height, :width]


def _magnify(field: NDArray[np.float32], times: int) -> NDArray[np.float32]:
    if times == 1:
        return field
    size = (field.shape[1] * times, field.shape[0] * times)
    return np.asarray(cv2.resize(field, size, interpolation=cv2.INTER_CUBIC), np.float32)


LARGEST_SIDE = 760.0
SMALLEST_SIDE = 230.0
BEND = 60.0
"""Pixels by which a boundary deviates from a straight line."""


@dataclass(frozen=True, slots=True)
class Land:
    """What grows on a parcel: two colours between which it varies, and its rows."""

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
    """A piece of land with one use."""

    land: Land
    border: Points  # (n, 2), closed, clockwise or not
    row_angle: float
    row_period: float
    tint: NDArray[np.float64]  # (3,), grey levels by which it differs from others of its kind

    def draw_on(self, labels: NDArray[np.int32], label: int) -> None:
        """Set the parcel's pixels to `label`."""
        cv2.fillPoly(labels, [np.round(self.border).astype(np.int32)], (label,))


def divide_land(width: int, height: int, rng: np.random.Generator) -> list[Parcel]:
    """Cover the picture with parcels, along one main direction that bends with the land."""
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
    """Divide a rectangle again and again across its longer side, not in the middle."""
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
    """Return a rectangle's border with enough points to bend it."""
    t = np.linspace(0.0, 1.0, 24, endpoint=False)
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    sides = np.roll(corners, -1, axis=0) - corners
    ring: Points = (corners[:, None] + t[None, :, None] * sides[:, None]).reshape(-1, 2)
    return ring


def _in_picture(border: Points, width: int, height: int) -> bool:
    low, high = border.min(axis=0), border.max(axis=0)
    return bool(low[0] < width and low[1] < height and (high > 0).all())


TRAM_LINES_APART = 88.0
"""Pixels between the tracks that a sprayer leaves in a crop."""


MIDDLE_GREY = 128.0
"""The brightness to which a contrast in grey levels refers. Darker land varies less, and keeps its colour."""


def paint_ground(width: int, height: int, parcels: Sequence[Parcel], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the land without anything that stands on it: (height, width, 3)."""
    labels = np.zeros((height, width), np.int32)
    for label, parcel in enumerate(parcels):
        parcel.draw_on(labels, label)
    broad = fractal_noise(width, height, 512, 64, rng)
    patchy = fractal_noise(width, height, 64, 8, rng, roughness=0.75)
    fine = fractal_noise(width, height, 8, 2, rng, roughness=0.8)
    light = np.array([parcel.land.light + parcel.tint for parcel in parcels], np.float32)
    dark = np.array([parcel.land.dark + parcel.tint for parcel in parcels], np.float32)
    # One row for each parcel: the direction of its rows over their period, their contrast, the strength of the patches,
    # and the frequency of the tram lines (0 for none).
    rows = np.array([_describe_rows(parcel) for parcel in parcels], np.float32)
    picture = np.empty((height, width, 3), np.uint8)
    _paint(picture, labels, broad, patchy, fine, light, dark, rows)
    return picture


def _describe_rows(parcel: Parcel) -> tuple[float, ...]:
    frequency = 1 / parcel.row_period
    has_tram_lines = parcel.land.name in ("wheat", "young crop", "rape", "maize")
    return (
        -np.sin(parcel.row_angle) * frequency,
        np.cos(parcel.row_angle) * frequency,
        parcel.land.contrast,
        parcel.land.patches,
        parcel.row_period / TRAM_LINES_APART if has_tram_lines else 0.0,
    )


@compiled
def _paint(
    picture: NDArray[np.uint8],
    labels: NDArray[np.int32],
    broad: NDArray[np.float32],
    patchy: NDArray[np.float32],
    fine: NDArray[np.float32],
    light: NDArray[np.float32],
    dark: NDArray[np.float32],
    rows: NDArray[np.float32],
) -> None:
    height, width = labels.shape
    for y in range(height):
        for x in range(width):
            parcel = labels[y, x]
            coarse, medium, small = broad[y, x], patchy[y, x], fine[y, x]
            # Patches push the rows aside a little, so that no two places of a field look the same.
            phase = x * rows[parcel, 0] + y * rows[parcel, 1] + 0.22 * medium + 0.10 * small
            grey = rows[parcel, 2] * np.sin(2 * np.pi * phase) * (0.75 + 0.35 * medium)
            grey += rows[parcel, 3] * (medium + 0.7 * small)
            # Tussocks and stones, bare spots and holes. Rare features make places distinct.
            grey += 18.0 * (max(small - 0.9, 0.0) - max(-small - 0.9, 0.0))
            tram = phase * rows[parcel, 4]
            from_track = abs(tram - np.floor(tram) - 0.5) * TRAM_LINES_APART
            if rows[parcel, 4] > 0 and 3.0 < from_track < 6.5:
                grey -= 20.0 + 5.0 * small
            # The sun is in the upper left. Slopes that face it are lighter.
            slope = broad[y, x] - broad[max(y - 6, 0), max(x - 6, 0)]
            sun = 1.0 - 0.9 * min(max(slope, -0.12), 0.12)
            mix = min(max(0.5 + 0.42 * coarse + 0.16 * medium, 0.0), 1.0)
            for c in range(3):
                value = light[parcel, c] * mix + dark[parcel, c] * (1 - mix)
                # Dry patches are redder, moist ones bluer.
                value = (value + grey * (0.4 + 0.6 * value / MIDDLE_GREY) + 3.5 * (1 - c) * coarse) * sun
                picture[y, x, c] = np.uint8(min(max(value, 0.0), 255.0))
