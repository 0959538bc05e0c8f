"""Which keypoints of two frames look the same, and only each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Points
from smalti.registration.keypoints import Keypoints

LARGEST_RATIO = 0.8
"""The second best must be farther than the best by this factor: of two that look alike, neither is believed."""


def match_keypoints(in_i: Keypoints, in_j: Keypoints) -> tuple[Points, Points]:
    """Return points (n, 2) of i and of j that are each other's nearest by a margin."""
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

    One pass over the matrix: it is large, and a pass along the columns alone takes longer than computing it.
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
