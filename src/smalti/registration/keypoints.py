"""Detect SIFT keypoints and match those of two frames by mutual nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.homographies import apply_map
from smalti.records import Expectation, Points

PIXELS_PER_KEYPOINT = 300
FEWEST_WANTED = 1000
MOST_WANTED = 4000
"""Keypoints wanted of a frame, by its area: a narrow strip that two frames share then still has some."""

LEAST_CONTRAST, FAINT_CONTRAST = 0.01, 0.004
"""Lower than usual: only the strongest keypoints are kept anyway, and low-contrast frames need some too. And that of a
part of a frame that another frame is known to show: there a wrong match has few places to be."""

PIXELS_PER_FAINT_KEYPOINT, MOST_FAINT = 60, 2000
"""Keypoints wanted of such a part."""

REDUCED_FROM, REDUCED_TO = 400_000, 0.7
"""Pixels, and the side of the reduced frame. SIFT doubles an image, for the finest details. Larger frames have enough
others: they are reduced first. That takes half the time, and more of what is found is found again in other frames."""

BORDER = 48
"""Pixels around a part that its keypoints and their descriptors use."""

DESCRIPTOR_LEVELS = 255

CELLS = 12
"""Cells along each side of the grid over which keypoints are spread."""


@dataclass(frozen=True, slots=True)
class MatchSettings:
    """When two descriptors are those of one point. The defaults are for SIFT."""

    largest_ratio: float = 0.8
    """Largest ratio of the best distance to the second best: of two similar candidates, neither is accepted."""

    usual_next: float = 0.3
    """A usual squared distance of the second best descriptor in a whole frame, where lengths are 1. Of keypoints within
    reach at a wrong place, next to none are within its share: 2 or 3 of 2,500, and of those at the right place nine
    tenths."""


SIFT_MATCHES = MatchSettings()


Descriptors = NDArray[np.uint8] | NDArray[np.int8]
"""(n, 128): root-SIFT or learned; length 1 is DESCRIPTOR_LEVELS."""


@dataclass(frozen=True, slots=True, eq=False)
class Keypoints:
    """Points of a frame, strongest first, with their descriptors."""

    points: NDArray[np.float32]  # (n, 2), pixels
    descriptors: Descriptors
    strengths: NDArray[np.float32]  # (n,)

    def __len__(self) -> int:
        return len(self.points)

    def chosen(self, which: NDArray[np.bool_]) -> Keypoints:
        """Return some of the keypoints (n,)."""
        return Keypoints(self.points[which], self.descriptors[which], self.strengths[which])

    @property
    def unit_descriptors(self) -> NDArray[np.float32]:
        """(n, 128): of length 1, up to rounding."""
        return self.descriptors.astype(np.float32) / np.float32(DESCRIPTOR_LEVELS)

    def spread(self, count: int) -> Keypoints:
        """Return at most so many keypoints, spread over the frame: the strongest of every cell of a grid first."""
        if len(self) <= count:
            return self
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        x, y = np.minimum(CELLS * (self.points - low) / np.maximum(high - low, 1.0), CELLS - 1).astype(np.int64).T
        cell = CELLS * y + x
        by_cell = np.argsort(cell, kind="stable")  # strongest first within a cell
        first_of_cell = np.searchsorted(cell[by_cell], cell[by_cell])
        rank = np.empty(len(self), dtype=np.int64)
        rank[by_cell] = np.arange(len(self)) - first_of_cell
        chosen = np.sort(np.argsort(rank, kind="stable")[:count])
        return Keypoints(self.points[chosen], self.descriptors[chosen], self.strengths[chosen])


NO_KEYPOINTS = Keypoints(np.empty((0, 2), np.float32), np.empty((0, 128), np.uint8), np.empty(0, np.float32))


def find_keypoints(gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None) -> Keypoints:
    """Find the strongest keypoints of an image (h, w) inside the mask."""
    wanted = int(np.clip(gray.size / PIXELS_PER_KEYPOINT, FEWEST_WANTED, MOST_WANTED))
    if gray.size >= REDUCED_FROM:
        height, width = (round(REDUCED_TO * side) for side in gray.shape)
        reduced = np.asarray(cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
        shown = None if mask is None else cv2.resize(mask.astype(np.uint8), (width, height)) > 0
        found = _detect(reduced, shown, wanted)
        if len(found) >= FEWEST_WANTED:
            scale = np.array(gray.shape[::-1], dtype=np.float32) / np.array([width, height], dtype=np.float32)
            return replace(found, points=((found.points + 0.5) * scale - 0.5).astype(np.float32))
    return _detect(gray, mask, wanted)


def find_faint_keypoints(gray: NDArray[np.uint8], part: NDArray[np.bool_]) -> Keypoints:
    """Find keypoints in a part of an image (h, w), faint ones too."""
    rows, columns = np.flatnonzero(part.any(axis=1)), np.flatnonzero(part.any(axis=0))
    if not len(rows):
        return NO_KEYPOINTS
    top, left = max(rows[0] - BORDER, 0), max(columns[0] - BORDER, 0)
    box = np.s_[top : rows[-1] + 1 + BORDER, left : columns[-1] + 1 + BORDER]
    wanted = min(max(int(part.sum()) // PIXELS_PER_FAINT_KEYPOINT, 1), MOST_FAINT)
    found = _detect(np.ascontiguousarray(gray[box]), np.ascontiguousarray(part[box]), wanted, FAINT_CONTRAST)
    return replace(found, points=found.points + np.array([left, top], dtype=np.float32))


def _detect(
    gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None, wanted: int, least_contrast: float = LEAST_CONTRAST
) -> Keypoints:
    # Without the precise upscaling OpenCV places every keypoint a quarter of a pixel too far right and down.
    detector = cv2.SIFT.create(wanted, 3, least_contrast, enable_precise_upscale=True)
    shown = None if mask is None else mask.astype(np.uint8)
    found, descriptors = detector.detectAndCompute(gray, shown)
    if not found:
        return NO_KEYPOINTS
    # OpenCV returns every orientation of the last keypoints: more than wanted, in an order that depends on its threads.
    points = np.array([keypoint.pt for keypoint in found], dtype=np.float32)
    strengths = np.array([keypoint.response for keypoint in found], dtype=np.float32)
    angles = np.array([keypoint.angle for keypoint in found], dtype=np.float32)
    order = np.lexsort((angles, points[:, 1], points[:, 0], -strengths))[:wanted]
    histograms = np.asarray(descriptors, dtype=np.float32)[order]
    share = histograms / np.maximum(histograms.sum(axis=1, keepdims=True), 1.0)
    rooted = np.rint(np.sqrt(share) * DESCRIPTOR_LEVELS).astype(np.uint8)
    return Keypoints(points[order], rooted, strengths[order])


def match_keypoints(in_i: Keypoints, in_j: Keypoints, settings: MatchSettings = SIFT_MATCHES) -> tuple[Points, Points]:
    """Return points (n, 2) of i and of j that are mutual nearest neighbours by a margin."""
    if len(in_i) < 2 or len(in_j) < 2:
        return np.empty((0, 2)), np.empty((0, 2))
    similarity = in_i.unit_descriptors @ in_j.unit_descriptors.T
    best_j, second, best_i = _nearest(similarity)
    numbers = np.arange(len(in_i))
    # Descriptors have length 1: squared distance = 2 - 2 · similarity.
    distance, next_distance = 2.0 - 2.0 * similarity[numbers, best_j], 2.0 - 2.0 * second
    kept = (best_i[best_j] == numbers) & (distance < settings.largest_ratio**2 * next_distance)
    return in_i.points[kept].astype(np.float64), in_j.points[best_j[kept]].astype(np.float64)


def match_expected(
    in_i: Keypoints,
    in_j: Keypoints,
    expected: Expectation,
    reach_px: float,
    settings: MatchSettings = SIFT_MATCHES,
) -> tuple[Points, Points]:
    """Do the same among keypoints that lie within `reach_px` of each other by the expected map.

    In a narrow strip that two frames share, this finds far more matches: most keypoints of either frame lie elsewhere.
    It takes a tenth of the time, because few descriptors are compared. But often there is no second best candidate to
    tell chance by. So descriptors must also be as similar as those of one point are.
    """
    if not len(in_i) or not len(in_j):
        return np.empty((0, 2)), np.empty((0, 2))
    at_i, at_j = in_i.points.astype(np.float64), in_j.points.astype(np.float64)
    if expected.undistort is not None:
        at_i, at_j = expected.undistort(at_i), expected.undistort(at_j)
    with np.errstate(divide="ignore", invalid="ignore"):
        at_j = apply_map(expected.i_from_j, at_j)
    at_j[~np.isfinite(at_j).all(axis=1)] = np.inf
    by_x = np.argsort(at_j[:, 0], kind="stable")
    best_j, best, second, best_i = _nearest_within(
        at_i, at_j[by_x], in_i.descriptors, in_j.descriptors[by_x], float(reach_px)
    )
    best_j, best_i = np.where(best_j < 0, best_j, by_x[best_j]), best_i[np.argsort(by_x)]
    numbers = np.arange(len(in_i))
    alike = best < settings.largest_ratio**2 * np.minimum(second, settings.usual_next * DESCRIPTOR_LEVELS**2)
    kept = (best_j >= 0) & (best_i[best_j] == numbers) & alike
    return in_i.points[kept].astype(np.float64), in_j.points[best_j[kept]].astype(np.float64)


@compiled
def _nearest(
    similarity: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return the column of every row's largest entry, its second largest entry, and the row of every column's largest.

    It takes one pass, because the matrix is large: a pass along the columns takes longer than computing the matrix.
    """
    rows, columns = similarity.shape
    best_column = np.zeros(rows, dtype=np.int64)
    second = np.full(rows, -np.inf, dtype=np.float32)
    best_row = np.zeros(columns, dtype=np.int64)
    largest_of_column = np.full(columns, -np.inf, dtype=np.float32)
    for row in range(rows):
        largest = np.float32(-np.inf)
        for column in range(columns):
            value = similarity[row, column]
            if value > largest:
                second[row] = largest
                largest = value
                best_column[row] = column
            elif value > second[row]:
                second[row] = value
            if value > largest_of_column[column]:
                largest_of_column[column] = value
                best_row[column] = row
    return best_column, second, best_row


