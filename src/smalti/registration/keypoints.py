"""Detect SIFT keypoints and match those of two frames by mutual nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Points

PIXELS_PER_KEYPOINT = 300
FEWEST_WANTED = 1000
MOST_WANTED = 4000
"""Keypoints wanted of a frame, by its area: a narrow strip that two frames share then still has some."""

LEAST_CONTRAST = 0.01
"""Lower than usual: only the strongest keypoints are kept anyway, and low-contrast frames need some too."""

DESCRIPTOR_LEVELS = 255

LARGEST_RATIO = 0.8
"""Largest ratio of the best distance to the second best: of two similar candidates, neither is accepted."""


@dataclass(frozen=True, slots=True, eq=False)
class Keypoints:
    """Points of a frame, strongest first, with their descriptors."""

    points: NDArray[np.float32]  # (n, 2), pixels
    descriptors: NDArray[np.uint8]  # (n, 128): root-SIFT; length 1 is DESCRIPTOR_LEVELS
    strengths: NDArray[np.float32]  # (n,)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def unit_descriptors(self) -> NDArray[np.float32]:
        """(n, 128): of length 1, up to rounding."""
        return self.descriptors.astype(np.float32) / np.float32(DESCRIPTOR_LEVELS)


NO_KEYPOINTS = Keypoints(np.empty((0, 2), np.float32), np.empty((0, 128), np.uint8), np.empty(0, np.float32))


def find_keypoints(gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None) -> Keypoints:
    """Find the strongest keypoints of an image (h, w) inside the mask."""
    wanted = int(np.clip(gray.size / PIXELS_PER_KEYPOINT, FEWEST_WANTED, MOST_WANTED))
    # Without the precise upscaling OpenCV places every keypoint a quarter of a pixel too far right and down.
    detector = cv2.SIFT.create(wanted, 3, LEAST_CONTRAST, enable_precise_upscale=True)
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


def match_keypoints(in_i: Keypoints, in_j: Keypoints) -> tuple[Points, Points]:
    """Return points (n, 2) of i and of j that are mutual nearest neighbours by a margin."""
    if len(in_i) < 2 or len(in_j) < 2:
        return np.empty((0, 2)), np.empty((0, 2))
    similarity = in_i.unit_descriptors @ in_j.unit_descriptors.T
    best_j, second, best_i = _nearest(similarity)
    numbers = np.arange(len(in_i))
    # Descriptors have length 1: squared distance = 2 - 2 · similarity.
    distance, next_distance = 2.0 - 2.0 * similarity[numbers, best_j], 2.0 - 2.0 * second
    kept = (best_i[best_j] == numbers) & (distance < LARGEST_RATIO**2 * next_distance)
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
