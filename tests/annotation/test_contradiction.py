"""Answers that do not agree with what is known are questioned, honest ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, norm

from smalti.annotation.messages import CheckLandmarks
from smalti.annotation.session_state import FIRST_SCALE, Surprise
from smalti.engine.links import projected_and_rows
from tests.annotation.people import answer, answer_next, fresh, give, marks, opened
from tests.building.filmed import copied

WRONG = (25.0, -18.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """After six careful answers."""
    folder = fresh(tmp_path_factory.mktemp("annotation"), tmp_path_factory.mktemp("known"))
    with opened(folder) as session:
        answer_next(session, 6)
    return folder


@pytest.fixture
def session(folder, tmp_path):
    with opened(copied(folder, tmp_path / "walk.smalti")) as session:
        yield session


def in_units(i_from_j, outline):
    to_unit = np.vstack([outline.unit_from_pixels, [0.0, 0.0, 1.0]])
    return to_unit @ i_from_j @ np.linalg.inv(to_unit)


def loops(session):
    """Pairs far apart in time that overlap well and have no answer."""
    known = {(row.i, row.j) for row in session.answers()}
    return [(i, j) for i in range(28) for j in range(i + 3, 28) if (i, j) not in known and len(marks(i, j))]


def test_a_wrong_answer_is_caught_and_said_in_numbers(session):
    i, j = loops(session)[3]
    found = give(session, i, j, "yes", marks(i, j, by=WRONG)).contradiction
    assert (found.i, found.j) == (i, j)
    assert found.sigmas > 6
    assert found.off_px == pytest.approx(np.hypot(*WRONG), rel=0.2)
    assert found.off_px > 2 * found.expected_px
    assert f"moves frame {j} by" in found.explanation
    assert found.rival_i is not None


def test_what_was_expected_is_how_surely_the_mosaic_had_the_landmarks_before(session):
    i, j = loops(session)[3]
    loop = session._answer_history.loop
    found = give(session, i, j, "yes", marks(i, j, by=WRONG)).contradiction
    i_from_j, cov = loop.covariance.expect(i, j)
    unit, centre = loop.outline.unit, loop.outline.centre
    points = np.array([(one.x_j, one.y_j) for one in marks(i, j, by=WRONG)])
    _, rows = projected_and_rows(in_units(i_from_j, loop.outline), (points - centre) / unit)
    variances = [np.trace(row @ cov @ row.T) for row in rows]
    assert found.expected_px == pytest.approx(unit * np.sqrt(np.mean(variances)), rel=1e-6)


def test_the_mosaic_says_how_surely_every_frame_lies_in_the_reference(session):
    loop, mosaic = session._answer_history.loop, session.mosaic()
    reference = int(loop.estimate.system.references[0])
    assert mosaic.reference == session._answer_history.numbers.in_source(reference)
    assert mosaic.sigma_px[reference] == 0.0
    for n in (0, 9, 20):
        cov = loop.covariance.centres.cov[n, reference]
        assert mosaic.sigma_px[n] == pytest.approx(np.sqrt(cov[0] + cov[2]), rel=1e-6)


def test_it_is_saved_all_the_same_and_the_person_decides(session):
    i, j = loops(session)[3]
    give(session, i, j, "yes", marks(i, j, by=WRONG))
    assert (session.answers()[-1].i, session.answers()[-1].j) == (i, j)


def test_the_corrected_answer_is_not_questioned(session):
    i, j = loops(session)[3]
    give(session, i, j, "yes", marks(i, j, by=WRONG))
    assert answer(session, i, j).contradiction is None


def test_careful_answers_are_hardly_ever_questioned(session):
    pairs = loops(session)
    chosen = [pairs[n] for n in np.random.default_rng(1).choice(len(pairs), 20, replace=False)]
    questioned = [
        session.check(CheckLandmarks(i=i, j=j, landmarks=marks(i, j, seed=2))).contradiction for i, j in chosen
    ]
    assert sum(found is not None for found in questioned) <= 1


def test_wrong_answers_are_hardly_ever_missed(session):
    pairs = loops(session)
    chosen = [pairs[n] for n in np.random.default_rng(2).choice(len(pairs), 20, replace=False)]
    found = [session.check(CheckLandmarks(i=i, j=j, landmarks=marks(i, j, by=WRONG))).contradiction for i, j in chosen]
    assert sum(one is not None for one in found) >= 19


def test_a_check_writes_nothing(session):
    revision = session.revision
    i, j = loops(session)[0]
    session.check(CheckLandmarks(i=i, j=j, landmarks=marks(i, j)))
    assert session.revision == revision


def test_a_no_where_the_mosaic_is_sure_of_an_overlap_is_questioned(session):
    i, j = max(loops(session), key=lambda pair: session.look(*pair).overlap)
    found = give(session, i, j, "no").contradiction
    assert f"frames {i} and {j} show a common place" in found.explanation


def test_a_no_where_frames_are_apart_is_not(session):
    apart = min(((i, 27) for i in range(20)), key=lambda pair: session.look(*pair).overlap)
    assert give(session, *apart, "no").contradiction is None


@pytest.mark.parametrize("count", [1, 2])
def test_one_wrong_landmark_or_two_are_caught_too_and_careful_ones_are_not(session, count):
    for i, j in loops(session)[2:8:3]:
        wrong, right = marks(i, j, count, by=WRONG), marks(i, j, count, seed=3)
        assert session.check(CheckLandmarks(i=i, j=j, landmarks=wrong)).contradiction is not None
        assert session.check(CheckLandmarks(i=i, j=j, landmarks=right)).contradiction is None


@pytest.mark.parametrize(("value", "degrees"), [(10.0, 2), (40.0, 8), (200.0, 2), (1000.0, 8)])
def test_sigmas_are_those_of_an_equally_rare_normal_number(value, degrees):
    sigmas = Surprise(FIRST_SCALE * value, degrees).sigmas([])
    assert norm.logsf(sigmas) + np.log(2) == pytest.approx(chi2.logsf(value, degrees), rel=1e-6)


def test_what_is_too_rare_for_a_number_is_still_ordered():
    assert Surprise(1e5, 8).sigmas([]) < Surprise(2e5, 8).sigmas([]) < np.inf


def test_fewer_landmarks_need_a_smaller_chi2_to_surprise():
    earlier = [Surprise(float(chi2.median(degrees)), degrees) for degrees in (2, 4, 8, 8)]
    assert Surprise(35.0, 2).is_more_than(earlier)
    assert not Surprise(35.0, 8).is_more_than(earlier)


def test_what_is_surprising_is_compared_with_the_answers_before_whatever_they_determine():
    wild = [Surprise(10.0 * float(chi2.median(degrees)), degrees) for degrees in (2, 4, 8, 8)]
    assert not Surprise(300.0, 8).is_more_than(wild)
    assert Surprise(1000.0, 8).is_more_than(wild)
