"""Where a frame may lie in another, when that is known roughly or not at all: correlation at a coarse level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, irfft, next_fast_len, rfft

from smalti.compiled import compiled, compiled_sums
from smalti.geometry.homographies import apply_map
from smalti.records import Expectation, Homographies
from smalti.registration.feature_pyramid import Level, Planes, pixels_of, planes_of, tangent_at, warp

REACH = 3.0
"""Standard deviations from the expected place that are searched."""

TURN_STEP = math.radians(7)
ZOOMS = (1.0, 1 / 1.2, 1.2)  # tried when nothing is known
USUAL_TURNS, USUAL_PLACES = 3, 2
"""Steps up to which, and without a zoom, most frames have turned that coincide at all; of the places found there, those
looked at before all other turns are searched."""

BLANKED = 3
"""Pixels of the level about a place that belong to it."""

Spectra: TypeAlias = NDArray[np.complex64]
"""(4, h, w): of the planes of a level."""

Likenesses: TypeAlias = NDArray[np.float32]
"""(h, w): by shift, -inf where the frames share too little or the place is too far from the expected one."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A map worth a closer look."""

    i_from_j: Homographies  # (3, 3), pixels of the level
    likeness: float  # what the frames have in common there, over what chance gives


def find_places(
    in_i: Level, in_j: Level, expected: Iterable[Expectation], wanted: int, least_shared: float
) -> Iterator[Place]:
    """Yield up to `wanted` places, the likeliest first, after a few likely ones of usual turns; in pixels of the level.

    Whoever takes no more than those few is spared the search of all other turns. Frames share at least `least_shared`
    of the smaller one's field. How far a frame may have turned goes with how far its centre may be off, as if its rim
    were as uncertain.
    """
    search = _Search(in_i, in_j, least_shared)
    expected = list(expected)
    found: list[Place] = []
    for expectation in expected:
        found = search.improve(found, wanted, expectation, _usual_poses(expectation, search.radius))
    first = found[:USUAL_PLACES]
    yield from first
    for expectation in expected:
        found = search.improve(found, wanted, expectation, _other_poses(expectation, search.radius))
    # Of equals the earlier stay, so that no place comes twice.
    yield from (place for place in found if not any(place is other for other in first))


class _Search:
    """What the correlations of two levels under all poses have in common."""

    def __init__(self, in_i: Level, in_j: Level, least_shared: float) -> None:
        self._height, self._width = height, width = in_j.shape[:2]
        self._centre = np.array([(width - 1) / 2, (height - 1) / 2])
        self.radius = math.hypot(*self._centre)
        self._pixels_j = pixels_of(in_j)
        shown_i, shown_j = planes_of(in_i), planes_of(in_j)
        self._usual = math.sqrt(_energy(shown_i) * _energy(shown_j))
        self._least = max(1.0, least_shared * float(min(shown_i[3].sum(), shown_j[3].sum())))
        self._sides = next_fast_len(in_i.shape[0] + height, True), next_fast_len(in_i.shape[1] + width, True)
        self._shifts = [_shifts(side, of_j) for side, of_j in zip(self._sides, (height, width), strict=True)]
        self._of_i = self._spectra(_inside(shown_i))

    def improve(
        self, found: list[Place], wanted: int, expectation: Expectation, poses: Iterable[NDArray[np.float64]]
    ) -> list[Place]:
        """Return the `wanted` likeliest places of those found and of those turned by poses (2, 2), the likeliest first.

        They are searched by the affine map that the expected one is at the frame's centre, and keep its perspective.
        """
        shifts_y, shifts_x = self._shifts
        in_reach = self._in_reach(expectation)
        expected = tangent_at(expectation.i_from_j, self._centre)
        perspective = np.linalg.inv(expected) @ expectation.i_from_j  # leaves the centre and what is next to it
        for turn in poses:
            # j turned and zoomed about its centre: what is left to find is a shift.
            turned_from_j = np.eye(3)
            turned_from_j[:2, :2] = linear = turn @ expected[:2, :2]
            turned_from_j[:2, 2] = self._centre - linear @ self._centre
            likeness = self._compare(turned_from_j, in_reach)
            worst = found[-1].likeness if len(found) == wanted else 0.0
            peaks = _peaks(likeness, wanted, worst)
            for row, column, height in peaks:
                shifted = np.array([[1.0, 0.0, shifts_x[column]], [0.0, 1.0, shifts_y[row]], [0.0, 0.0, 1.0]])
                found.append(Place(shifted @ turned_from_j @ perspective, height))
            if peaks:
                found = sorted(found, key=lambda place: -place.likeness)[:wanted]
        return found

    def _compare(self, turned_from_j: Homographies, in_reach: NDArray[np.bool_]) -> Likenesses:
        j_from_turned = np.asarray(np.linalg.inv(turned_from_j), dtype=np.float64)
        turned = warp(self._pixels_j, j_from_turned, self._height, self._width)
        product = np.empty((2, *self._of_i.shape[1:]), dtype=np.complex64)
        _correlate(self._of_i, self._spectra(_inside(turned)), product)
        both = irfft(ifft(product, axis=1, overwrite_x=True), self._sides[1], overwrite_x=True)
        likeness = np.asarray(both[0], dtype=np.float32)
        _judge(likeness, both[1], in_reach, np.float32(self._least), np.float32(self._usual))
        return likeness

    def _spectra(self, planes: Planes) -> Spectra:
        # One axis after the other: the rows that are added hold nothing.
        along_x = rfft(planes, self._sides[1])
        return np.asarray(fft(along_x, self._sides[0], axis=1, overwrite_x=True), dtype=np.complex64)

    def _in_reach(self, expectation: Expectation) -> NDArray[np.bool_]:
        """Return which shifts are searched (h, w)."""
        shifts_y, shifts_x = self._shifts
        middle = apply_map(expectation.i_from_j, self._centre[None])[0] - self._centre
        off = np.hypot(shifts_y[:, None] - middle[1], shifts_x - middle[0])
        return np.asarray(off <= REACH * expectation.sigma_px + 1.0)


