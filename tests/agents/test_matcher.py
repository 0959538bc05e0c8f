"""Agents that look for themselves: keypoints, and whatever a user's matcher returns."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.agents.agent import ask
from smalti.agents.matcher import CallableAgent, KeypointAgent
from smalti.errors import UsageError
from smalti.frames.pixels import in_gray
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.paper.linear_adjustment import fit_affine_link
from smalti.records import Answer, Expectation, Pair, Verdict
from smalti.registration.keypoints import Keypoints, find_keypoints, match_keypoints
from smalti.registration.robust_fit import FitSettings
from smalti_lab.synthetic.scene import procedural_scene
from tests.registration.scenes import apart, flight, keypoints, largest_error, overlapping, true_map

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


def test_keypoints_of_frames_apart_cannot_tell_and_say_why():
    answer = KeypointAgent(keypoints, flight().outline).answer(apart()[0])
    assert answer.verdict is Verdict.UNSURE
    assert answer.reason


def test_the_agent_of_keypoints_heeds_its_settings():
    pair = overlapping(0.5)[0]
    strict = KeypointAgent(keypoints, flight().outline, FitSettings(least_inliers=100_000))
    assert "100000 needed" in strict.answer(pair).reason


def test_what_was_prefetched_is_what_would_be_answered_without():
    pairs = [*overlapping(0.5)[:3], apart()[0]]
    ahead, alone = (KeypointAgent(keypoints, flight().outline) for _ in range(2))
    ahead.prefetch(pairs)
    for pair in pairs:
        answer, expected = ahead.answer(pair), alone.answer(pair)
        assert (answer.verdict, answer.reason) == (expected.verdict, expected.reason)
        if expected.landmarks is not None:
            np.testing.assert_array_equal(answer.landmarks.points_i, expected.landmarks.points_i)


def test_only_where_few_keypoints_do_not_match_all_are_compared(monkeypatch):
    pair = overlapping(0.5)[0]
    agent = KeypointAgent(keypoints, flight().outline)
    every = len(agent.answer(pair).landmarks)
    compared = []

    def match(in_i, in_j, settings):
        compared.append(len(in_i))
        return match_keypoints(in_i, in_j, settings)

    monkeypatch.setattr("smalti.agents.matcher.match_keypoints", match)
    few = len(keypoints(pair.i)) // 2
    monkeypatch.setattr("smalti.agents.matcher.MATCHED_FIRST", few)
    monkeypatch.setattr("smalti.agents.matcher.ENOUGH_MATCHES", 20)
    assert 20 <= len(agent.answer(pair).landmarks) < every
    # Of too few, a map is found: near it, all keypoints are matched.
    monkeypatch.setattr("smalti.agents.matcher.ENOUGH_MATCHES", every)
    assert len(agent.answer(pair).landmarks) >= every
    assert set(compared) == {few}
    # So few show no map.
    monkeypatch.setattr("smalti.agents.matcher.MATCHED_FIRST", 8)
    assert len(agent.answer(pair).landmarks) == every
    assert compared[-1] == len(keypoints(pair.i))


def expected_of(pair: Pair, sigma_px: float = 2.0) -> Expectation:
    return Expectation(square(true_map(pair)), sigma_px)


def test_where_the_place_is_known_more_keypoints_match():
    agent = KeypointAgent(keypoints, flight().outline)
    for pair in overlapping(0.3):
        anywhere, there = agent.answer(pair).landmarks, agent.answer_expecting(pair, expected_of(pair)).landmarks
        assert there is not None
        assert len(there) >= len(anywhere or ())
        assert largest_error(fit_affine_link(there).i_from_j, pair) < 0.3


def test_frames_apart_are_not_matched_wherever_they_are_expected():
    agent = KeypointAgent(keypoints, flight().outline)
    places = [expected_of(pair, sigma_px) for pair in overlapping(0.5)[::7] for sigma_px in (0.5, 2.0)]
    wrong = [pair for pair in apart() for place in places if agent.answer_expecting(pair, place).landmarks is not None]
    assert wrong == []


def test_a_wrong_expectation_does_not_hide_an_overlap():
    agent = KeypointAgent(keypoints, flight().outline)
    pair = overlapping(0.5)[0]
    wrong = expected_of(pair)
    wrong.i_from_j[:2, 2] += 40.0
    answer = agent.answer_expecting(pair, wrong)
    assert answer.landmarks is not None
    np.testing.assert_array_equal(answer.landmarks.points_i, agent.answer(pair).landmarks.points_i)


@pytest.mark.parametrize("passed", ["the same", "none", "another"])
def test_what_was_prefetched_with_an_expectation_is_what_would_be_answered_without(passed):
    ahead, alone = (KeypointAgent(keypoints, flight().outline) for _ in range(2))
    pairs = overlapping(0.5)[:3]
    expected = [expected_of(pair) for pair in pairs]
    ahead.prefetch(pairs, expected)
    for pair, known in zip(pairs, expected, strict=True):
        asked = {"the same": known, "none": None, "another": expected_of(pair, 1.0)}[passed]
        found, wanted = (ask(agent, pair, asked).landmarks for agent in (ahead, alone))
        np.testing.assert_array_equal(found.points_i, wanted.points_i)


STRIP_PX = 30
STRIP = Pair(0, 1)


@cache
def beside(number: int) -> Keypoints:
    """Of two tiles beside each other that share a narrow strip."""
    scene = procedural_scene(2 * 240 - STRIP_PX, 180, seed=4)
    left = number * (240 - STRIP_PX)
    return find_keypoints(in_gray(np.ascontiguousarray(scene[:, left : left + 240])))


def shifted(x: float, sigma_px: float) -> Expectation:
    i_from_j = np.eye(3)
    i_from_j[0, 2] = x
    return Expectation(i_from_j, sigma_px)


def test_in_the_strip_where_an_overlap_is_expected_more_keypoints_match():
    agent = KeypointAgent(beside, OUTLINE)
    anywhere, there = agent.answer(STRIP), agent.answer_expecting(STRIP, shifted(240 - STRIP_PX - 4.0, 4.0))
    assert there.landmarks is not None
    assert len(there.landmarks) > 1.1 * len(anywhere.landmarks or ())
    off = np.median(there.landmarks.points_i - there.landmarks.points_j, axis=0)
    np.testing.assert_allclose(off, [240 - STRIP_PX, 0.0], atol=0.2)


@pytest.mark.parametrize("expected", [shifted(-210.0, 4.0), shifted(20.0, 4.0), shifted(0.0, np.inf)])
def test_a_wrong_or_wide_expectation_costs_no_match(expected):
    agent = KeypointAgent(beside, OUTLINE)
    anywhere, there = agent.answer(STRIP).landmarks, agent.answer_expecting(STRIP, expected).landmarks
    assert anywhere is not None
    assert there is not None
    np.testing.assert_array_equal(anywhere.points_i, there.points_i)


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


def test_none_cannot_tell():
    answer = answer_of(None)
    assert answer.verdict is Verdict.UNSURE
    assert answer.reason == "the matcher found nothing"


@pytest.mark.parametrize("nothing", [([], []), (np.empty((0, 2)), np.empty((0, 2)))])
def test_no_points_cannot_tell(nothing):
    answer = answer_of(nothing)
    assert answer.verdict is Verdict.UNSURE
    assert answer.reason.startswith("0 matches")


def test_wrong_matches_are_checked_like_those_of_keypoints():
    wrong = np.random.default_rng(2).uniform([0, 0], [239, 179], (40, 2))
    assert answer_of((wrong, POINTS)).verdict is Verdict.UNSURE


def test_settings_decide_what_is_believed():
    assert answer_of((MOVED, POINTS), FitSettings(least_inliers=41)).verdict is Verdict.UNSURE


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
