"""Agents that register frames of spots, which all look alike: by where these lie alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from smalti.agents.agent import ExpectingAgent, prefetch
from smalti.agents.registration_methods import SPOTS
from smalti.engine.links import MOST_LANDMARKS
from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.records import Answer, Expectation, Landmarks, Pair
from smalti.registration.constellation import MEET_PX, Stars, find_shift

FEWEST_SPOTS = 6
"""Spots that must meet: a link of fewer hardly tells more than a shift."""

REACH = 4.0
"""Standard deviations of the expected position within which frames may lie."""

MOST_PRECISE = 3.0
"""So many times as precise as the others of its pair a landmark counts at most, and as imprecise."""


class SpotAgent:
    """Finds the shift at which the spots of two frames meet."""

    def __init__(self, stars_of: Callable[[int], Stars], outline: Outline) -> None:
        self._stars_of = stars_of
        self._outline = outline

    def answer(self, pair: Pair) -> Answer:
        """Answer yes with the spots that meet, or "cannot tell" with the reason; the frames may lie anywhere."""
        return self._answer(pair, None)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Answer in the same way; near the expected place fewer spots are enough."""
        return self._answer(pair, expected)

    def _answer(self, pair: Pair, expected: Expectation | None) -> Answer:
        in_i, in_j = self._stars_of(pair.i), self._stars_of(pair.j)
        if min(len(in_i), len(in_j)) < FEWEST_SPOTS:
            return Answer.unsure(pair, "too few spots on a flat ground")
        size = self._outline.width, self._outline.height
        near = None
        if expected is not None and np.isfinite(expected.sigma_px):
            whole = square(expected.i_from_j) if expected.i_from_j.shape == (2, 3) else expected.i_from_j
            centre = self._outline.centre
            near = apply_map(whole, centre[None])[0] - centre, REACH * expected.sigma_px + MEET_PX
        found = find_shift(in_i, in_j, *size, near)
        if found is None and near is not None:
            found = find_shift(in_i, in_j, *size)
        if found is None or len(found) < FEWEST_SPOTS:
            return Answer.unsure(pair, f"no more of the {len(in_i)} and {len(in_j)} spots meet than by chance")
        if np.hypot(*found.offset) < MEET_PX and (near is None or np.hypot(*near[0]) > near[1]):
            return Answer.unsure(pair, f"{len(found)} spots stand still, like dust or bad pixels of a camera")
        # As precise as others on average: how precise, the engine learns. Faint and wide spots are less so.
        sigmas = np.clip(found.sigmas / np.median(found.sigmas), 1.0 / MOST_PRECISE, MOST_PRECISE)
        landmarks = Landmarks(pair, found.points_i, found.points_j, sigmas)
        if not landmarks.determine_affine:
            return Answer.unsure(pair, f"{len(found)} spots meet, but lie on one line")
        return Answer.yes(landmarks, f"{len(found)} spots meet; by chance {found.by_chance:.0e} shifts are as good")


class FullerAgent:
    """Asks for keypoints, and for spots where they are fewer than a link uses; takes the answer with more landmarks."""

    def __init__(self, keypoints: ExpectingAgent, spots: SpotAgent) -> None:
        self._keypoints, self._spots = keypoints, spots

    def answer(self, pair: Pair) -> Answer:
        """Return the answer with more landmarks."""
        return _fuller(self._keypoints.answer(pair), lambda: self._spots.answer(pair))

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Return the answer with more landmarks; both look near the expected place."""
        by_keypoints = self._keypoints.answer_expecting(pair, expected)
        return _fuller(by_keypoints, lambda: self._spots.answer_expecting(pair, expected))

    def prefetch(self, pairs: Iterable[Pair], expected: Sequence[Expectation | None] = ()) -> None:
        """Let the keypoints be matched ahead."""
        prefetch(self._keypoints, pairs, expected)


def _fuller(by_keypoints: Answer, ask_spots: Callable[[], Answer]) -> Answer:
    matched = 0 if by_keypoints.landmarks is None else len(by_keypoints.landmarks)
    if matched >= MOST_LANDMARKS:
        return by_keypoints
    by_spots = ask_spots()
    if by_spots.landmarks is not None and len(by_spots.landmarks) > matched:
        return replace(by_spots, landmarks=replace(by_spots.landmarks, method=SPOTS))
    return by_keypoints if matched else Answer.unsure(by_keypoints.pair, f"{by_keypoints.reason}; {by_spots.reason}")