@compiled
def _nearest_within(
    at_i: NDArray[np.float64],
    at_j: NDArray[np.float64],
    of_i: NDArray[np.uint8] | NDArray[np.int8],
    of_j: NDArray[np.uint8] | NDArray[np.int8],
    reach: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for every i the most similar j within reach, -1 for none, its squared distance, and that of the second.

    The last array is the most similar i of every j. The j are sorted by x.
    """
    best_j, best_i = np.full(len(at_i), -1), np.full(len(at_j), -1)
    largest = np.iinfo(np.int64).max
    best, second, best_of_j = np.full(len(at_i), largest), np.full(len(at_i), largest), np.full(len(at_j), largest)
    start = np.searchsorted(at_j[:, 0], at_i[:, 0] - reach)
    for i in range(len(at_i)):
        for j in range(start[i], len(at_j)):
            right, down = at_j[j, 0] - at_i[i, 0], at_j[j, 1] - at_i[i, 1]
            if right > reach:
                break
            if right * right + down * down > reach * reach:
                continue
            distance = np.int32(0)
            for n in range(of_i.shape[1]):
                off = np.int32(of_i[i, n]) - np.int32(of_j[j, n])
                distance += off * off
            if distance < best[i]:
                second[i] = best[i]
                best[i] = distance
                best_j[i] = j
            elif distance < second[i]:
                second[i] = distance
            if distance < best_of_j[j]:
                best_of_j[j] = distance
                best_i[j] = i
    return best_j, best, second, best_i