def _usual_poses(expectation: Expectation, radius: float) -> Iterator[NDArray[np.float64]]:
    """Yield turns (2, 2) of the expected map that are small."""
    steps = min(USUAL_TURNS, len(_turns(expectation, radius)) // 2)
    for step in range(-steps, steps + 1):
        yield _turned(step, 1.0)


def _other_poses(expectation: Expectation, radius: float) -> Iterator[NDArray[np.float64]]:
    """Yield all others, as far apart as the closer look can bridge."""
    for zoom in ZOOMS if not math.isfinite(expectation.sigma_px) else ZOOMS[:1]:
        for step in _turns(expectation, radius):
            if zoom != 1.0 or abs(step) > USUAL_TURNS:
                yield _turned(step, zoom)


def _turns(expectation: Expectation, radius: float) -> range:
    """Return by how many steps a frame may have turned."""
    unknown = not math.isfinite(expectation.sigma_px)
    reach = math.pi if unknown else min(math.pi, REACH * expectation.sigma_px / radius)
    steps = round(reach / TURN_STEP)
    return range(-steps, steps + 1 if steps * TURN_STEP < math.pi - 1e-9 else steps)


def _turned(step: int, zoom: float) -> NDArray[np.float64]:
    cosine, sine = zoom * math.cos(step * TURN_STEP), zoom * math.sin(step * TURN_STEP)
    return np.array([[cosine, -sine], [sine, cosine]])


def _shifts(side: int, of_j: int) -> NDArray[np.int64]:
    """Return the shift that each entry along an axis of a circular correlation stands for."""
    return (np.arange(side) + of_j - 1) % side - (of_j - 1)


def _peaks(likeness: Likenesses, wanted: int, least: float) -> list[tuple[int, int, float]]:
    """Return row, column and height of the highest places above `least`; takes each one's neighbourhood away."""
    found: list[tuple[int, int, float]] = []
    while len(found) < wanted:
        row, column = divmod(int(np.argmax(likeness)), likeness.shape[1])
        height = float(likeness[row, column])
        if height <= least:
            break
        found.append((row, column, height))
        likeness[max(0, row - BLANKED) : row + BLANKED + 1, max(0, column - BLANKED) : column + BLANKED + 1] = -np.inf
    return found


def _inside(shown: Planes) -> Planes:
    """Return the same planes with features of 0 outside the field."""
    return np.asarray(shown * shown[3], dtype=np.float32)


def _energy(shown: Planes) -> float:
    """Return the mean squared length of the features inside the field."""
    return float((_inside(shown)[:3] ** 2).sum()) / max(float(shown[3].sum()), 1.0) + 1e-9


@compiled_sums
def _correlate(of_i: Spectra, of_j: Spectra, product: Spectra) -> None:
    """Fill `product` (2, h, w) with the spectra of what the features have in common and of what both frames show."""
    for y in range(of_i.shape[1]):
        for x in range(of_i.shape[2]):
            common = of_i[0, y, x] * np.conj(of_j[0, y, x])
            common += of_i[1, y, x] * np.conj(of_j[1, y, x])
            common += of_i[2, y, x] * np.conj(of_j[2, y, x])
            product[0, y, x] = common
            product[1, y, x] = of_i[3, y, x] * np.conj(of_j[3, y, x])


@compiled
def _judge(
    common: Likenesses, shared: NDArray[np.float32], in_reach: NDArray[np.bool_], least: np.float32, usual: np.float32
) -> None:
    """Turn what features have `common` into likenesses."""
    for y in range(common.shape[0]):
        for x in range(common.shape[1]):
            likeness = common[y, x] / (usual * np.sqrt(max(shared[y, x], np.float32(1))))
            common[y, x] = likeness if in_reach[y, x] and shared[y, x] >= least else np.float32(-np.inf)
