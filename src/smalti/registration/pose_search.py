"""Search for a frame's pose in another frame, known roughly or not at all, by correlation at a coarse level."""

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
"""Standard deviations from the expected position that are searched."""

TURN_STEP = math.radians(7)
ZOOMS = (1.0, 1 / 1.2, 1.2)  # tried when nothing is known
USUAL_TURNS, USUAL_POSES = 3, 2
"""Largest number of turn steps, without a zoom, of most overlapping frames.

The best poses found there, this many, are yielded before all other turns are searched."""

BLANKED = 3
"""Pixels of the level around a peak that belong to it."""

Spectra: TypeAlias = NDArray[np.complex64]
"""(4, h, w): of the planes of a level."""

Likenesses: TypeAlias = NDArray[np.float32]
"""(h, w): by shift; -inf where the frames share too little or the position is too far from the expected one."""


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """A candidate map."""

    i_from_j: Homographies  # (3, 3), pixels of the level
    likeness: float  # correlation of the frames' features, over that by chance


def find_poses(
    in_i: Level, in_j: Level, expected: Iterable[Expectation], wanted: int, least_shared: float
) -> Iterator[Pose]:
    """Yield up to `wanted` poses, best first, after a few good ones at usual turns; in pixels of the level.

    A caller that takes only those few saves the search of all other turns. Frames share at least `least_shared` of the
    smaller one's field. The range of turns follows from the uncertainty of the position, as if the frame's rim were as
    uncertain as its centre.
    """
    search = _Search(in_i, in_j, least_shared)
    expected = list(expected)
    found: list[Pose] = []
    for expectation in expected:
        found = search.improve(found, wanted, expectation, _usual_turns(expectation, search.radius))
    first = found[:USUAL_POSES]
    yield from first
    for expectation in expected:
        found = search.improve(found, wanted, expectation, _other_turns(expectation, search.radius))
    # Sorting keeps the earlier of equals first, so that no pose is yielded twice.
    yield from (pose for pose in found if not any(pose is other for other in first))


class _Search:
    """The data that the correlations of two levels share, for all turns."""

    def __init__(self, in_i: Level, in_j: Level, least_shared: float) -> None:
        self._height, self._width = height, width = in_j.shape[:2]
        self._centre = np.array([(width - 1) / 2, (height - 1) / 2])
        self.radius = math.hypot(*self._centre)
        self._pixels_j = pixels_of(in_j)
        planes_i, planes_j = planes_of(in_i), planes_of(in_j)
        self._typical = math.sqrt(_energy(planes_i) * _energy(planes_j))
        self._least = max(1.0, least_shared * float(min(planes_i[3].sum(), planes_j[3].sum())))
        self._sides = next_fast_len(in_i.shape[0] + height, True), next_fast_len(in_i.shape[1] + width, True)
        self._shifts = [_shifts(side, of_j) for side, of_j in zip(self._sides, (height, width), strict=True)]
        self._of_i = self._spectra(_inside(planes_i))

    def improve(
        self, found: list[Pose], wanted: int, expectation: Expectation, turns: Iterable[NDArray[np.float64]]
    ) -> list[Pose]:
        """Return the `wanted` best poses of those found and of those under turns (2, 2), best first.

        They are searched with the affine map that approximates the expected one at the frame's centre, and keep its
        perspective.
        """
        shifts_y, shifts_x = self._shifts
        in_reach = self._in_reach(expectation)
        expected = tangent_at(expectation.i_from_j, self._centre)
        perspective = np.linalg.inv(expected) @ expectation.i_from_j  # fixes the centre and its neighbourhood
        for turn in turns:
            # j is turned and zoomed about its centre; only a shift remains unknown.
            turned_from_j = np.eye(3)
            turned_from_j[:2, :2] = linear = turn @ expected[:2, :2]
            turned_from_j[:2, 2] = self._centre - linear @ self._centre
            likeness = self._compare(turned_from_j, in_reach)
            worst = found[-1].likeness if len(found) == wanted else 0.0
            peaks = _peaks(likeness, wanted, worst)
            for row, column, height in peaks:
                shifted = np.array([[1.0, 0.0, shifts_x[column]], [0.0, 1.0, shifts_y[row]], [0.0, 0.0, 1.0]])
                found.append(Pose(shifted @ turned_from_j @ perspective, height))
            if peaks:
                found = sorted(found, key=lambda pose: -pose.likeness)[:wanted]
        return found

    def _compare(self, turned_from_j: Homographies, in_reach: NDArray[np.bool_]) -> Likenesses:
        j_from_turned = np.asarray(np.linalg.inv(turned_from_j), dtype=np.float64)
        turned = warp(self._pixels_j, j_from_turned, self._height, self._width)
        product = np.empty((2, *self._of_i.shape[1:]), dtype=np.complex64)
        _correlate(self._of_i, self._spectra(_inside(turned)), product)
        both = irfft(ifft(product, axis=1, overwrite_x=True), self._sides[1], overwrite_x=True)
        likeness = np.asarray(both[0], dtype=np.float32)
        _to_likeness(likeness, both[1], in_reach, np.float32(self._least), np.float32(self._typical))
        return likeness

    def _spectra(self, planes: Planes) -> Spectra:
        # One axis after the other: the padding rows are zero.
        along_x = rfft(planes, self._sides[1])
        return np.asarray(fft(along_x, self._sides[0], axis=1, overwrite_x=True), dtype=np.complex64)

    def _in_reach(self, expectation: Expectation) -> NDArray[np.bool_]:
        """Return the shifts (h, w) that are searched."""
        shifts_y, shifts_x = self._shifts
        middle = apply_map(expectation.i_from_j, self._centre[None])[0] - self._centre
        off = np.hypot(shifts_y[:, None] - middle[1], shifts_x - middle[0])
        return np.asarray(off <= REACH * expectation.sigma_px + 1.0)


