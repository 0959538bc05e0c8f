"""Keypoints near a known place: narrow strips are registered, wrong places are not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import poisson

from smalti.agents.guided import (
    CHANCE_OF_CANDIDATE,
    FEWEST_MATCHES,
    LARGEST_CHANCE,
    GuidedKeypointAgent,
    fewest_matches,
)
from smalti.agents.matcher import KeypointAgent
from smalti.frames.pixels import in_gray
from smalti.geometry.outline import Outline
from smalti.records import Expectation, Pair, Verdict
from smalti.registration.keypoints import Keypoints, find_keypoints
from smalti_lab.synthetic.scene import procedural_scene

WIDTH, HEIGHT = 480, 360
OUTLINE = Outline.of_pixels(WIDTH, HEIGHT)
LEFT = {0: 0, 1: 455, 2: 700}  # of the frames in the scene: the first two share 5 %, the third nothing with the first
PAIR = Pair(0, 1)
CONTRAST = 0.2


@cache
def gray(n: int) -> np.ndarray:
    picture = in_gray(procedural_scene(1200, HEIGHT, seed=4))[:, LEFT[n] : LEFT[n] + WIDTH]
    noise = np.random.default_rng(n).normal(0, 2.0, picture.shape)
    return np.clip(120 + CONTRAST * (picture - 120.0) + noise, 0, 255).astype(np.uint8)


@cache
def keypoints(n: int) -> Keypoints:
    return find_keypoints(gray(n))


def place(right: float, down: float = 0.0, sigma_px: float = 2.0) -> Expectation:
    return Expectation(np.array([[1.0, 0.0, right], [0.0, 1.0, down], [0.0, 0.0, 1.0]]), sigma_px)


def agent() -> GuidedKeypointAgent:
    return GuidedKeypointAgent(keypoints, lambda n: (gray(n), None), OUTLINE)


def test_a_strip_of_5_percent_is_registered_where_all_keypoints_do_not_agree():
    assert KeypointAgent(keypoints, OUTLINE).answer(PAIR).landmarks is None
    landmarks = agent().answer_expecting(PAIR, place(457.0, -1.0)).landmarks
    assert landmarks is not None
    off = landmarks.points_j + np.array([455.0, 0.0]) - landmarks.points_i
    assert np.sqrt(np.mean(np.sum(off**2, axis=1))) < 1.0


@pytest.mark.parametrize("right", [0.0, 200.0, 380.0, 455.0])
def test_frames_that_share_nothing_cannot_tell_wherever_they_are_expected(right):
    answer = agent().answer_expecting(Pair(0, 2), place(right))
    assert answer.verdict is Verdict.UNSURE
    assert "needed" in answer.reason


def test_without_a_known_place_it_cannot_tell():
    for answer in (agent().answer(PAIR), agent().answer_expecting(PAIR, place(0.0, sigma_px=np.inf))):
        assert answer.verdict is Verdict.UNSURE


@pytest.mark.parametrize("candidates", [0, 100, 3000, 100_000])
def test_the_fewest_matches_are_those_that_chance_hardly_ever_gives(candidates):
    needed, by_chance = fewest_matches(candidates), CHANCE_OF_CANDIDATE * candidates
    assert needed >= FEWEST_MATCHES
    assert poisson.sf(needed - 1, by_chance) <= LARGEST_CHANCE
    assert needed == FEWEST_MATCHES or poisson.sf(needed - 2, by_chance) > LARGEST_CHANCE
