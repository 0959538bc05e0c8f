"""Where a frame may lie in another, when that is known roughly or not at all: correlation at a coarse level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft2, next_fast_len, rfft2

from smalti.geometry.affine import apply, invert
from smalti.records import Expectation, Transforms
from smalti.registration.pyramid import Level
from smalti.registration.warp import Planes, pixels_of, planes_of, warp

REACH = 3.0
"""Standard deviations from the expected place that are searched."""

TURN_STEP = math.radians(7)
ZOOMS = (1.0, 1 / 1.2, 1.2)  # tried when nothing is known
BLANKED = 3
"""Pixels of the level about a place that belong to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A map worth a closer look."""

    i_from_j: Transforms  # (2, 3), pixels of the level
    likeness: float  # what the frames have in common there, over what chance gives


def find_places(
    in_i: Level, in_j: Level, expected: Iterable[Expectation], wanted: int, least_shared: float
) -> list[Place]:
    """Return up to `wanted` places, the likeliest first; all in pixels of the level.

    Frames share at least `least_shared` of the smaller one's field. How far a frame may have turned goes with how far
    its centre may be off, as if its rim were as uncertain.
    """
    height, width = in_j.shape[:2]
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    shown_i, shown_j = planes_of(in_i), planes_of(in_j)
    pixels_j = pixels_of(in_j)
    sides = (next_fast_len(in_i.shape[0] + height, True), next_fast_len(in_i.shape[1] + width, True))
    of_i = rfft2(_inside(shown_i), sides)
    usual = math.sqrt(_energy(shown_i) * _energy(shown_j))
    least = max(1.0, least_shared * float(min(shown_i[3].sum(), shown_j[3].sum())))
    found: list[Place] = []
    for expectation in expected:
        middle = apply(expectation.i_from_j, centre[None])[0] - centre
        for linear in _poses(expectation, math.hypot(*centre)):
            # j turned and zoomed about its centre: what is left to find is a shift.
            turned_from_j = np.column_stack([linear, centre - linear @ centre])
            turned = warp(pixels_j, invert(turned_from_j), height, width)
            product = of_i * np.conj(rfft2(_inside(turned), sides))
            likeness, shared = irfft2(np.stack([product[:3].sum(axis=0), product[3]]), sides)
            likeness /= usual * np.sqrt(np.maximum(shared, 1.0))
            shifts_y, shifts_x = (_shifts(side, of_j) for side, of_j in zip(sides, (height, width), strict=True))
            off = np.hypot(shifts_y[:, None] - middle[1], shifts_x - middle[0])
            likeness[(shared < least) | (off > REACH * expectation.sigma_px + 1.0)] = -np.inf
            for row, column in _peaks(likeness, wanted):
                shift = np.array([shifts_x[column], shifts_y[row]])
                shifted = np.column_stack([linear, turned_from_j[:, 2] + shift])
                found.append(Place(shifted, float(likeness[row, column])))
    return sorted(found, key=lambda place: -place.likeness)[:wanted]


def _poses(expectation: Expectation, radius: float) -> Iterator[NDArray[np.float64]]:
    """Yield linear parts (2, 2) about the expected one, as far apart as the closer look can bridge."""
    linear = expectation.i_from_j[:, :2]
    unknown = not math.isfinite(expectation.sigma_px)
    reach = math.pi if unknown else min(math.pi, REACH * expectation.sigma_px / radius)
    steps = round(reach / TURN_STEP)
    for zoom in ZOOMS if unknown else ZOOMS[:1]:
        for step in range(-steps, steps + 1 if steps * TURN_STEP < math.pi - 1e-9 else steps):
            cosine, sine = zoom * math.cos(step * TURN_STEP), zoom * math.sin(step * TURN_STEP)
            yield np.array([[cosine, -sine], [sine, cosine]]) @ linear


def _shifts(side: int, of_j: int) -> NDArray[np.int64]:
    """Return the shift that each entry along an axis of a circular correlation stands for."""
    return (np.arange(side) + of_j - 1) % side - (of_j - 1)


def _peaks(likeness: NDArray[np.float32], wanted: int) -> Iterator[tuple[int, int]]:
    """Yield the highest places, each with its neighbourhood taken away before the next."""
    left = likeness.copy()
    for _ in range(wanted):
        row, column = (int(k) for k in np.unravel_index(np.argmax(left), left.shape))
        if left[row, column] <= 0:
            return
        yield row, column
        left[max(0, row - BLANKED) : row + BLANKED + 1, max(0, column - BLANKED) : column + BLANKED + 1] = -np.inf


def _inside(shown: Planes) -> Planes:
    """Return the same planes with features of 0 outside the field."""
    return np.asarray(shown * shown[3], dtype=np.float32)


def _energy(shown: Planes) -> float:
    """Return the mean squared length of the features inside the field."""
    return float((_inside(shown)[:3] ** 2).sum()) / max(float(shown[3].sum()), 1.0) + 1e-9
