"""Register two frames whose place is known to a few pixels, with thresholds that the small reach justifies.

By chance, few keypoints match within a small reach of a wrong place. Their number is Poisson. The fewest matches that
are accepted are those that arise by chance in less than `LARGEST_CHANCE` of all pairs. A strip of a few percent of a
frame has few candidates, and few matches are then enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import gammainc

from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.records import Answer, Expectation, Homographies, Landmarks, Pair, Points
from smalti.registration.dense import DenseSettings
from smalti.registration.keypoints import Keypoints, find_faint_keypoints, match_expected
from smalti.registration.robust_fit import FitSettings, fit_matches

LARGEST_CHANCE = 1e-6
"""The largest probability that so many matches arise by chance."""

CHANCE_OF_CANDIDATE = 5e-3
"""The share of candidates within reach, a keypoint of each frame, that match by chance. On confocal microscopy it is
0.0045 (`benchmarks/guided.py --sets research_only/corneal_80`)."""

FEWEST_MATCHES = 6
"""Whatever the chance: three determine a map, and as many confirm it."""

REACH, THRESHOLD_PX = 3.0, 3.0
"""In deviations of the expected position; and the tolerance of a match."""

CELL = 4
"""Pixels a side: the part that two frames share is found cell by cell."""

NARROW_STRIP = DenseSettings(least_shared=0.04)
"""Of all pixels where the place is known. All other thresholds stay: they tell a wrong place."""


class GuidedKeypointAgent:
    """Matches the keypoints of two frames near a known place, and looks for faint ones in what they share."""

    def __init__(
        self,
        keypoints_of: Callable[[int], Keypoints],
        read_gray: Callable[[int], tuple[NDArray[np.uint8], NDArray[np.bool_] | None]],
        outline: Outline,
    ) -> None:
        self._keypoints_of, self._read_gray, self._outline = keypoints_of, read_gray, outline

    def answer(self, pair: Pair) -> Answer:
        """Answer "cannot tell": without a known place there is nothing to go by."""
        return Answer.unsure(pair, "the place is not known")

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Answer yes with the matches near the expected place that agree, or "cannot tell" with the reason."""
        if not np.isfinite(expected.sigma_px):
            return self.answer(pair)
        i_from_j = square(expected.i_from_j) if expected.i_from_j.shape == (2, 3) else expected.i_from_j
        expected = replace(expected, i_from_j=i_from_j)
        found = self._match(pair, self._keypoints_of(pair.i), self._keypoints_of(pair.j), expected)
        if found.landmarks is not None:
            return found
        j_from_i = np.asarray(np.linalg.inv(i_from_j), dtype=np.float64)
        more_i, more_j = self._find_more(pair.i, j_from_i), self._find_more(pair.j, i_from_j)
        again = self._match(pair, more_i, more_j, expected)
        return again if again.landmarks is not None else replace(again, reason=f"{found.reason}; {again.reason}")

    def _find_more(self, number: int, other_from_own: Homographies) -> Keypoints:
        """Return all keypoints of the part of a frame that the other one shows."""
        gray, mask = self._read_gray(number)
        height, width = gray.shape
        # Cell by cell: the border of the part need not be exact, and frames may be large.
        y, x = np.arange(CELL / 2, height + CELL, CELL), np.arange(CELL / 2, width + CELL, CELL)
        with np.errstate(divide="ignore", invalid="ignore"):
            there = apply_map(other_from_own, np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))]))
        inside = self._outline.contains(np.nan_to_num(there, nan=np.inf)).reshape(len(y), len(x))
        part = inside.repeat(CELL, axis=0).repeat(CELL, axis=1)[:height, :width]
        return find_faint_keypoints(gray, part if mask is None else part & mask)

    def _match(self, pair: Pair, in_i: Keypoints, in_j: Keypoints, expected: Expectation) -> Answer:
        reach = REACH * expected.sigma_px + THRESHOLD_PX
        points_i, points_j = match_expected(in_i, in_j, expected, reach)
        needed = fewest_matches(count_candidates(in_i, in_j, expected, reach))
        if len(points_i) < needed:
            return Answer.unsure(pair, f"{len(points_i)} matches near the expected place, {needed} needed")
        fitted = fit_matches(pair, points_i, points_j, self._outline, FitSettings(least_inliers=needed))
        if fitted.landmarks is not None:
            return fitted
        # In a narrow strip no whole map is determined, but a shift of the expected one is.
        off = _straight(points_i, expected) - apply_map(expected.i_from_j, _straight(points_j, expected))
        near = np.linalg.norm(off[:, None] - off[None], axis=2) <= THRESHOLD_PX
        agreeing = near[np.argmax(near.sum(axis=1))]
        count = int(agreeing.sum())
        wanted = needed + round(FitSettings().least_share * len(points_i))
        if count < wanted:
            return Answer.unsure(
                pair, f"{count} of {len(points_i)} matches near the expected place agree, {wanted} needed"
            )
        landmarks = Landmarks(pair, points_i[agreeing], points_j[agreeing])
        return Answer.yes(landmarks, f"{count} of {len(points_i)} matches near the expected place agree on a shift")


def fewest_matches(candidates: int) -> int:
    """Return the fewest matches that hardly arise by chance from so many candidates within reach."""
    by_chance, count = CHANCE_OF_CANDIDATE * candidates, FEWEST_MATCHES
    while gammainc(count, by_chance) > LARGEST_CHANCE:  # the probability of so many or more
        count += 1
    return count


def count_candidates(in_i: Keypoints, in_j: Keypoints, expected: Expectation, reach: float) -> int:
    """Return how many keypoints of i and j lie within reach of each other by the expected map."""
    if not len(in_i) or not len(in_j):
        return 0
    there = apply_map(expected.i_from_j, _straight(in_j.points.astype(np.float64), expected))
    at_i = _straight(in_i.points.astype(np.float64), expected)
    finite = np.isfinite(there).all(axis=1)
    return int(cKDTree(at_i).count_neighbors(cKDTree(there[finite]), reach))


def _straight(points: Points, expected: Expectation) -> Points:
    return points if expected.undistort is None else expected.undistort(points)
