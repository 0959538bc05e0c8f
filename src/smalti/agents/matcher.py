"""Agents that register two frames: by keypoints, by a user's matcher, or by all pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.outline import Outline
from smalti.records import Answer, Expectation, Pair, Points
from smalti.registration.dense import ANYWHERE, DenseSettings, Prepared, register
from smalti.registration.keypoints import Keypoints, match_keypoints
from smalti.registration.robust_fit import FitSettings, fit_matches

Image: TypeAlias = NDArray[np.uint8]
"""(h, w, 3), RGB."""

Matcher: TypeAlias = Callable[[Image, Image], Any]
"""Takes two images; returns the matched points (n, 2) of the first and of the second, or None."""


class KeypointAgent:
    """Matches the keypoints of two frames."""

    def __init__(
        self, keypoints_of: Callable[[int], Keypoints], outline: Outline, settings: FitSettings | None = None
    ) -> None:
        self._keypoints_of = keypoints_of
        self._outline = outline
        self._settings = FitSettings() if settings is None else settings

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with the matches that agree on a map, or no with the reason."""
        points_i, points_j = match_keypoints(self._keypoints_of(pair.i), self._keypoints_of(pair.j))
        return fit_matches(pair, points_i, points_j, self._outline, self._settings)


class CallableAgent:
    """Asks a user's matcher; its points are checked like the matches of keypoints."""

    def __init__(
        self, matcher: Matcher, read: Callable[[int], Image], outline: Outline, settings: FitSettings | None = None
    ) -> None:
        self._matcher = matcher
        self._read = read
        self._outline = outline
        self._settings = FitSettings() if settings is None else settings

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with the matches that agree on a map, or no with the reason."""
        found = self._matcher(self._read(pair.i), self._read(pair.j))
        if found is None:
            return Answer.no(pair, "the matcher found nothing")
        points_i, points_j = (self._points(side) for side in self._two(found))
        if len(points_i) != len(points_j):
            raise UsageError(
                f"pair {pair}: the matcher returned {len(points_i)} points for the first image and {len(points_j)} for "
                "the second, each needs its partner"
            )
        return fit_matches(pair, points_i, points_j, self._outline, self._settings)

    def _two(self, found: Any) -> tuple[Any, Any]:
        try:
            first, second = found
        except (TypeError, ValueError):
            raise UsageError("a matcher returns None, or two arrays of points (n, 2)") from None
        return first, second

    def _points(self, side: Any) -> Points:
        try:
            points = np.asarray(side, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError("a matcher returns None, or two arrays of points (n, 2)") from None
        if points.size == 0:
            return np.empty((0, 2))
        if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
            raise UsageError(f"a matcher returns finite points of shape (n, 2), got {points.shape}")
        return points


class DenseAgent:
    """Aligns the pixels of two frames."""

    def __init__(self, prepared_of: Callable[[int], Prepared], settings: DenseSettings | None = None) -> None:
        self._prepared_of = prepared_of
        self._settings = DenseSettings() if settings is None else settings

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with a grid of landmarks, or no with the reason; search all relative positions."""
        return self.answer_expecting(pair, ANYWHERE)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Answer yes with a grid of landmarks, or no with the reason; search near the expected map."""
        return register(pair, self._prepared_of(pair.i), self._prepared_of(pair.j), [expected], self._settings)
