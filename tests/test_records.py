"""What the records between the stages accept and refuse."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from smalti.errors import LandmarkError, PairError
from smalti.records import Answer, Landmarks, Pair, Suggestion, Verdict

PAIR = Pair(2, 5)
POINTS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


@pytest.mark.parametrize(("i", "j"), [(3, 3), (4, 3), (-1, 3), (-2, -1)])
def test_a_pair_that_is_reversed_equal_or_negative_is_refused(i: int, j: int) -> None:
    with pytest.raises(PairError, match=rf"\({i}, {j}\).*the earlier one first"):
        Pair(i, j)


def test_pairs_are_ordered_by_the_earlier_frame_then_by_the_later_one() -> None:
    pairs = [Pair(1, 2), Pair(0, 9), Pair(0, 3), Pair(1, 5)]
    assert sorted(pairs) == [Pair(0, 3), Pair(0, 9), Pair(1, 2), Pair(1, 5)]


def test_equal_pairs_are_one_key() -> None:
    assert {Pair(1, 2): "first", Pair(1, 2): "second"} == {Pair(1, 2): "second"}


def test_a_pair_prints_as_its_frames() -> None:
    assert str(PAIR) == "(2, 5)"


def test_a_pair_within_the_sequence_passes() -> None:
    PAIR.check_within(6)


def test_a_pair_beyond_the_sequence_is_refused_with_the_frames_there_are() -> None:
    with pytest.raises(PairError, match="0 to 4"):
        PAIR.check_within(5)


def test_landmarks_have_the_length_of_their_points() -> None:
    assert len(Landmarks(PAIR, POINTS, POINTS)) == 3


def test_landmarks_do_not_follow_later_changes_of_the_points_they_were_made_of() -> None:
    points = POINTS.copy()
    landmarks = Landmarks(PAIR, points, points)
    points[0, 0] = 99.0
    assert landmarks.points_i[0, 0] == landmarks.points_j[0, 0] == 0.0


def test_landmarks_do_not_follow_later_changes_of_the_sigma_they_were_made_of() -> None:
    sigma = np.ones(3)
    landmarks = Landmarks(PAIR, POINTS, POINTS, sigma)
    sigma[0] = 99.0
    assert np.broadcast_to(landmarks.sigma, (3,))[0] == 1.0


@pytest.mark.parametrize("name", ["points_i", "points_j"])
def test_points_of_landmarks_cannot_be_written_to(name: str) -> None:
    landmarks = Landmarks(PAIR, POINTS, POINTS)
    with pytest.raises(ValueError, match="read-only"):
        getattr(landmarks, name)[0, 0] = 1.0


@pytest.mark.parametrize(("shape", "side"), [((3,), "points_i"), ((3, 3), "points_j"), ((1, 3, 2), "points_j")])
def test_points_of_another_shape_are_refused_with_the_shape(shape: tuple[int, ...], side: str) -> None:
    points = {"points_i": POINTS, "points_j": POINTS, side: np.zeros(shape)}
    with pytest.raises(LandmarkError, match=rf"\(2, 5\).*{side} has shape .*expected \(n, 2\)"):
        Landmarks(PAIR, **points)


@pytest.mark.parametrize(("wrong", "side"), [(math.nan, "points_i"), (math.inf, "points_j")])
def test_a_point_that_is_not_finite_is_refused_by_its_number(wrong: float, side: str) -> None:
    points = {"points_i": POINTS, "points_j": POINTS, side: POINTS.copy()}
    points[side][1, 0] = wrong
    with pytest.raises(LandmarkError, match=rf"\(2, 5\).*landmark 1 of {side}"):
        Landmarks(PAIR, **points)


def test_points_without_partner_are_refused() -> None:
    with pytest.raises(LandmarkError, match="3 points in frame 2 but 2 in frame 5"):
        Landmarks(PAIR, POINTS, POINTS[:2])


@pytest.mark.parametrize("sigma", [0.0, math.nan, math.inf, np.array([1.0, -1.0, 1.0])])
def test_a_sigma_that_is_not_positive_and_finite_is_refused(sigma: float | np.ndarray) -> None:
    with pytest.raises(LandmarkError, match="sigma"):
        Landmarks(PAIR, POINTS, POINTS, sigma)


def test_as_many_sigmas_as_landmarks_are_accepted() -> None:
    landmarks = Landmarks(PAIR, POINTS, POINTS, np.array([1.0, 2.0, 3.0]))
    assert np.asarray(landmarks.sigma).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("shape", [(2,), (3, 2)])
def test_sigmas_of_another_shape_than_one_a_landmark_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(LandmarkError, match="sigma"):
        Landmarks(PAIR, POINTS, POINTS, np.ones(shape))


def test_a_yes_carries_its_landmarks() -> None:
    landmarks = Landmarks(PAIR, POINTS, POINTS)
    answer = Answer.yes(landmarks)
    assert (answer.pair, answer.verdict, answer.landmarks) == (PAIR, Verdict.YES, landmarks)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(Answer.no(PAIR), Verdict.NO), (Answer.unsure(PAIR), Verdict.UNSURE)],
)
def test_no_and_unsure_carry_no_landmarks(answer: Answer, verdict: Verdict) -> None:
    assert (answer.pair, answer.verdict, answer.landmarks) == (PAIR, verdict, None)


def test_a_yes_without_landmarks_is_refused() -> None:
    with pytest.raises(LandmarkError, match="a yes comes with landmarks"):
        Answer(PAIR, Verdict.YES)


@pytest.mark.parametrize("verdict", [Verdict.NO, Verdict.UNSURE])
def test_another_answer_with_landmarks_is_refused(verdict: Verdict) -> None:
    with pytest.raises(LandmarkError, match="without"):
        Answer(PAIR, verdict, Landmarks(PAIR, POINTS, POINTS))


def test_landmarks_of_another_pair_are_refused() -> None:
    with pytest.raises(PairError, match=r"belong to pair \(0, 1\)"):
        Answer(PAIR, Verdict.YES, Landmarks(Pair(0, 1), POINTS, POINTS))


def test_a_verdict_may_be_given_by_its_word() -> None:
    assert Answer(PAIR, "unsure").verdict is Verdict.UNSURE  # type: ignore[arg-type]


def test_suggestions_have_no_reasons_unless_given() -> None:
    assert Suggestion(PAIR, 1.5).reasons == {}


@pytest.mark.parametrize(
    ("record", "name"),
    [(PAIR, "i"), (Landmarks(PAIR, POINTS, POINTS), "pair"), (Answer.no(PAIR), "verdict")],
)
def test_records_cannot_be_changed(record: object, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(record, name, None)


def test_a_landmark_on_a_curve_has_a_unit_vector_along_it():
    points = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    along = np.array([[0.6, 0.8], [0.0, 0.0], [0.0, 0.0]])
    landmarks = Landmarks(Pair(0, 1), points, points, 1.0, along)
    np.testing.assert_allclose(landmarks.without_along(np.full((3, 2), 1.0)), [[0.16, -0.12], [1, 1], [1, 1]])
    np.testing.assert_array_equal(landmarks.of_pair(Pair(3, 4)).along, along)
    assert not landmarks.determine_affine
    assert Landmarks(Pair(0, 1), points, points, 1.0, 0 * along).along is None
    with pytest.raises(LandmarkError, match="no unit vector"):
        Landmarks(Pair(0, 1), points, points, 1.0, 2 * along)
    with pytest.raises(LandmarkError, match="one for each landmark"):
        Landmarks(Pair(0, 1), points, points, 1.0, along[:2])
