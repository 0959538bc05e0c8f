"""Known pairs between the questions: who is asked which, what they move, how they are kept; and left-out landmarks."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.annotation.known_pairs import SURELY_APART, KnownPairs, Measures
from smalti.annotation.landmark_messages import leave_last_out
from smalti.annotation.messages import CheckLandmarks, Landmark, Origin
from smalti.errors import UsageError
from smalti.project.entries import Role
from smalti.records import Author, Pair, Verdict
from tests.annotation.people import answer, give, marks, opened, redo, undo

SHARE = 0.5


def answer_as(session, person, times, **how):
    """Answer what a person is asked; return the questions."""
    asked = []
    for _ in range(times):
        question = session.question("page of " + person, person)
        asked.append(question)
        landmarks = marks(question.i, question.j, **how)
        verdict = "yes" if landmarks else "no"
        give(session, question.i, question.j, verdict, landmarks, person=person, is_known=question.is_known)
    return asked


def pair_of(question):
    return Pair(question.i, question.j)


@pytest.fixture
def session(folder):
    """Ben has answered eight questions."""
    with opened(folder, known_share=SHARE) as session:
        count = 0
        while count < 8:
            question = session.question()
            answer(session, question.i, question.j, person="Ben")
            count += 1
        yield session


def test_about_the_share_of_a_persons_questions_is_about_known_pairs(session):
    asked = answer_as(session, "Ann", 12)
    known = [question for question in asked if question.is_known]
    assert 3 <= len(known) <= 6
    assert len({pair_of(question) for question in known}) == len(known)


def test_a_known_pair_moves_nothing_and_leaves_the_known_answer_alone(session):
    question = until_known(session, overlaps=True)
    before, answers = session.mosaic(), session.answers()
    give(session, question.i, question.j, "no", person="Ann", is_known=True)
    after = session.mosaic()
    assert after.model_dump(exclude={"revision"}) == before.model_dump(exclude={"revision"})
    assert session.answers() == answers
    [entry] = [one for one in session.project.store.history().controls if one.answer.pair == pair_of(question)]
    assert (entry.role, entry.known, entry.answer.verdict) == (Role.CONTROL, Verdict.YES, Verdict.NO)


def test_the_person_does_not_see_what_is_known(session):
    question = until_known(session, overlaps=True)
    assert (question.answer, question.suggested) == (None, True)
    seen = session.look(question.i, question.j)
    assert seen.answer.verdict is Verdict.YES
    # As before it was known, not by the mosaic that has the answer.
    assert np.trace(np.reshape(question.covariance, (8, 8))) > np.trace(np.reshape(seen.covariance, (8, 8)))
    assert session.propose(question.i, question.j) is None
    wrong = marks(question.i, question.j, by=(60.0, 0.0))
    checked = session.check(CheckLandmarks(i=question.i, j=question.j, landmarks=wrong, is_known=True))
    assert (checked.problem, checked.contradiction) == (None, None)
    outcome = give(session, question.i, question.j, "yes", wrong, person="Ann", is_known=True)
    assert outcome.contradiction is None


def test_a_known_no_does_not_overlap_and_was_plausible_before(session):
    question = until_known(session, overlaps=False)
    assert marks(question.i, question.j) == []
    assert question.overlap > 0.01
    assert session.look(question.i, question.j).position <= SURELY_APART


def test_undo_and_redo_work_on_a_known_pair_and_it_is_asked_again(session):
    question = until_known(session)
    give(session, question.i, question.j, "no", person="Ann", is_known=True)
    undo(session)
    assert session.project.store.history().controls == ()
    assert session.question("page of Ann", "Ann").model_copy(update={"revision": 0}) == question.model_copy(
        update={"revision": 0}
    )
    redo(session)
    assert [entry.answer.pair for entry in session.project.store.history().controls] == [pair_of(question)]


def test_an_answer_to_a_known_pair_that_is_sent_twice_is_kept_once(session):
    question = until_known(session)
    for _ in range(2):
        give(session, question.i, question.j, "no", person="Ann", is_known=True, seen_revision=question.revision)
    assert len(session.project.store.history().controls) == 1


def test_a_restart_asks_the_same_known_pair_and_measures_the_same(folder):
    with opened(folder, known_share=SHARE) as session:
        for _ in range(6):
            question = session.question()
            answer(session, question.i, question.j, person="Ben")
        answer_as(session, "Ann", 4)
        asked, people = session.question("x", "Ann"), session.state().people
    with opened(folder, known_share=SHARE) as session:
        assert session.question("y", "Ann") == asked
        assert session.state().people == people


def test_the_noise_of_a_person_is_measured_by_what_others_answered(session):
    answer_as(session, "Ann", 12, noise=2.0, seed=3)
    [ann] = session.state().people
    assert ann.person == "Ann"
    assert ann.right == ann.known > 2
    assert abs(ann.sigma_px - 2.0) < 4 * ann.sigma_uncertainty_px


def test_nobody_is_asked_a_known_pair_unless_that_was_requested(folder):
    with opened(folder) as session:
        assert not any(question.is_known for question in answer_as(session, "Ann", 3))
        assert session.propose(0, 9) is not None


def test_numbers_of_known_pairs_come_once_in_every_stretch_at_another_place_for_everybody():
    pairs = KnownPairs(0.1, seed=0)
    places = {person: [n for n in range(200) if pairs._turn(n, person) is not None] for person in ("Ann", "Ben")}
    assert places["Ann"] != places["Ben"]
    for numbers in places.values():
        assert [n // 10 for n in numbers] == list(range(20))


@pytest.mark.parametrize("share", [-0.1, 0.51, float("nan")])
def test_a_share_that_makes_no_sense_is_refused(share):
    with pytest.raises(UsageError, match="known-share"):
        Measures(share)


def sheet(count, **last):
    landmarks = [Landmark(x_i=n, y_i=2 * n, x_j=n, y_j=n) for n in range(count)]
    return [*landmarks[:-1], landmarks[-1].model_copy(update=last)]


def test_the_last_of_four_landmarks_of_a_person_is_left_out():
    assert [one.check for one in leave_last_out(sheet(4))] == [False, False, False, True]
    assert [one.check for one in leave_last_out(sheet(4, origin=Origin.MATCHED))] == [False, False, True, False]


@pytest.mark.parametrize("marked", [sheet(3), sheet(4, active=False), sheet(5, active=False, check=True)])
def test_no_landmark_is_left_out_of_three_nor_beside_one_that_the_person_chose(marked):
    assert leave_last_out(marked) == marked


def test_a_left_out_landmark_is_kept_and_never_used(folder):
    with opened(folder, check_landmarks=True) as session:
        i, j = next((i, j) for i in range(28) for j in range(i + 2, 28) if marks(i, j))
        given = marks(i, j, 5)
        give(session, i, j, "yes", given, person="Ann")
        [entry] = [one for one in session.project.answers if one.answer.author is Author.PERSON]
        assert len(entry.answer.landmarks) == 4
        left_out = entry.left_out
        assert left_out.points_i.tolist() == [[given[4].x_i, given[4].y_i]]
        assert left_out.sigma == 1.5
        assert session.look(i, j).answer.landmarks[4].check
        assert session.answers()[-1].landmarks == 4


def until_known(session, overlaps=None):
    """Answer as Ann until a known pair is asked, one of a kind if that is named."""
    for _ in range(40):
        question = session.question("page of Ann", "Ann")
        if question.is_known:
            known = session.look(question.i, question.j).answer
            if overlaps is None or overlaps == (known is not None and known.verdict is Verdict.YES):
                return question
        answer_as(session, "Ann", 1)
    raise AssertionError("no such pair was asked")


def test_the_error_at_left_out_landmarks_is_delivered_beside_what_was_predicted(folder):
    with opened(folder, check_landmarks=True) as session:
        for _ in range(9):
            question = session.question()
            answer(session, question.i, question.j, person="Ann")
        session.finish()
        info, landmarks = session.project.info(), (session.project.folder / "landmarks.csv").read_text()
        told = (session.project.folder / "report.html").read_text(encoding="utf-8")
    errors = info.left_out_landmarks
    assert [(one.person, one.left_out) for one in info.people] == [("Ann", errors)]
    assert errors.landmarks >= 4
    # 1 px of noise a coordinate, and the mosaic. Few landmarks: a factor of two is far out for a true prediction.
    assert 0.5 < errors.rms_px / errors.predicted_rms_px < 2.0
    header, *rows = landmarks.splitlines()
    assert header.endswith("sigma_px,author,use,error_px,predicted_px")
    checked = [row.split(",") for row in rows if ",check," in row]
    assert np.sqrt(np.mean([float(row[-2]) ** 2 for row in checked])) == pytest.approx(errors.rms_px, abs=1e-3)
    assert f"The error at {errors.landmarks} left-out landmarks" in told
