"""Matrices over all pairs of frames, at the resolution of the screen."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

from smalti.annotation.messages import MapKind, PairMap
from smalti.suggestion.prediction import overlap_probability
from smalti.suggestion.reward import expected_informativeness, informativeness
from smalti.suggestion.view import View

DECADES = 6
"""Shown below the largest value: what is less is nothing."""


def reduce(
    matrix: NDArray[np.float64], kind: MapKind, row: int, column: int, frames: int, size: int, revision: int
) -> PairMap:
    """Return a square window of a matrix (N, N) in at most `size` × `size` cells, each as large as its largest entry.

    The window is `frames` wide from `row` and `column` on, moved and cut to fit; 0 is all. The range of values is that
    of the whole matrix, so that colours stay what they are when one looks closer.
    """
    total = len(matrix)
    side = total if frames == 0 else min(frames, total)
    first_row, first_column = min(row, total - side), min(column, total - side)
    finite = np.where(np.isfinite(matrix), matrix, 0.0)
    window = finite[first_row : first_row + side, first_column : first_column + side]
    per_cell = -(-side // size)
    starts = np.arange(0, side, per_cell)
    cells = np.maximum.reduceat(np.maximum.reduceat(window, starts, axis=0), starts, axis=1)
    smallest, largest = (0.0, 1.0) if kind is MapKind.OVERLAP else _positive_range(finite)
    share = cells if kind is MapKind.OVERLAP else _logarithmic_share(cells, smallest, largest)
    values = np.rint(255.0 * np.clip(share, 0.0, 1.0)).astype(np.uint8)
    return PairMap(
        revision=revision,
        kind=kind,
        first_row=first_row,
        first_column=first_column,
        frames_per_cell=per_cell,
        rows=len(starts),
        columns=len(starts),
        values=base64.b64encode(values.tobytes()).decode(),
        smallest=smallest,
        largest=largest,
        logarithmic=kind is not MapKind.OVERLAP,
    )


def matrix_of(kind: MapKind, view: View) -> NDArray[np.float64]:
    """Return what a map shows of every pair (N, N), the same in both directions.

    The probability of overlap; how uncertain one frame's place in the other is, in px; what the answer is expected to
    be worth, in px², 0 for pairs that are not asked.
    """
    if kind is MapKind.OVERLAP:
        return overlap_probability(view)
    if kind is MapKind.INFORMATIVENESS:
        return np.asarray(np.sqrt(informativeness(view.centres)))
    asked = np.argwhere(view.candidates & (view.external_probabilities > 0))
    i, j = asked.T
    reward = np.zeros((view.frames, view.frames))
    reward[i, j] = view.external_probabilities[i, j] * expected_informativeness(view.centres, asked)
    return reward + reward.T


def _positive_range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and the largest positive value, at most so many decades apart; 0 and 0 without any."""
    largest = float(values.max(initial=0.0))
    if largest <= 0.0:
        return 0.0, 0.0
    return max(float(values[values > 0].min()), largest / 10**DECADES), largest


def _logarithmic_share(values: NDArray[np.float64], smallest: float, largest: float) -> NDArray[np.float64]:
    """Return how far values lie from `smallest`, 0, to `largest`, 1, where less is 0."""
    if smallest == largest:
        return np.asarray(np.where(values > 0, 1.0, 0.0))
    return np.asarray(np.log(np.maximum(values, smallest) / smallest) / np.log(largest / smallest))
