"""An agent that lays one frame over the other until they look the same, for frames without keypoints."""

from __future__ import annotations

from collections.abc import Callable

from smalti.records import Answer, Expectation, Pair
from smalti.registration.dense import ANYWHERE, DenseSettings, Prepared, register


class DenseAgent:
    """Aligns the pictures of two frames."""

    def __init__(self, prepared_of: Callable[[int], Prepared], settings: DenseSettings | None = None) -> None:
        self._prepared_of = prepared_of
        self._settings = DenseSettings() if settings is None else settings

    def answer(self, pair: Pair) -> Answer:
        """Say yes with a grid of landmarks, or no and why, wherever the frames lie to each other."""
        return self.answer_expecting(pair, ANYWHERE)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Say yes with a grid of landmarks, or no and why; look where the frames are expected to lie."""
        return register(pair, self._prepared_of(pair.i), self._prepared_of(pair.j), [expected], self._settings)
