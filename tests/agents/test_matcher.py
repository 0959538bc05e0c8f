"""Agents that look for themselves: keypoints, and whatever a user's matcher returns."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.agents.matcher import CallableAgent, KeypointAgent
from smalti.errors import UsageError
from smalti.geometry.outline import Outline
from smalti.paper.linear_adjustment import fit_affine_link
from smalti.records import Answer, Pair, Verdict
from smalti.registration.robust_fit import FitSettings
from tests.registration.scenes import apart, flight, keypoints, largest_error, overlapping

PAIR = Pair(1, 3)
OUTLINE = Outline.of_pixels(240, 180)
POINTS = np.random.default_rng(1).uniform([0, 0], [239, 179], (40, 2))
MOVED = POINTS + np.array([12.0, -3.0])


def read(number: int) -> np.ndarray:
    return np.full((180, 240, 3), number, np.uint8)


def answer_of(found: object, settings: FitSettings | None = None) -> Answer:
    return CallableAgent(lambda _i, _j: found, read, OUTLINE, settings).answer(PAIR)


def complaint(found: object) -> str:
    with pytest.raises(UsageError) as caught:
        answer_of(found)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_keypoints_of_overlapping_frames_give_a_yes_near_the_truth():
    agent = KeypointAgent(keypoints, flight().outline)
    pair = overlapping(0.5)[0]
    answer = agent.answer(pair)
    assert answer.pair == pair
    assert answer.landmarks is not None
    assert largest_error(fit_affine_link(answer.landmarks).i_from_j, pair) < 0.3


def test_keypoints_of_frames_apart_give_a_no_with_a_reason():
    answer = KeypointAgent(keypoints, flight().outline).answer(apart()[0])
    assert answer.verdict is Verdict.NO
    assert answer.reason


def test_the_agent_of_keypoints_heeds_its_settings():
    pair = overlapping(0.5)[0]
    strict = KeypointAgent(keypoints, flight().outline, FitSettings(least_inliers=100_000))
    assert "100000 needed" in strict.answer(pair).reason


def test_a_matcher_gets_the_first_image_first():
    seen = []
    CallableAgent(lambda image_i, image_j: seen.append((image_i[0, 0, 0], image_j[0, 0, 0])), read, OUTLINE).answer(
        PAIR
    )
    assert seen == [(1, 3)]


def test_what_a_matcher_returns_become_the_landmarks_of_their_frames():
    answer = answer_of((MOVED, POINTS))
    assert answer.verdict is Verdict.YES
    assert answer.pair == PAIR
    np.testing.assert_array_equal(answer.landmarks.points_i, MOVED)
    np.testing.assert_array_equal(answer.landmarks.points_j, POINTS)


@pytest.mark.parametrize(
    "found",
    [
        (MOVED.tolist(), POINTS.tolist()),
        [MOVED, POINTS],
        np.stack([MOVED, POINTS]),
        (MOVED.astype(np.float32), POINTS.astype(np.float32)),
        (np.rint(POINTS).astype(int) + 5, np.rint(POINTS).astype(int)),
        ([tuple(point) for point in MOVED], [tuple(point) for point in POINTS]),
    ],
    ids=["lists", "a list of two", "one array", "floats", "whole numbers", "tuples"],
)
def test_points_may_come_in_any_common_form(found):
    assert answer_of(found).verdict is Verdict.YES


def test_none_is_a_no():
    answer = answer_of(None)
    assert answer.verdict is Verdict.NO
    assert answer.reason == "the matcher found nothing"


@pytest.mark.parametrize("nothing", [([], []), (np.empty((0, 2)), np.empty((0, 2)))])
def test_no_points_are_a_no(nothing):
    answer = answer_of(nothing)
    assert answer.verdict is Verdict.NO
    assert answer.reason.startswith("0 matches")


def test_wrong_matches_are_checked_like_those_of_keypoints():
    wrong = np.random.default_rng(2).uniform([0, 0], [239, 179], (40, 2))
    assert answer_of((wrong, POINTS)).verdict is Verdict.NO


def test_settings_decide_what_is_believed():
    assert answer_of((MOVED, POINTS), FitSettings(least_inliers=41)).verdict is Verdict.NO


def test_lists_of_different_lengths_are_refused_by_their_lengths_and_pair():
    message = complaint((MOVED, POINTS[:-1]))
    assert "(1, 3)" in message
    assert "40 points" in message
    assert "39" in message


def test_points_on_one_side_only_are_refused():
    assert "0 points" in complaint(([], POINTS))


@pytest.mark.parametrize("found", [7, (MOVED,), (MOVED, POINTS, POINTS), MOVED, True])
def test_anything_but_two_sets_of_points_is_refused(found):
    assert "two arrays of points (n, 2)" in complaint(found)


@pytest.mark.parametrize("shape", [(12, 3), (24,), (12, 2, 1)])
def test_points_of_another_shape_are_refused_by_it(shape):
    assert str(shape) in complaint((np.zeros(shape), np.zeros(shape)))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_points_that_are_not_finite_are_refused(wrong):
    points = POINTS.copy()
    points[3, 1] = wrong
    assert "finite" in complaint((points, POINTS))


@pytest.mark.parametrize(
    "found",
    [([[1, 2], [3]], [[1, 2], [3, 4]]), ("ab", "cd"), {"points_i": MOVED, "points_j": POINTS}],
    ids=["ragged", "text", "dictionary"],
)
def test_what_is_no_array_is_refused_in_one_line(found):
    complaint(found)


def test_an_error_of_the_matchers_own_comes_through():
    def fails(_i, _j):
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        CallableAgent(fails, read, OUTLINE).answer(PAIR)
