"""Answers in the project's file: changed, removed, undone, and never behind anybody's back."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given as for_all, settings

from smalti.errors import NothingToUndoError, PairError, ProjectError
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.entries import Act
from smalti.records import Author, Pair, Verdict
from tests.project.acts import PlainModel, do, given, pairs, wishes
from tests.project.entries import no, outcome, yes

A, B = Pair(0, 1), Pair(0, 2)
PERSON, MATCHER = Author.PERSON, Author.MATCHER


@settings(max_examples=25, deadline=None)
@for_all(wishes(25))
def test_the_file_holds_what_the_plainest_model_says_before_and_after_a_restart(wanted):
    model = PlainModel()
    with TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        with closing(Store.create(path)) as store:
            for act, pair in wanted:
                if model.do(act, pair) is None:
                    with pytest.raises((PairError, NothingToUndoError)):
                        do(store, act, pair)
                else:
                    do(store, act, pair)
                assert [entry.place for entry in store.answers()] == [deed.place for deed in model.in_force()]
                assert store.revision == store.history().revision == model.places
        with closing(Store.open(path)) as again:
            for kept, deed in zip(again.answers(), model.in_force(), strict=True):
                assert (kept.place, kept.answer.pair) == (deed.place, deed.pair)
                assert (kept.answer.author is PERSON) == deed.by_person


def test_the_registration_methods_of_an_answer_come_back(store, other):
    found, failed = yes(0, 1), no(3, 4)
    landmarks = replace(found.answer.landmarks, method="all pixels")
    store.keep_answer(replace(found, answer=replace(found.answer, landmarks=landmarks, failed=("keypoints",))))
    store.keep_answer(replace(failed, answer=replace(failed.answer, failed=("keypoints", "all pixels"))))
    first, second = other.answers()
    assert (first.answer.method, first.answer.failed, first.details) == ("all pixels", ("keypoints",), "")
    assert (second.answer.method, second.answer.failed) == ("", ("keypoints", "all pixels"))


@pytest.mark.parametrize(
    "details", ["", "[" * 5000, '{"method": 3, "failed": []}', '{"method": "a\\nb", "failed": []}']
)
def test_details_of_another_program_name_no_method(store, other, details):
    store.keep_answer(replace(yes(0, 1), details=details))
    [kept] = other.answers()
    assert (kept.answer.method, kept.answer.failed, kept.details) == ("", (), details)


def test_everything_about_an_answer_comes_back(store, other):
    entry = yes(0, 1)
    entry = replace(
        entry, answer=replace(entry.answer, author=PERSON), details='{"off": [[1.5, "ü"]]}', time=1_700_000_000.25
    )
    assert store.keep_answer(no(3, 4)) == 1
    assert store.keep_answer(entry) == 2
    kept = other.answers()[1]
    assert (kept.details, kept.place, kept.time) == (entry.details, 2, entry.time)
    assert kept.answer.author is PERSON
    assert kept.answer.reason == entry.answer.reason
    assert (kept.role, kept.seconds) == (entry.role, entry.seconds)
    assert kept.answer.landmarks.points_i.tobytes() == entry.answer.landmarks.points_i.tobytes()


def test_an_answer_without_a_time_was_given_now(store):
    before = time.time()
    store.keep_answer(given(A, PERSON))
    assert before <= store.answers()[0].time <= time.time()


def test_a_second_answer_on_a_pair_takes_the_place_of_the_first(store):
    store.keep_answer(yes(3, 4))
    store.keep_answer(no(3, 5))
    store.keep_answer(no(3, 4))
    found = [(entry.answer.pair, entry.answer.verdict) for entry in store.answers()]
    assert found == [(Pair(3, 5), Verdict.NO), (Pair(3, 4), Verdict.NO)]


def test_the_log_tells_everything_that_was_done(store):
    store.keep_answer(given(A, MATCHER))
    store.remove_answer(A)
    undone = store.undo()
    redone = store.redo()
    assert (undone.place, redone.place, undone.act) == (2, 2, Act.REMOVE)
    log = store.log()
    assert [(entry.place, entry.act, entry.pair) for entry in log] == [
        (1, Act.GIVE, A),
        (2, Act.REMOVE, A),
        (3, Act.UNDO, A),
        (4, Act.REDO, A),
    ]
    assert [entry.answer is None for entry in log] == [False, True, True, True]


def test_undo_returns_the_answer_that_it_takes_back(store):
    store.keep_answer(given(A, PERSON, "too dark"))
    assert store.undo().answer.answer.reason == "too dark"
    assert store.answers() == []
    assert store.redo().answer.answer.reason == "too dark"
    assert pairs(store) == [A]


def test_what_cannot_be_undone_redone_or_removed_is_said_and_nothing_is_written(store):
    store.keep_answer(given(A, MATCHER))
    with pytest.raises(NothingToUndoError, match="there is nothing to undo"):
        store.undo()
    with pytest.raises(NothingToUndoError, match="there is nothing to redo"):
        store.redo()
    with pytest.raises(PairError, match=r"pair \(0, 2\): has no answer"):
        store.remove_answer(B)
    assert store.revision == 1


def test_what_another_process_does_is_seen_at_once(store, other):
    assert store.history().revision == 0
    for act, pair in (("person", A), ("person", B), ("undo", B), ("remove", A)):
        do(other, act, pair)
        assert pairs(store) == pairs(other)
        assert store.revision == other.revision


def test_the_store_only_ever_adds_to_the_log(store):
    said: list[str] = []
    store._database._connection.set_trace_callback(said.append)
    for act, pair in (("person", A), ("person", A), ("remove", A), ("undo", A), ("redo", A)):
        do(store, act, pair)
    store.keep_result([], [], outcome(finished_after=1))
    changes = [line for line in said if not line.startswith(("SELECT", "BEGIN", "COMMIT")) and " log " in line]
    assert len(changes) == 5
    assert all(line.startswith("INSERT INTO log ") for line in changes)


@pytest.mark.parametrize("statement", ["UPDATE log SET verdict = 'yes'", "DELETE FROM log"])
def test_the_file_itself_refuses_to_change_a_line_of_the_log(store, statement):
    store.keep_answer(given(A, PERSON))
    with (
        closing(sqlite3.connect(store.path)) as plain,
        pytest.raises(sqlite3.IntegrityError, match="only ever added to"),
    ):
        plain.execute(statement)
    assert pairs(store) == [A]


@pytest.mark.parametrize(
    "change",
    [
        "act = 'undo'",
        "act = 'forge'",
        "i = 5",
        "verdict = 'perhaps'",
        "role = NULL",
        "landmarks = x'00'",
        "author = 'nobody'",
    ],
)
def test_a_line_that_cannot_have_been_written_is_told_as_damage(store, change):
    store.keep_answer(yes(0, 1))
    with closing(sqlite3.connect(store.path)) as plain, plain:
        plain.execute("DROP TRIGGER log_keeps_its_lines")
        plain.execute(f"UPDATE log SET {change}")
    with pytest.raises(ProjectError, match="is damaged") as caught:
        store.answers()
    assert str(store.path) in str(caught.value)
