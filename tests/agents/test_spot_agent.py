"""Frames of spots as an agent answers about them."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.agents.matcher import ENOUGH_MATCHES
from smalti.agents.spot_agent import FullerAgent, SpotAgent
from smalti.geometry.outline import Outline
from smalti.records import Answer, Expectation, Landmarks, Pair, Verdict
from smalti.registration.constellation import Stars

OUTLINE = Outline.of_pixels(400, 400)
PAIR = Pair(0, 1)


def agent(offset, shared, on_a_line=False, apart=12):
    rng = np.random.default_rng(1)
    common = rng.uniform(np.maximum(offset, 0.0), 400.0, (shared, 2))
    if on_a_line:
        common[:, 0] = common[0, 0]
    frames = [np.vstack([common - shift, rng.uniform(0, 400, (apart, 2))]) for shift in (np.zeros(2), np.array(offset))]
    strengths = rng.uniform(20, 200, shared + apart)
    return SpotAgent(lambda n: Stars.of(frames[n], strengths, np.full(shared + apart, 0.1)), OUTLINE)


def at(offset, sigma_px=4.0):
    i_from_j = np.eye(3)
    i_from_j[:2, 2] = offset
    return Expectation(i_from_j, sigma_px)


def test_the_landmarks_are_the_spots_that_meet():
    answer = agent([355.0, 2.0], 20).answer(PAIR)
    assert answer.verdict is Verdict.YES
    np.testing.assert_allclose(
        answer.landmarks.points_i - answer.landmarks.points_j, [[355.0, 2.0]] * len(answer.landmarks)
    )
    assert len(answer.landmarks) >= 18


def test_near_the_expected_place_fewer_spots_are_enough():
    few = agent([355.0, 2.0], 6, apart=60)
    assert few.answer(PAIR).verdict is Verdict.UNSURE
    assert few.answer_expecting(PAIR, at([351.0, 6.0])).verdict is Verdict.YES


def test_a_wrong_expectation_does_not_hide_what_many_spots_show():
    assert agent([355.0, 2.0], 20).answer_expecting(PAIR, at([20.0, 300.0])).verdict is Verdict.YES


def test_dust_that_stands_still_in_the_picture_is_no_match():
    answer = agent([0.0, 0.0], 20).answer(PAIR)
    assert answer.verdict is Verdict.UNSURE
    assert "stand still" in answer.reason


def test_spots_on_one_line_make_no_link():
    assert "on one line" in agent([355.0, 2.0], 20, on_a_line=True).answer(PAIR).reason


@pytest.mark.parametrize("spots", [0, 5])
def test_frames_with_hardly_any_spots_are_not_compared(spots):
    frames = Stars.of(np.random.default_rng(1).uniform(0, 400, (spots, 2)), np.ones(spots), np.ones(spots))
    assert "too few spots" in SpotAgent(lambda _: frames, OUTLINE).answer(PAIR).reason


class Says:
    """Answers with so many landmarks, and notes that it was asked."""

    def __init__(self, landmarks):
        self.landmarks, self.asked = landmarks, 0

    def answer(self, pair):
        self.asked += 1
        if not self.landmarks:
            return Answer.unsure(pair, "nothing")
        points = np.random.default_rng(2).uniform(0, 400, (self.landmarks, 2))
        return Answer.yes(Landmarks(pair, points, points))


@pytest.mark.parametrize(("keypoints", "spots", "taken"), [(18, 46, 46), (30, 11, 30), (0, 8, 8), (12, 0, 12)])
def test_the_answer_with_more_landmarks_is_taken(keypoints, spots, taken):
    assert len(FullerAgent(Says(keypoints), Says(spots)).answer(PAIR).landmarks) == taken


def test_spots_are_not_looked_for_where_keypoints_are_enough():
    spots = Says(500)
    FullerAgent(Says(ENOUGH_MATCHES), spots).answer(PAIR)
    assert spots.asked == 0


def test_the_reasons_of_both_are_told_where_neither_matches():
    assert FullerAgent(Says(0), Says(0)).answer(PAIR).reason == "nothing; nothing"
