"""The Agent interface, and an agent that answers from a table of landmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from smalti.errors import PairError
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.records import Answer, Expectation, Landmarks, Pair, PairNumbers, Points, Verdict, pair_key


class Agent(Protocol):
    """Compares two frames and says whether, and how, they overlap."""

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with landmarks, no, or unsure."""
        ...


@runtime_checkable
class ExpectingAgent(Protocol):
    """An agent that can use an expected map."""

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with landmarks, no, or unsure, without an expectation."""
        ...

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Answer yes with landmarks, no, or unsure; `expected` is the expected map between the frames."""
        ...


@runtime_checkable
class PrefetchingAgent(Protocol):
    """An agent that can work ahead on other cores. Its answers stay the same."""

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with landmarks, no, or unsure."""
        ...

    def prefetch(self, pairs: Iterable[Pair], expected: Sequence[Expectation | None] = ()) -> None:
        """Begin with pairs that will be asked about soon; `expected` is what will be passed with each."""
        ...


IMPROBABLE = 0.15
"""Below this probability of overlap, a matcher that finds nothing has said no.

Suppose it misses every third overlap. At this probability one no of twenty is then wrong, and fewer below it.
"""

PREFETCHED = 16
"""Pairs that an agent works on ahead: enough for many cores, few enough for the memory."""


def prefetch(agent: Agent, pairs: Iterable[Pair], expected: Sequence[Expectation | None] = ()) -> None:
    """Tell an agent which pairs will be asked about soon, if it can work ahead, and what will be expected of each."""
    if isinstance(agent, PrefetchingAgent):
        agent.prefetch(pairs, expected)


def ask(agent: Agent, pair: Pair, expected: Expectation | None) -> Answer:
    """Ask an agent, and pass the expectation if the agent can use it."""
    if expected is not None and isinstance(agent, ExpectingAgent):
        return agent.answer_expecting(pair, expected)
    return agent.answer(pair)


def judge(answer: Answer, overlap: float) -> Answer:
    """Return a matcher's "cannot tell" as a no where an overlap is improbable, and any other answer as it is.

    A matcher that fails has not said no: it misses overlaps too. `overlap` is the probability of overlap before it
    looked.
    """
    return replace(answer, verdict=Verdict.NO) if answer.is_failure and overlap < IMPROBABLE else answer


class PrecomputedAgent:
    """Says yes for the pairs in its table of landmarks, and no for all others."""

    def __init__(
        self,
        pairs: PairNumbers,
        points_i: Points,
        points_j: Points,
        sigma: NDArray[np.float64],
        along: NDArray[np.float64] | None = None,
    ) -> None:
        """Take a table with one landmark a row, sorted by pair."""
        self._pairs = pairs
        self._keys = pair_key(*pairs.T)
        if (np.diff(self._keys) < 0).any():
            raise PairError("a table of landmarks must be in the order of its pairs")
        self._points_i, self._points_j, self._sigma = points_i, points_j, sigma
        self._along = np.zeros_like(points_i) if along is None else along

    @classmethod
    def from_landmarks(cls, records: Iterable[Landmarks]) -> PrecomputedAgent:
        """Take landmarks, one record a pair."""
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
            np.concatenate([np.empty((0, 2)), *(r.directions for r in ordered)]),
        )

    @classmethod
    def from_csv(cls, path: str | Path, *, sigma: float = 1.0) -> PrecomputedAgent:
        """Read the table `frame_i,frame_j,x_i,y_i,x_j,y_j`."""
        return cls.from_landmarks(read_landmarks(path, sigma=sigma))

    def answer(self, pair: Pair) -> Answer:
        """Look up the pair."""
        landmarks = self.landmarks(pair)
        return Answer.no(pair) if landmarks is None else Answer.yes(landmarks)

    def landmarks(self, pair: Pair) -> Landmarks | None:
        """Return the landmarks of a pair, or None if the table has none."""
        key = pair_key(pair.i, pair.j)
        rows = slice(*np.searchsorted(self._keys, [key, key + 1]))
        if rows.start == rows.stop:
            return None
        return Landmarks(pair, self._points_i[rows], self._points_j[rows], self._sigma[rows], self._along[rows])

    def pairs(self) -> list[Pair]:
        """Return all pairs in the table, in order."""
        return [Pair(int(i), int(j)) for i, j in np.unique(self._pairs, axis=0)]
