"""What the log means: answers in force, undo and redo, as a function of its lines alone."""

from __future__ import annotations

import pytest
from hypothesis import given as for_all, settings

from smalti.errors import ProjectError
from smalti.project.entries import Act, AnswerEntry, History, LogEntry, Role
from smalti.records import Answer, Author, Pair
from tests.project.acts import PAIRS, PlainModel, wishes

A, B = Pair(0, 1), Pair(0, 2)


def history_of(*wanted: tuple[str, Pair]) -> History:
    model = PlainModel()
    return History.of([entry for wish in wanted if (entry := model.do(*wish)) is not None])


def places(history: History) -> list[int]:
    return [entry.place for entry in history.answers]


def place_of(found) -> int | None:
    return None if found is None else found.place


@settings(max_examples=400, deadline=None)
@for_all(wishes())
def test_it_is_what_the_plainest_model_says_after_every_line(wanted):
    model, entries = PlainModel(), []
    for wish in wanted:
        if (entry := model.do(*wish)) is not None:
            entries.append(entry)
        history = History.of(entries)
        assert places(history) == [deed.place for deed in model.in_force()]
        assert place_of(history.undoable) == place_of(model.undoable())
        assert place_of(history.redoable) == place_of(model.redoable())
        assert history.revision == len(entries)


@settings(max_examples=100, deadline=None)
@for_all(wishes(15))
def test_all_that_persons_did_can_be_undone_and_redone(wanted):
    model, entries = PlainModel(), []
    entries += [entry for wish in wanted if (entry := model.do(*wish)) is not None]
    before, steps = History.of(entries), 0
    while (entry := model.do("undo", PAIRS[0])) is not None:
        entries.append(entry)
        steps += 1
    assert all(entry.answer.author == "matcher" for entry in History.of(entries).answers)
    entries += [model.do("redo", PAIRS[0]) for _ in range(steps)]
    assert places(History.of(entries)) == places(before)


def answered(place: int, answer: Answer) -> LogEntry:
    return LogEntry(place, Act.GIVE, answer.pair, AnswerEntry(answer, Role.LOOP, 0.0, place=place))


def test_what_the_matcher_could_not_tell_stays_an_attempt_beside_a_persons_answer():
    entries = [
        answered(1, Answer.unsure(A, "too few matches")),
        answered(2, Answer.no(B, author=Author.PERSON)),
        answered(3, Answer.no(A, author=Author.PERSON)),
    ]
    history = History.of(entries)
    assert places(history) == [2, 3]
    assert [entry.place for entry in history.attempts] == [1, 2, 3]
    undone = History.of([*entries, LogEntry(4, Act.UNDO, A, None)])
    assert places(undone) == [entry.place for entry in undone.attempts] == [1, 2]
    removed = History.of([*entries, LogEntry(4, Act.REMOVE, A, None)])
    assert places(removed) == [entry.place for entry in removed.attempts] == [2]
    # What the matcher says later takes the place of its failure.
    asked_again = History.of([entries[0], answered(2, Answer.no(A))])
    assert places(asked_again) == [entry.place for entry in asked_again.attempts] == [2]


def test_nothing_follows_from_an_empty_log():
    history = History.of([])
    assert (history.answers, history.undoable, history.redoable, history.revision) == ((), None, None, 0)


def test_a_new_answer_takes_the_place_of_the_old_one_and_stands_last():
    history = history_of(("person", A), ("person", B), ("person", A))
    assert places(history) == [2, 3]


def test_undo_of_a_new_answer_brings_the_old_one_back_to_where_it_was():
    history = history_of(("person", A), ("person", B), ("person", A), ("undo", A))
    assert places(history) == [1, 2]


def test_a_removed_answer_is_not_in_force_and_may_be_given_again():
    assert places(history_of(("matcher", A), ("person", B), ("remove", A))) == [2]
    assert places(history_of(("matcher", A), ("person", B), ("remove", A), ("person", A))) == [2, 4]


def test_undo_of_a_removal_brings_the_answer_back():
    assert places(history_of(("matcher", A), ("person", B), ("remove", A), ("undo", A))) == [1, 2]


def test_what_the_matcher_gave_is_not_undone():
    history = history_of(("person", A), ("matcher", B))
    assert history.undoable.place == 1
    assert history_of(("matcher", B)).undoable is None


def test_what_the_matcher_gives_leaves_what_can_be_redone():
    history = history_of(("person", A), ("undo", A), ("matcher", B))
    assert history.redoable.place == 1


def test_what_a_person_does_forgets_what_could_be_redone():
    for act in ("person", "remove"):
        history = history_of(("matcher", B), ("person", A), ("undo", A), (act, B))
        assert history.redoable is None
        assert history.undoable.place == 4


def test_the_answer_of_a_pair_is_the_one_in_force():
    history = history_of(("matcher", A), ("person", A), ("person", B), ("undo", B))
    assert history.answer_of(A).place == 2
    assert history.answer_of(B) is None


def test_answers_are_those_of_a_revision_again_after_undo_and_redo():
    history = history_of(("person", A), ("person", B), ("undo", B), ("redo", B), ("person", A), ("undo", A))
    same = [revision for revision in range(9) if history.is_that_of(revision)]
    assert same == [2, 4, 6]


@pytest.mark.parametrize(
    "entries",
    [
        [LogEntry(1, Act.UNDO, A, None)],
        [LogEntry(1, Act.REDO, None, None)],
        [*history_of(("matcher", A)).entries, LogEntry(2, Act.UNDO, A, None)],
        [*history_of(("person", A)).entries, LogEntry(2, Act.UNDO, B, None)],
    ],
)
def test_a_log_that_cannot_have_been_written_is_refused(entries):
    with pytest.raises(ProjectError, match=rf"entry {len(entries)} of the log, \w+do: there is no such act before"):
        History.of(entries)
