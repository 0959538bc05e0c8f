"""Agents that register two frames: by keypoints, by a user's matcher, or by all pixels.

One that finds no map cannot tell whether the frames overlap: it never says no."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import cores
from smalti.engine.links import map_in_pixels
from smalti.errors import UsageError
from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.records import Answer, Expectation, Landmarks, Pair, Points
from smalti.registration.dense import ANYWHERE, DenseSettings, Prepared, register
from smalti.registration.keypoints import SIFT_MATCHES, Keypoints, MatchSettings, match_expected, match_keypoints
from smalti.registration.robust_fit import FitSettings, fit_matches

Image: TypeAlias = NDArray[np.uint8]
"""(h, w, 3), RGB."""

Matcher: TypeAlias = Callable[[Image, Image], Any]
"""Takes two images; returns the matched points (n, 2) of the first and of the second, or None."""

REACH = 3.0
"""In standard deviations of the expected position: how far keypoints may lie from where they are expected."""

NARROW = 0.4
"""Share of a frame: with more in common, frames have enough keypoints in common too."""

NEAR = 0.02
"""Share of a frame's diagonal: where keypoints are expected within so much, hardly any others have to be compared."""

MATCHED_FIRST, ENOUGH_MATCHES = 1000, 100
"""Keypoints of a frame that are matched first, and matches that are enough: a link uses 30 landmarks.

With fewer, all keypoints are matched near the map that these agree on. Only if they agree on none, all are compared
with all, which takes ten times as long."""


class KeypointAgent:
    """Matches the keypoints of two frames, SIFT's or learned ones."""

    def __init__(
        self,
        keypoints_of: Callable[[int], Keypoints],
        outline: Outline,
        settings: FitSettings | None = None,
        matching: MatchSettings = SIFT_MATCHES,
    ) -> None:
        self._keypoints_of = keypoints_of
        self._outline = outline
        self._settings = FitSettings() if settings is None else settings
        self._matching = matching
        self._ahead: dict[Pair, tuple[Expectation | None, Future[Answer]]] = {}

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with the matches that agree on a map, or "cannot tell" with the reason."""
        return self._answer(pair, None)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Answer in the same way; look near the expected place first if it is known well or a strip is shared."""
        return self._answer(pair, expected)

    def prefetch(self, pairs: Iterable[Pair], expected: Sequence[Expectation | None] = ()) -> None:
        """Begin with pairs that will be asked about soon, on all cores."""
        for pair, known in zip_longest(pairs, expected):
            if pair not in self._ahead:
                # The keypoints are read here, because only one thread at a time may read.
                in_i, in_j = self._keypoints_of(pair.i), self._keypoints_of(pair.j)
                self._ahead[pair] = known, self._pool.submit(self._register, pair, in_i, in_j, known)

    def remember(self, answers: Iterable[Answer]) -> None:
        """Keep answers that were given without an expectation, for when these pairs are asked about again."""
        for answer in answers:
            given: Future[Answer] = Future()
            given.set_result(answer)
            self._ahead[answer.pair] = None, given

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(cores(), thread_name_prefix="matcher")

    def _answer(self, pair: Pair, expected: Expectation | None) -> Answer:
        known, ahead = self._ahead.pop(pair, (None, None))
        # Where an expectation changes nothing, what was begun without it is the same.
        if ahead is not None and (known is expected or not (self._narrows(known) or self._narrows(expected))):
            return ahead.result()
        return self._register(pair, self._keypoints_of(pair.i), self._keypoints_of(pair.j), expected)

    def _register(self, pair: Pair, in_i: Keypoints, in_j: Keypoints, expected: Expectation | None) -> Answer:
        if expected is not None and self._narrows(expected):
            found = self._fit(pair, match_expected(in_i, in_j, expected, self._reach(expected), self._matching))
            if found.landmarks is not None:
                return found
        if min(len(in_i), len(in_j)) > MATCHED_FIRST:
            strongest = in_i.spread(MATCHED_FIRST), in_j.spread(MATCHED_FIRST)
            few = self._fit(pair, match_keypoints(*strongest, self._matching))
            if few.landmarks is not None:
                more = few if len(few.landmarks) >= ENOUGH_MATCHES else self._look_near(few.landmarks, in_i, in_j)
                if more.landmarks is not None and len(more.landmarks) >= len(few.landmarks):
                    return more
        return self._fit(pair, match_keypoints(in_i, in_j, self._matching))

    def _look_near(self, found: Landmarks, in_i: Keypoints, in_j: Keypoints) -> Answer:
        """Match all keypoints near the map that a few agree on."""
        expected = Expectation(map_in_pixels(found, self._outline), 0.0)
        return self._fit(found.pair, match_expected(in_i, in_j, expected, self._nearness, self._matching))

    def _fit(self, pair: Pair, matches: tuple[Points, Points]) -> Answer:
        return fit_matches(pair, *matches, self._outline, self._settings)

    def _reach(self, expected: Expectation) -> float:
        return REACH * expected.sigma_px + self._settings.threshold_px

    @property
    def _nearness(self) -> float:
        return NEAR * 2.0 * self._outline.outer_half_side

    def _narrows(self, expected: Expectation | None) -> bool:
        """Tell whether most keypoints need not be compared."""
        if expected is None or not np.isfinite(expected.sigma_px):
            return False
        reach = self._reach(expected)
        return reach <= self._nearness or self._shared(expected, reach) <= NARROW

    def _shared(self, expected: Expectation, reach: float) -> float:
        """Return the share of frame i that j covers if it lies up to `reach` px nearer than expected."""
        i_from_j = expected.i_from_j if len(expected.i_from_j) == 3 else square(expected.i_from_j)
        off = np.abs(apply_map(i_from_j, self._outline.centre[None])[0] - self._outline.centre) - reach
        covered = 1.0 - np.clip(off / [self._outline.width, self._outline.height], 0.0, 1.0)
        return float(np.prod(covered))


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
        """Answer yes with the matches that agree on a map, or "cannot tell" with the reason."""
        found = self._matcher(self._read(pair.i), self._read(pair.j))
        if found is None:
            return Answer.unsure(pair, "the matcher found nothing")
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
        """Answer yes with a grid of landmarks, or "cannot tell" with the reason; search all relative positions."""
        return self.answer_expecting(pair, ANYWHERE)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Answer yes with a grid of landmarks, or "cannot tell" with the reason; search near the expected map."""
        return register(pair, self._prepared_of(pair.i), self._prepared_of(pair.j), [expected], self._settings)
