"""A session by the paper's method: everything that a page asks for, as the paper has it."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.annotation.messages import CheckLandmarks, MapKind
from smalti.annotation.session_state import expect
from smalti.progress import Silence
from smalti.records import Pair
from tests.annotation.people import answer_next, error_px, give, marks, opened, undo


@pytest.fixture
def session(folder):
    with opened(folder, method="paper") as session:
        yield session


def test_careful_answers_straighten_the_papers_mosaic(session):
    before = error_px(session)
    answer_next(session, 8)
    assert error_px(session) < 0.7 * before
    assert session.state().counts.yes + session.state().counts.no == 8


def test_everything_that_the_page_shows_is_there_and_undo_is_exact(session):
    before = session.mosaic().maps, session.question()
    answer_next(session)
    for kind in MapKind:
        assert session.pair_map(kind, 0, 0, 0, 28).rows == 28
    assert all(row.residual_px is not None for row in session.answers())
    assert session.forecast(0, 20).now_px > 0
    undo(session)
    assert session.mosaic().maps == before[0]
    assert session.question().model_dump(exclude={"revision"}) == before[1].model_dump(exclude={"revision"})


def test_the_paper_needs_three_landmarks(session):
    question = session.question()
    few = marks(question.i, question.j, 2) or marks(0, 4, 2)
    assert "too few" in session.check(CheckLandmarks(i=question.i, j=question.j, landmarks=few)).problem


def test_a_mosaic_by_the_papers_method_can_be_concluded(session):
    answer_next(session, 2)
    session.finish(Silence())
    assert session.state().finished


def test_where_a_point_is_expected_is_as_sure_as_the_paper_says_of_centres(session):
    loop = session._answer_history.loop
    expected = expect(loop, Pair(3, 15))
    _, cov = loop.haralick.centre(15, 3)
    linear = np.linalg.inv(loop.linear_mosaic[3][:, :2]) @ loop.linear_mosaic[15][:, :2]
    shift = expected.covariance[np.ix_([2, 5], [2, 5])] * loop.outline.unit**2
    np.testing.assert_allclose(linear @ shift @ linear.T, cov, rtol=1e-6)


def test_an_answer_can_be_checked_and_given(session):
    landmarks = marks(0, 12)
    assert session.check(CheckLandmarks(i=0, j=12, landmarks=landmarks)).problem is None
    assert give(session, 0, 12, "yes", landmarks).state.counts.yes == 1
