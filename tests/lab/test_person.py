"""The simulated person."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.records import Answer, Author, Landmarks, Pair, Verdict
from smalti_lab.simulated_agents import SimulatedPerson

SIZE = 200
RADIUS = 90.0
STEP = 4.0
"""Frame n + 1 lies so many pixels to the right of frame n."""


OFFSETS = np.arange(SIZE) - (SIZE - 1) / 2
DISC = np.hypot(OFFSETS, OFFSETS[:, None]) <= RADIUS


def in_disc(n: int) -> np.ndarray:
    return DISC


def shifted(i: int, j: int, points_j: np.ndarray) -> np.ndarray:
    return points_j + np.array([STEP * (j - i), 0.0])


def person(seed: int = 1, **settings) -> SimulatedPerson:
    return SimulatedPerson(shifted, in_disc, seed=seed, **{"unsure": 0.0, **settings})


def yes(answer: Answer) -> Landmarks:
    assert answer.landmarks is not None
    return answer.landmarks


def common_part(distance: float) -> float:
    """Return the part of a disc that another one at that distance covers."""
    half = distance / 2 / RADIUS
    return 2 / np.pi * (np.arccos(half) - half * np.sqrt(1 - half**2))


@pytest.mark.parametrize("apart", [1, 28, 31, 44])
def test_frames_overlap_for_a_person_if_enough_of_one_is_seen_in_the_other(apart):
    share = common_part(STEP * apart)
    assert abs(share - 0.15) > 0.02
    verdict = person().answer(Pair(3, 3 + apart)).verdict
    assert verdict is (Verdict.YES if share > 0.15 else Verdict.NO)


def test_how_much_must_be_seen_is_a_setting():
    pair = Pair(0, 20)
    assert common_part(80) == pytest.approx(0.46, abs=0.01)
    assert person(least=0.4).answer(pair).verdict is Verdict.YES
    assert person(least=0.5).answer(pair).verdict is Verdict.NO


@pytest.mark.parametrize("apart", [2, 30])
def test_landmarks_are_a_handful_well_spread_over_what_both_frames_show(apart):
    for i in range(20):
        landmarks = yes(person().answer(Pair(i, i + apart)))
        assert 5 <= len(landmarks) <= 8
        points = landmarks.points_j
        for shown in (points, shifted(i, i + apart, points)):
            assert (np.linalg.norm(shown - (SIZE - 1) / 2, axis=1) < RADIUS + 1).all()
        away = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(len(points), 1)]
        assert away.min() > 12
        assert away.max() > 100
        assert np.linalg.eigvalsh(np.cov(points.T))[0] > 12**2


def test_points_are_off_by_the_asked_deviation_in_frame_i_and_say_so():
    noise = []
    for i in range(200):
        landmarks = yes(person(sigma=1.5).answer(Pair(i, i + 5)))
        assert landmarks.sigma == 1.5
        noise.append(landmarks.points_i - shifted(i, i + 5, landmarks.points_j))
    off = np.concatenate(noise).ravel()
    assert off.std() == pytest.approx(1.5, rel=4 / np.sqrt(2 * len(off)))
    assert abs(off.mean()) < 4 * 1.5 / np.sqrt(len(off))


def test_one_pair_in_twenty_is_too_hard():
    agent = SimulatedPerson(shifted, in_disc, seed=2)
    answers = [agent.answer(Pair(i, i + apart)) for i in range(300) for apart in (3, 44)]
    for verdict in (Verdict.YES, Verdict.NO):
        assert any(answer.verdict is verdict for answer in answers)
    hard = [answer for answer in answers if answer.verdict is Verdict.UNSURE]
    assert 0.025 < len(hard) / len(answers) < 0.08
    assert all("hard to compare" in answer.reason for answer in hard)


def test_nobody_can_tell_about_a_disturbed_frame_and_the_reason_names_it():
    agent = person(disturbed=np.array([4, 9]))
    for pair, frame in ((Pair(4, 5), 4), (Pair(5, 9), 9), (Pair(9, 60), 9)):
        answer = agent.answer(pair)
        assert answer.verdict is Verdict.UNSURE
        assert answer.reason == f"frame {frame} shows nothing"
    assert agent.answer(Pair(5, 6)).verdict is Verdict.YES


def test_every_answer_is_a_persons():
    agent = person(disturbed=[0])
    answers = [agent.answer(pair) for pair in (Pair(0, 1), Pair(1, 2), Pair(1, 60))]
    assert [answer.author for answer in answers] == [Author.PERSON] * 3
    assert len({answer.verdict for answer in answers}) == 3


def test_an_answer_depends_on_the_seed_and_the_pair_alone():
    agent = person(7)
    agent.answer(Pair(0, 1))
    one, fresh, other = (yes(someone.answer(Pair(2, 5))) for someone in (agent, person(7), person(8)))
    np.testing.assert_array_equal(one.points_i, fresh.points_i)
    np.testing.assert_array_equal(one.points_j, fresh.points_j)
    assert not np.isin(one.points_i, other.points_i).any()
    for pair in (Pair(3, 5), Pair(2, 6)):
        assert not np.isin(one.points_j, yes(agent.answer(pair)).points_j).any()


def test_a_frame_without_a_field_of_view_overlaps_nothing():
    agent = SimulatedPerson(shifted, lambda n: DISC & (n != 1), unsure=0.0)
    assert agent.answer(Pair(0, 1)).verdict is agent.answer(Pair(1, 2)).verdict is Verdict.NO


@pytest.mark.parametrize("setting", [{"sigma": 0.0}, {"least": 0.0}, {"unsure": 1.5}, {"sigma": float("nan")}])
def test_a_senseless_person_is_refused(setting):
    with pytest.raises(UsageError, match="a person with sigma"):
        person(**setting)
