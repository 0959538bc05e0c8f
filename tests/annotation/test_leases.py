"""Two people at two pages are asked different questions."""

from __future__ import annotations

import pytest

from smalti.annotation.leases import LEASE_SECONDS, Leases
from smalti.annotation.messages import GiveAnswer
from tests.annotation.people import answer, marks, opened


@pytest.fixture
def session(folder):
    with opened(folder) as session:
        yield session


def pair_of(question):
    return question.i, question.j


def test_two_pages_have_different_questions_and_each_keeps_its_own(session):
    one, other = pair_of(session.question("one")), pair_of(session.question("other"))
    assert one != other
    assert max(abs(one[0] - other[0]), abs(one[1] - other[1])) > 1
    assert pair_of(session.question("one")) == one
    assert pair_of(session.question("other")) == other
    assert session.question("other").suggested


def test_a_page_alone_is_asked_the_best_question(session):
    best = pair_of(session.question())
    assert pair_of(session.question("one")) == best


def test_an_answer_brings_a_question_that_nobody_else_has(session):
    first, theirs = session.question("one"), pair_of(session.question("other"))
    landmarks = marks(first.i, first.j)
    verdict = "yes" if landmarks else "no"
    given = GiveAnswer(i=first.i, j=first.j, verdict=verdict, landmarks=landmarks, seen_revision=session.revision)
    outcome = session.give(given, "one")
    assert pair_of(outcome.question) not in ((first.i, first.j), theirs)


def test_an_answered_question_is_free_of_its_lease(session):
    question = session.question("one")
    answer(session, question.i, question.j)
    assert pair_of(session.question("other")) != pair_of(question)


def test_a_page_that_is_gone_gives_its_question_back(session):
    now = [0.0]
    session._leases = Leases(lambda: now[0])
    one = pair_of(session.question("one"))
    assert pair_of(session.question("other")) != one
    now[0] += LEASE_SECONDS + 1.0
    assert pair_of(session.question("third")) == one
