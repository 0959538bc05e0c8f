"""An agent that answers from a table of landmarks, as in the paper's evaluation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.errors import PairError
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.records import Answer, Landmarks, Pair, PairNumbers, Points, pair_key


class PrecomputedAgent:
    """Says yes for the pairs that it has landmarks of, and no for all others."""

    def __init__(self, pairs: PairNumbers, points_i: Points, points_j: Points, sigma: NDArray[np.float64]) -> None:
        """Take a table of one landmark a row, rows of a pair together and pairs in order."""
        self._pairs = pairs
        self._keys = pair_key(*pairs.T)
        if (np.diff(self._keys) < 0).any():
            raise PairError("a table of landmarks must be in the order of its pairs")
        self._points_i, self._points_j, self._sigma = points_i, points_j, sigma

    @classmethod
    def from_landmarks(cls, records: Iterable[Landmarks]) -> PrecomputedAgent:
        """Take landmarks, a record a pair."""
        by_pair: dict[Pair, Landmarks] = {}
        for record in records:
            if record.pair in by_pair:
                raise PairError(f"pair {record.pair} is given twice")
            by_pair[record.pair] = record
        ordered = [by_pair[pair] for pair in sorted(by_pair)]
        return cls(
            np.array([(r.pair.i, r.pair.j) for r in ordered for _ in range(len(r))], dtype=np.int64).reshape(-1, 2),
            np.concatenate([np.empty((0, 2)), *(r.points_i for r in ordered)]),
            np.concatenate([np.empty((0, 2)), *(r.points_j for r in ordered)]),
            np.concatenate([np.empty(0), *(1.0 / r.weights for r in ordered)]),
        )

    @classmethod
    def from_csv(cls, path: Path, *, sigma: float = 1.0) -> PrecomputedAgent:
        """Read the table `frame_i,frame_j,x_i,y_i,x_j,y_j`."""
        return cls.from_landmarks(read_landmarks(path, sigma=sigma))

    def answer(self, pair: Pair) -> Answer:
        """Look the pair up."""
        landmarks = self.landmarks(pair)
        return Answer.no(pair) if landmarks is None else Answer.yes(landmarks)

    def landmarks(self, pair: Pair) -> Landmarks | None:
        """Return the landmarks of a pair, or None if the table has none."""
        key = pair_key(pair.i, pair.j)
        rows = slice(*np.searchsorted(self._keys, [key, key + 1]))
        if rows.start == rows.stop:
            return None
        return Landmarks(pair, self._points_i[rows], self._points_j[rows], self._sigma[rows])

    def pairs(self) -> list[Pair]:
        """Return all pairs that the table has landmarks of, in order."""
        return [Pair(int(i), int(j)) for i, j in np.unique(self._pairs, axis=0)]
