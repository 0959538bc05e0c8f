"""Learned keypoints of frames whose true maps are known."""

from __future__ import annotations

from functools import cache

import cv2
import numba
import numpy as np
import pytest

from smalti.agents.matcher import KeypointAgent
from smalti.paper.linear_adjustment import fit_affine_link
from smalti.records import Pair, Verdict
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
    image = gray(0)
    turned = np.ascontiguousarray(np.rot90(image))
    one, other = match_keypoints(found_in(image), found_in(turned), LEARNED_MATCHES)
    there = np.column_stack([one[:, 1], image.shape[1] - 1 - one[:, 0]])
    assert np.sum(np.linalg.norm(there - other, axis=1) < 3.0) > 0.4 * len(one)


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


def test_a_large_frame_is_reduced_and_its_points_are_those_of_the_frame():
    image = gray(0)
    large = np.asarray(cv2.resize(image, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    one, other = match_keypoints(found_in(image), found_in(large), LEARNED_MATCHES)
    off = np.linalg.norm(other - (4.0 * (one + 0.5) - 0.5), axis=1)
    assert np.mean(off < 8.0) > 0.3


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


def test_a_frame_without_any_contrast_has_answers_too(agent):
    blank = found_in(np.full((64, 96), 120, np.uint8))
    alone = KeypointAgent(lambda _: blank, flight().outline, LEARNED_FIT, LEARNED_MATCHES)
    assert alone.answer(Pair(0, 1)).verdict is Verdict.UNSURE
