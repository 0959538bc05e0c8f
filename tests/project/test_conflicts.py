"""Several people, threads and processes on one project's file: none goes behind another's back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext

import pytest

from smalti.errors import ChangedMeanwhileError
from smalti.project.answer_store import Store
from smalti.project.facts import QuestionsAskedBy
from smalti.records import Author, Pair
from tests.project.acts import do, given, pairs

A, B = Pair(0, 1), Pair(0, 2)
PERSON, MATCHER = Author.PERSON, Author.MATCHER


def test_an_answer_on_a_pair_that_changed_meanwhile_is_refused_and_not_written(store, other):
    seen = store.keep_answer(given(A, PERSON))
    other.keep_answer(given(A, PERSON, "theirs"), seen_revision=seen)
    with pytest.raises(ChangedMeanwhileError, match=r"pair \(0, 1\).*look at it again") as caught:
        store.keep_answer(given(A, PERSON, "mine"), seen_revision=seen)
    assert caught.value.pair == A
    assert store.revision == 2
    assert [entry.answer.reason for entry in store.answers()] == ["theirs"]
    store.keep_answer(given(A, PERSON, "mine"), seen_revision=2)
    assert [entry.answer.reason for entry in other.answers()] == ["mine"]


def test_the_first_answer_on_a_pair_that_another_gave_meanwhile_is_refused(store, other):
    other.keep_answer(given(A, MATCHER))
    with pytest.raises(ChangedMeanwhileError):
        store.keep_answer(given(A, PERSON), seen_revision=0)


def test_an_answer_on_another_pair_is_no_conflict(store, other):
    other.keep_answer(given(A, PERSON))
    other.undo()
    other.keep_answer(given(Pair(1, 2), PERSON))
    store.keep_answer(given(B, PERSON), seen_revision=0)
    assert pairs(store) == [Pair(1, 2), B]


@pytest.mark.parametrize("acts", [["undo"], ["undo", "redo"], ["remove"]])
def test_an_undo_redo_or_removal_that_touched_the_pair_is_a_conflict(store, other, acts):
    seen = store.keep_answer(given(A, PERSON))
    for act in acts:
        do(other, act, A)
    revision = store.revision
    for attempt in (
        lambda: store.keep_answer(given(A, PERSON), seen_revision=seen),
        lambda: store.remove_answer(A, seen_revision=seen),
    ):
        with pytest.raises(ChangedMeanwhileError):
            attempt()
    assert store.revision == revision


def test_undo_after_another_persons_act_is_refused_and_names_its_pair(store, other):
    seen = store.keep_answer(given(A, PERSON))
    other.keep_answer(given(B, PERSON))
    with pytest.raises(ChangedMeanwhileError) as caught:
        store.undo(seen_revision=seen)
    assert caught.value.pair == B
    assert pairs(store) == [A, B]
    assert store.undo(seen_revision=2).pair == B


@pytest.mark.parametrize("act", ["undo", "redo", "remove"])
def test_every_act_of_another_person_keeps_redo_from_happening_unseen(store, other, act):
    store.keep_answer(given(A, MATCHER))
    for pair in (B, Pair(1, 2), Pair(1, 3)):
        store.keep_answer(given(pair, PERSON))
    store.undo()
    store.undo()
    seen = store.revision
    do(other, act, A)
    with pytest.raises(ChangedMeanwhileError):
        store.redo(seen_revision=seen)
    assert store.revision == seen + 1


def test_what_the_matcher_gave_meanwhile_keeps_nobody_from_undo_and_redo(store, other):
    seen = store.keep_answer(given(A, PERSON))
    other.keep_answer(given(B, MATCHER))
    assert store.undo(seen_revision=seen).pair == A
    other.keep_answer(given(Pair(1, 2), MATCHER))
    assert store.redo(seen_revision=3).pair == A


def test_threads_that_write_and_read_lose_nothing_and_see_no_half(store):
    trouble: list[BaseException] = []
    ended = threading.Event()

    def look() -> None:
        known = 0
        while not ended.is_set():
            history = store.history()
            if not (known <= history.revision == len(history.entries)):
                trouble.append(AssertionError(f"{known}, {history.revision}, {len(history.entries)}"))
            known = history.revision
            store.fact(QuestionsAskedBy)

    def write(thread: int) -> list[int]:
        made = []
        for n in range(15):
            made.append(store.keep_answer(given(Pair(thread, 10 + n), PERSON)))
            store.keep_fact(QuestionsAskedBy(str(n)))
        return made

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(write, range(4)))
    ended.set()
    for reader in readers:
        reader.join()
    assert trouble == []
    assert sorted(place for places in made for place in places) == list(range(1, 61))
    assert len(store.answers()) == 60


def test_of_many_who_saw_the_same_only_one_answers(store):
    def answer(thread: int) -> bool:
        with closing(Store.open(store.path)) if thread % 2 else nullcontext(store) as mine:
            start.wait()
            try:
                mine.keep_answer(given(A, PERSON, f"{thread}"), seen_revision=0)
            except ChangedMeanwhileError:
                return False
            return True

    start = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(answer, range(6))) == 1
    assert store.revision == 1
