"""A frame that a person lays over the other one: all pixels finish it, or say why not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.annotation.landmark_messages import SIGMA_PX
from smalti.annotation.messages import AlignFrames, Landmark, Origin
from smalti.errors import UsageError
from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import compose, invert, square
from smalti.records import Pair, Verdict
from tests.annotation.people import error_px, fresh, give, marks, opened, walk

LAID_OFF_PX, LAID_OFF_RADIANS = 5.0, 0.03
ENOUGH = 4
"""Pairs: the first ones of the sequence that are far apart in time and overlap."""


@pytest.fixture(scope="module")
def session(base, tmp_path_factory):
    with opened(fresh(base, tmp_path_factory.mktemp("by-hand"))) as session:
        yield session


@cache
def far_pairs():
    pairs = [(i, j) for i in range(len(walk())) for j in range(i + 6, len(walk())) if marks(i, j)]
    return pairs[:: max(1, len(pairs) // ENOUGH)][:ENOUGH]


def true_map(i, j):
    truth = walk().mosaic_from_frame
    return square(compose(invert(truth[i]), truth[j]))


def laid(i, j, off_px=LAID_OFF_PX, off_radians=LAID_OFF_RADIANS):
    """The true map, with what a hand does wrong."""
    cosine, sine = np.cos(off_radians), np.sin(off_radians)
    centre = np.array([[1, 0, walk().outline.centre[0]], [0, 1, walk().outline.centre[1]], [0, 0, 1]])
    turn = np.array([[cosine, -sine, off_px], [sine, cosine, -off_px], [0, 0, 1.0]])
    return true_map(i, j) @ centre @ turn @ np.linalg.inv(centre)


def align(session, i, j, i_from_j):
    return session.align(AlignFrames(i=i, j=j, i_from_j=(i_from_j / i_from_j[2, 2]).ravel().tolist()))


def errors_px(i, j, landmarks):
    points_i = np.array([(one.x_i, one.y_i) for one in landmarks])
    points_j = np.array([(one.x_j, one.y_j) for one in landmarks])
    return np.linalg.norm(apply_map(true_map(i, j), points_j) - points_i, axis=1)


def test_all_pixels_finish_what_a_hand_began(session):
    for i, j in far_pairs():
        found = align(session, i, j, laid(i, j))
        assert found.verdict is Verdict.YES, found.reason
        assert np.sqrt(np.mean(errors_px(i, j, found.landmarks) ** 2)) < 0.5
        assert {one.origin for one in found.landmarks} == {Origin.ALIGNED}


def test_every_landmark_has_a_deviation_of_its_own(session):
    i, j = far_pairs()[0]
    sigmas = [one.sigma_px for one in align(session, i, j, laid(i, j)).landmarks]
    assert None not in sigmas
    assert len(set(sigmas)) > 1


def test_what_is_laid_on_a_wrong_place_is_not_aligned(session):
    width = walk().outline.width
    for i, j in far_pairs():
        found = align(session, i, j, laid(i, j, 0.35 * width))
        assert found.verdict is Verdict.UNSURE
        assert found.reason
        assert found.landmarks == []


def test_a_map_that_is_flat_is_refused(session):
    i, j = far_pairs()[0]
    with pytest.raises(UsageError, match="lay the frame anew"):
        align(session, i, j, np.diag([1.0, 0.0, 1.0]))


def test_aligned_frames_straighten_the_mosaic(folder):
    with opened(folder) as session:
        before = error_px(session)
        for i, j in far_pairs():
            give(session, i, j, "yes", align(session, i, j, laid(i, j)).landmarks)
        assert error_px(session) < 0.6 * before


def test_the_log_keeps_how_exact_a_landmark_is(folder):
    (i, j), (k, n) = far_pairs()[:2]
    by_hand = [
        Landmark(x_i=one.x_i, y_i=one.y_i, x_j=one.x_j, y_j=one.y_j, origin=Origin.LAID) for one in marks(k, n, 4)
    ]
    with opened(folder) as session:
        aligned = align(session, i, j, laid(i, j)).landmarks
        give(session, i, j, "yes", aligned)
        give(session, k, n, "yes", by_hand)
    with opened(folder) as session:
        assert session.look(i, j).answer.landmarks == aligned
        assert session.look(k, n).answer.landmarks == by_hand
        answers = [entry.answer for entry in session.project.answers]
    sigmas = {answer.pair: answer.landmarks.sigma for answer in answers if answer.landmarks is not None}
    np.testing.assert_allclose(sigmas[Pair(i, j)], [one.sigma_px for one in aligned])
    np.testing.assert_array_equal(sigmas[Pair(k, n)], SIGMA_PX[Origin.LAID])
