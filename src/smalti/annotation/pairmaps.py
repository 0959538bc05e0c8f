"""Matrices over all pairs of frames, at the resolution of the screen: only what is shown is computed.

A cell that holds many pairs is as large as the largest of some that are evenly spread in it, of the linked ones and,
where rewards are shown, of the one most worth asking.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.centres import determinant
from smalti.annotation.messages import MapKind, PairMap
from smalti.records import Pair, PairNumbers
from smalti.suggestion.prediction import Overlap
from smalti.suggestion.reward import expected_informativeness_above
from smalti.suggestion.view import View

DECADES = 6
"""Shown below the largest value: what is less is nothing."""

FRAMES_LOOKED_AT = 512
"""Of all rows and columns of a window; more where there are more cells."""

PAIRS_AT_ONCE = 2**14

FRAMES_OF_RANGE = 256
"""Those between which the smallest and the largest value are looked for."""


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """A value for every pair of frames, the same in both directions; computed when looked at."""

    frames: int
    of_pairs: Callable[[PairNumbers], NDArray[np.float64]]  # for pairs (n, 2), i ≤ j
    marked: PairNumbers  # (n, 2), i < j: shown at any resolution

    def at(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the entries of rows and columns, all with all; what is no number is 0."""
        symmetric = np.array_equal(rows, columns)
        found = np.zeros((len(rows), len(columns)))
        at_once = max(PAIRS_AT_ONCE // len(columns), 1)
        for first in range(0, len(rows), at_once):
            last = min(first + at_once, len(rows))
            begin = first if symmetric else 0
            pairs = np.stack(np.broadcast_arrays(rows[first:last, None], columns[None, begin:]), axis=-1).reshape(-1, 2)
            part = self._finite(np.sort(pairs, axis=1)).reshape(last - first, -1)
            found[first:last, begin:] = part
            if symmetric:
                found[begin:, first:last] = part.T
        return found

    @cached_property
    def at_marked(self) -> NDArray[np.float64]:
        """The entries of the marked pairs (n,)."""
        return self._finite(self.marked)

    @cached_property
    def positive_range(self) -> tuple[float, float]:
        """The smallest and the largest positive value, of all pairs or of frames spread over all."""
        chosen, _ = _choose(0, self.frames, min(self.frames, FRAMES_OF_RANGE), 1)
        return _positive_range(np.append(self.at(chosen, chosen), self.at_marked))

    def _finite(self, pairs: PairNumbers) -> NDArray[np.float64]:
        return np.nan_to_num(self.of_pairs(pairs), nan=0.0, posinf=0.0, neginf=0.0)


def matrix_of(kind: MapKind, view: View, best: Pair | None = None) -> PairMatrix:
    """Return what a map shows of every pair.

    The probability of overlap; how uncertain one frame's place in the other is, in px; what the answer is expected to
    be worth, in px², 0 for pairs that are not asked. `best` is the pair most worth asking, if it is known.
    """
    linked = view.adjustment.ends
    if kind is MapKind.OVERLAP:
        return PairMatrix(view.frames, Overlap.of(view).of_pairs, linked)
    if kind is MapKind.INFORMATIVENESS:
        return PairMatrix(view.frames, partial(_uncertainty, view), linked)
    marked = np.array([] if best is None else [(best.i, best.j)], dtype=np.int64).reshape(-1, 2)
    return PairMatrix(view.frames, partial(_reward, view), marked)


def reduce(matrix: PairMatrix, kind: MapKind, row: int, column: int, frames: int, size: int, revision: int) -> PairMap:
    """Return a square window of a matrix in at most `size` × `size` cells, each as large as its largest entry.

    The window is `frames` wide from `row` and `column` on, moved and cut to fit; 0 is all. The range of values is that
    of the whole matrix, so that colours stay what they are when one looks closer.
    """
    total = matrix.frames
    side = total if frames == 0 else min(frames, total)
    first_row, first_column = min(row, total - side), min(column, total - side)
    per_cell = -(-side // size)
    rows, starts = _choose(first_row, side, size)
    columns, _ = _choose(first_column, side, size)
    cells = np.maximum.reduceat(np.maximum.reduceat(matrix.at(rows, columns), starts, axis=0), starts, axis=1)
    for pairs in (matrix.marked, matrix.marked[:, ::-1]):
        offset = pairs - (first_row, first_column)
        inside = ((offset >= 0) & (offset < side)).all(axis=1)
        np.maximum.at(cells, tuple(offset[inside].T // per_cell), matrix.at_marked[inside])
    smallest, largest = (0.0, 1.0) if kind is MapKind.OVERLAP else matrix.positive_range
    share = cells if kind is MapKind.OVERLAP else _logarithmic_share(cells, smallest, largest)
    shown = np.rint(255.0 * np.clip(share, 0.0, 1.0)).astype(np.uint8)
    return PairMap(
        revision=revision,
        kind=kind,
        first_row=first_row,
        first_column=first_column,
        frames_per_cell=per_cell,
        rows=len(starts),
        columns=len(starts),
        values=base64.b64encode(shown.tobytes()).decode(),
        smallest=smallest,
        largest=largest,
        logarithmic=kind is not MapKind.OVERLAP,
    )


def _uncertainty(view: View, pairs: PairNumbers) -> NDArray[np.float64]:
    directed = np.sqrt(determinant(view.covariance.of_pairs(pairs).cov))
    return np.asarray(np.sqrt(directed.mean(axis=1)))


def _reward(view: View, pairs: PairNumbers) -> NDArray[np.float64]:
    reward = np.zeros(len(pairs))
    asked = np.flatnonzero(view.may_be_asked(pairs))
    probability = view.looks.of_pairs(pairs[asked])
    asked, probability = asked[probability > 0.0], probability[probability > 0.0]
    centres = view.covariance.of_pairs(pairs[asked])
    reward[asked] = probability * expected_informativeness_above(centres, np.zeros(len(asked)))
    return reward


def _choose(first: int, side: int, size: int, most: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the frames to look at of `side` ones in at most `size` cells, and where each cell begins among them."""
    per_cell = -(-side // size)
    begins = np.arange(0, side, per_cell)
    if most is None:
        most = per_cell if side <= FRAMES_LOOKED_AT else max(FRAMES_LOOKED_AT // len(begins), 1)
    lengths = np.minimum(per_cell, side - begins)
    counts = np.minimum(lengths, most)
    starts = np.cumsum(counts) - counts
    nth = np.arange(int(counts.sum())) - np.repeat(starts, counts)
    within = (2 * nth + 1) * np.repeat(lengths, counts) // np.repeat(2 * counts, counts)
    return first + np.repeat(begins, counts) + within, starts


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
