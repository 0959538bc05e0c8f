"""Learned keypoints of frames whose true maps are known."""

from __future__ import annotations

from functools import cache

import cv2
import numba
import numpy as np
import pytest

from smalti.agents.matcher import KeypointAgent
from smalti.geometry.linear_maps import apply
from smalti.paper.linear_adjustment import fit_affine_link
from smalti.records import Verdict
from smalti.registration import learned_keypoints
from smalti.registration.keypoints import DESCRIPTOR_LEVELS, Keypoints, match_keypoints
from smalti.registration.learned_keypoints import (
    FROM_RIM_PX,
    LEARNED_FIT,
    LEARNED_KEYPOINTS,
    LEARNED_MATCHES,
    find_learned_keypoints,
)
from smalti.registration.learned_weights import require_weights
from tests.registration.learned import needs_weights
from tests.registration.scenes import apart, flight, gray, largest_error, overlapping

pytestmark = needs_weights


def found_in(image: np.ndarray, mask: np.ndarray | None = None) -> Keypoints:
    return find_learned_keypoints(image, mask, require_weights())


@cache
def dull(number: int) -> Keypoints:
    """Those of a frame with a tenth of its contrast, and noise."""
    rng = np.random.default_rng(number)
    faint = 120 + 0.1 * (gray(number).astype(np.float32) - 128) + rng.normal(0, 1.0, gray(number).shape)
    return found_in(np.clip(faint, 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def agent() -> KeypointAgent:
    return KeypointAgent(dull, flight().outline, LEARNED_FIT, LEARNED_MATCHES)


def test_dull_frames_that_overlap_are_matched_near_the_truth(agent):
    pair = overlapping(0.5)[0]
    landmarks = agent.answer(pair).landmarks
    assert landmarks is not None
    assert largest_error(fit_affine_link(landmarks).i_from_j, pair) < 1.0


def test_dull_frames_apart_are_not_matched(agent):
    assert {agent.answer(pair).verdict for pair in apart()[:40:4]} == {Verdict.UNSURE}


def test_a_turned_frame_is_matched():
    turn = cv2.getRotationMatrix2D((119.5, 89.5), 30, 1.0)
    turned = np.asarray(cv2.warpAffine(gray(0), turn, (240, 180), borderMode=cv2.BORDER_REFLECT), dtype=np.uint8)
    one, other = match_keypoints(found_in(gray(0)), found_in(turned), LEARNED_MATCHES)
    assert np.mean(np.linalg.norm(apply(turn, one) - other, axis=1) < 3.0) > 0.6


def test_nothing_is_found_where_the_mask_hides_the_frame():
    mask = np.zeros(gray(0).shape, np.bool_)
    mask[40:140, 60:200] = True
    x, y = np.rint(found_in(gray(0), mask).points).astype(int).T
    inside = cv2.erode(mask.astype(np.uint8), np.ones((2 * FROM_RIM_PX - 3,) * 2, np.uint8))
    assert len(x) > 20
    assert inside[y, x].all()


def test_descriptors_have_length_one_and_points_lie_in_the_frame():
    found = found_in(gray(0))
    lengths = np.linalg.norm(found.descriptors.astype(float), axis=1)
    assert 0 < len(found) <= LEARNED_KEYPOINTS
    np.testing.assert_allclose(lengths, DESCRIPTOR_LEVELS, rtol=0.02)
    assert ((found.points >= 0) & (found.points <= np.array(gray(0).shape[::-1]) - 1)).all()


def test_a_large_frame_is_reduced_and_its_points_are_those_of_the_frame(monkeypatch):
    monkeypatch.setattr(learned_keypoints, "MOST_PIXELS", gray(0).size)
    large = np.repeat(np.repeat(gray(0), 3, axis=0), 3, axis=1)
    np.testing.assert_allclose(found_in(large).points, 3.0 * (found_in(gray(0)).points + 0.5) - 0.5, atol=1e-3)


def test_the_bits_do_not_depend_on_the_number_of_threads():
    several = found_in(gray(3))
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        one = found_in(gray(3))
    finally:
        numba.set_num_threads(before)
    for name in ("points", "descriptors", "strengths"):
        np.testing.assert_array_equal(getattr(several, name), getattr(one, name))


def test_nothing_is_found_in_a_frame_without_contrast():
    assert len(found_in(np.full((64, 96), 120, np.uint8))) == 0
