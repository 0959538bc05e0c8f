"""Matrices over all pairs of frames, at the resolution of the screen: only what is shown is computed.

A cell that holds many pairs is as large as the largest of some that are evenly spread in it, and of the linked ones or,
where it is shown what questions are worth, of the candidates.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop
from smalti.annotation.messages import MapKind, PairMap
from smalti.annotation.session_state import AnyLoop
from smalti.paper.paper_loop import PaperLoop
from smalti.paper.paper_strategy import expected_informativeness, informativeness, position_probability
from smalti.records import PairNumbers, pair_key
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.state_view import View
from smalti.suggestion.strategy import Smalti

DECADES = 6
"""Shown below the largest value: what is less is nothing."""

FRAMES_SAMPLED = 512
"""Of all rows and columns of a window; more where there are more cells."""

PAIRS_AT_ONCE = 2**14

MOST_RANKED = 1000
"""Pairs that a strategy which ranks them one by one is asked for."""

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


def matrix_of(kind: MapKind, loop: AnyLoop) -> PairMatrix:
    """Return what a map shows of every pair.

    The probability of overlap; how uncertain one frame's place in the other is, in px, 0 where nothing joins them; what
    questions are ranked by, 0 for pairs that are no candidates: by how much the squared error is expected to drop in
    the time that a yes takes, in px².
    """
    if isinstance(loop, PaperLoop):
        return _papers_matrix(kind, loop)
    view = loop.view
    if kind is MapKind.OVERLAP:
        return PairMatrix(view.frames, loop.posterior.of_pairs, view.linked)
    if kind is MapKind.INFORMATIVENESS:
        return PairMatrix(view.frames, partial(_uncertainty, view), view.linked)
    candidates, worth = _worth(loop)
    return PairMatrix(view.frames, partial(_look_up, candidates, worth), candidates)


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


def _papers_matrix(kind: MapKind, loop: PaperLoop) -> PairMatrix:
    """Return the same by the paper's method, which looks at all pairs."""
    view, centres = loop.view, loop.view.centres
    if kind is MapKind.REWARD:

        def reward(pairs: PairNumbers) -> NDArray[np.float64]:
            worth = view.external_probabilities[tuple(pairs.T)] * expected_informativeness(centres, pairs)
            return np.asarray(np.where(view.candidates[tuple(pairs.T)], worth, 0.0))

        best = [] if loop.best is None else [(loop.best.pair.i, loop.best.pair.j)]
        return PairMatrix(loop.frames, reward, np.array(best, dtype=np.int64).reshape(-1, 2))
    values = (
        position_probability(centres) * view.external_probabilities
        if kind is MapKind.OVERLAP
        else np.sqrt(informativeness(centres))
    )
    return PairMatrix(loop.frames, lambda pairs: np.asarray(values[tuple(pairs.T)]), loop.adjustment.ends)


def _uncertainty(view: View, pairs: PairNumbers) -> NDArray[np.float64]:
    spread = np.sqrt(view.covariance.of_pairs(pairs).spread)
    return np.asarray(np.where(view.are_joined(pairs) & (pairs[:, 0] != pairs[:, 1]), spread, 0.0))


def _worth(loop: ActiveLoop) -> tuple[PairNumbers, NDArray[np.float64]]:
    """Return the candidates (n, 2), in the order of pairs, and what each is worth (n,)."""
    view, strategy = loop.view, loop.strategy
    if isinstance(strategy, Smalti):
        candidates = CandidatePairs.of(view)
        pairs = candidates.surveyed.pairs
        gains = candidates.expected_gain(view).gains if len(pairs) else np.zeros(0)
        worth = strategy.cost_of_yes * strategy.gain_per_cost(candidates.yes_probability, gains)
    else:
        ranked = strategy.rank(view, MOST_RANKED)
        pairs = np.array([(found.pair.i, found.pair.j) for found in ranked], dtype=np.int64).reshape(-1, 2)
        worth = np.array([found.expected_reward for found in ranked])
    order = np.argsort(pair_key(*pairs.T))
    return pairs[order], worth[order]


def _look_up(candidates: PairNumbers, worth: NDArray[np.float64], pairs: PairNumbers) -> NDArray[np.float64]:
    """Return what pairs are worth (n,), 0 for those that are no candidates."""
    if not len(candidates):
        return np.zeros(len(pairs))
    known, keys = pair_key(*candidates.T), pair_key(*pairs.T)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(np.where(known[at] == keys, worth[at], 0.0))


def _choose(first: int, side: int, size: int, most: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the frames to look at of `side` ones in at most `size` cells, and where each cell begins among them."""
    per_cell = -(-side // size)
    begins = np.arange(0, side, per_cell)
    if most is None:
        most = per_cell if side <= FRAMES_SAMPLED else max(FRAMES_SAMPLED // len(begins), 1)
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