def _usual_turns(expectation: Expectation, radius: float) -> Iterator[NDArray[np.float64]]:
    """Yield small turns (2, 2) of the expected map."""
    steps = min(USUAL_TURNS, len(_turn_steps(expectation, radius)) // 2)
    for step in range(-steps, steps + 1):
        yield _turned(step, 1.0)


def _other_turns(expectation: Expectation, radius: float) -> Iterator[NDArray[np.float64]]:
    """Yield all other turns, in steps that the alignment can bridge."""
    for zoom in ZOOMS if not math.isfinite(expectation.sigma_px) else ZOOMS[:1]:
        for step in _turn_steps(expectation, radius):
            if zoom != 1.0 or abs(step) > USUAL_TURNS:
                yield _turned(step, zoom)


def _turn_steps(expectation: Expectation, radius: float) -> range:
    """Return the numbers of steps by which a frame may have turned."""
    unknown = not math.isfinite(expectation.sigma_px)
    reach = math.pi if unknown else min(math.pi, REACH * expectation.sigma_px / radius)
    steps = round(reach / TURN_STEP)
    return range(-steps, steps + 1 if steps * TURN_STEP < math.pi - 1e-9 else steps)


def _turned(step: int, zoom: float) -> NDArray[np.float64]:
    cosine, sine = zoom * math.cos(step * TURN_STEP), zoom * math.sin(step * TURN_STEP)
    return np.array([[cosine, -sine], [sine, cosine]])


def _shifts(side: int, of_j: int) -> NDArray[np.int64]:
    """Return the shift of each entry along an axis of a circular correlation."""
    return (np.arange(side) + of_j - 1) % side - (of_j - 1)


def _peaks(likeness: Likenesses, wanted: int, least: float) -> list[tuple[int, int, float]]:
    """Return row, column and height of the highest peaks above `least`; blanks each one's neighbourhood."""
    found: list[tuple[int, int, float]] = []
    while len(found) < wanted:
        row, column = divmod(int(np.argmax(likeness)), likeness.shape[1])
        height = float(likeness[row, column])
        if height <= least:
            break
        found.append((row, column, height))
        likeness[max(0, row - BLANKED) : row + BLANKED + 1, max(0, column - BLANKED) : column + BLANKED + 1] = -np.inf
    return found


def _inside(planes: Planes) -> Planes:
    """Return the same planes with features of 0 outside the field."""
    return np.asarray(planes * planes[3], dtype=np.float32)


def _energy(planes: Planes) -> float:
    """Return the mean squared length of the features inside the field."""
    return float((_inside(planes)[:3] ** 2).sum()) / max(float(planes[3].sum()), 1.0) + 1e-9


@compiled_sums
def _correlate(of_i: Spectra, of_j: Spectra, product: Spectra) -> None:
    """Fill `product` (2, h, w) with the spectra of the features' correlation and of the number of shared pixels."""
    for y in range(of_i.shape[1]):
        for x in range(of_i.shape[2]):
            common = of_i[0, y, x] * np.conj(of_j[0, y, x])
            common += of_i[1, y, x] * np.conj(of_j[1, y, x])
            common += of_i[2, y, x] * np.conj(of_j[2, y, x])
            product[0, y, x] = common
            product[1, y, x] = of_i[3, y, x] * np.conj(of_j[3, y, x])


@compiled
def _to_likeness(
    common: Likenesses, shared: NDArray[np.float32], in_reach: NDArray[np.bool_], least: np.float32, typical: np.float32
) -> None:
    """Turn the features' correlations `common` into likenesses, in place."""
    for y in range(common.shape[0]):
        for x in range(common.shape[1]):
            likeness = common[y, x] / (typical * np.sqrt(max(shared[y, x], np.float32(1))))
            common[y, x] = likeness if in_reach[y, x] and shared[y, x] >= least else np.float32(-np.inf)
