"""The project's file: what was kept comes back to the last bit, one transaction at a time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from smalti.building.matcher_choice import Trials
from smalti.frames.source_settings import SourceSettings
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.database import BACKUP_NAME
from smalti.project.entries import AnswerEntry, FrameEntry, LinkState, Role
from smalti.project.facts import Binding, Fact, FieldOfView, Outcome, PredictedErrors, SourceFacts
from smalti.records import Answer, Landmarks, Pair, Verdict
from tests.project.entries import link, no, outcome, placement, unsure, yes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.create(tmp_path / FILE_NAME)) as store:
        yield store


@contextmanager
def reopened(store: Store) -> Iterator[Store]:
    store.close()
    with closing(Store.open(store.path)) as again:
        yield again


def rows_on_disk(store: Store, table: str) -> int:
    """What somebody else sees: nothing of a transaction that is not finished."""
    with closing(sqlite3.connect(store.path)) as other:
        return other.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]


def test_answers_come_back_in_the_order_in_which_they_were_given(store):
    given = [yes(4, 5), no(0, 9), unsure(1, 2), yes(0, 1, Role.BRIDGE), no(0, 2, Role.CHECK)]
    for entry in given:
        store.keep_answer(entry)
    with reopened(store) as again:
        kept = again.answers()
    for before, after in zip(given, kept, strict=True):
        assert after.answer.pair == before.answer.pair
        assert after.answer.verdict is before.answer.verdict
        assert after.answer.reason == before.answer.reason
        assert after.role is before.role
        assert after.seconds == before.seconds
        assert (after.answer.landmarks is None) == (before.answer.verdict is not Verdict.YES)


@pytest.mark.parametrize("sigma", [np.random.default_rng(1).uniform(0.1, 9, 30), np.full(30, 1 / 3)])
def test_landmarks_and_their_sigma_come_back_to_the_last_bit(store, sigma):
    points_i, points_j = np.random.default_rng(2).normal(0, 1e3, (2, 30, 2)) / 3
    points_i[0], points_j[0] = [5e-324, -0.0], [1e300, np.nextafter(1.0, 2.0)]
    record = Landmarks(Pair(3, 8), points_i, points_j, sigma)
    store.keep_answer(AnswerEntry(Answer.yes(record), Role.LOOP, 0.1))
    with reopened(store) as again:
        [kept] = again.answers()
    assert kept.answer.landmarks.points_i.tobytes() == points_i.tobytes()
    assert kept.answer.landmarks.points_j.tobytes() == points_j.tobytes()
    assert np.asarray(kept.answer.landmarks.sigma).tobytes() == sigma.tobytes()


def test_one_sigma_for_all_landmarks_comes_back_for_each(store):
    record = Landmarks(Pair(0, 1), np.zeros((4, 2)), np.ones((4, 2)), 0.7)
    store.keep_answer(AnswerEntry(Answer.yes(record), Role.LOOP, 0.1))
    [kept] = store.answers()
    np.testing.assert_array_equal(kept.answer.landmarks.weights, record.weights)


def test_an_answer_is_on_disk_when_keeping_it_returns(store):
    for count, entry in enumerate([yes(0, 1), no(0, 2), yes(1, 2)], start=1):
        store.keep_answer(entry)
        assert rows_on_disk(store, "log") == count


def test_writing_does_not_keep_others_from_reading(store):
    store.keep_answer(no(0, 1))
    with closing(Store.open(store.path)) as reader:
        assert len(reader.answers()) == 1
        store.keep_answer(no(0, 2))
        assert len(reader.answers()) == 2


def test_the_file_keeps_a_write_ahead_log_and_waits_for_the_disk(store):
    with closing(sqlite3.connect(store.path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    full = 2
    assert store._database.read("PRAGMA synchronous") == [(full,)]


def test_a_closed_project_is_one_file_and_the_copy_of_its_answers(store):
    store.keep_answer(yes(0, 1))
    store.close()
    assert {file.name for file in store.path.parent.iterdir()} == {FILE_NAME, BACKUP_NAME}


def test_facts_come_back_and_the_last_one_of_a_kind_counts(store):
    source = SourceFacts(["a.png", "ü.png"], "f", 48, 36, Binding(SourceSettings(2, end="1:02"), "none", 3, "mine"))
    numbers = outcome(
        predicted_error_px=1 / 3,
        chain_predicted_px=np.inf,
        breaks=(Pair(1, 2), Pair(5, 6)),
        lens=(0.02, -1e-300),
        camera={"turn": 0.1, "tilt": None},
        ahead_px={"5": 0.1},
        worth_going_on=True,
    )
    for fact in (source, outcome(), numbers, FieldOfView(None)):
        store.keep_fact(fact)
    with reopened(store) as again:
        for fact in (source, numbers, FieldOfView(None)):
            assert again.fact(type(fact)) == again.known_fact(type(fact)) == fact
        assert again.fact(PredictedErrors) is None


def test_every_kind_of_fact_has_a_row_of_its_own():
    names = {kind.__qualname__: kind.NAME for kind in Fact.__subclasses__()}
    assert Trials.__qualname__ in names
    assert len(set(names.values())) == len(names)


def test_a_fact_that_cannot_be_written_leaves_the_old_one(store):
    store.keep_fact(PredictedErrors({"a": 1.0}))
    with pytest.raises(TypeError):
        store.keep_fact(PredictedErrors({"a": object()}))
    assert store.fact(PredictedErrors) == PredictedErrors({"a": 1.0})
    assert rows_on_disk(store, "fact") == 2  # and the version


def test_frames_come_back_by_number_in_the_place_of_those_before(store):
    store.keep_frames([FrameEntry(n, f"old {n}") for n in range(5)])
    store.keep_frames([FrameEntry(1, "0:01.00", "too blurred"), FrameEntry(0, "0:00.00")])
    with reopened(store) as again:
        assert again.frames() == [FrameEntry(0, "0:00.00"), FrameEntry(1, "0:01.00", "too blurred")]


def test_a_result_comes_back_to_the_last_bit(store):
    given = [placement(2), placement(0), placement(1, part=1)]
    links = [link(1, 2), link(0, 2, LinkState.REJECTED, np.inf)]
    store.keep_result(given, links, outcome(references=(2,)))
    with reopened(store) as again:
        kept = again.placements()
        assert again.links() == sorted(links, key=lambda entry: entry.pair)
        assert again.fact(Outcome) == outcome(references=(2,))
    assert [one.number for one in kept] == [0, 1, 2]
    for before, after in zip(sorted(given, key=lambda one: one.number), kept, strict=True):
        assert (after.part, after.sigma_px) == (before.part, before.sigma_px)
        for name in ("chain", "final"):
            assert getattr(after, name).shape == (3, 3)
            assert getattr(after, name).tobytes() == getattr(before, name).tobytes()


def test_a_new_result_takes_the_place_of_the_old(store):
    store.keep_result([placement(n) for n in range(4)], [link(0, 1), link(1, 2)], outcome(predicted_error_px=1.0))
    store.keep_result([placement(7)], [], outcome(predicted_error_px=2.0))
    assert [one.number for one in store.placements()] == [7]
    assert store.links() == []
    assert store.fact(Outcome) == outcome(predicted_error_px=2.0)


def test_a_result_that_fails_half_way_leaves_the_old_one(store):
    store.keep_result([placement(0), placement(1)], [link(0, 1)], outcome(predicted_error_px=1.0))

    def links():
        yield link(0, 2)
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        store.keep_result([placement(5)], links(), outcome(predicted_error_px=2.0))
    assert [one.number for one in store.placements()] == [0, 1]
    assert [entry.pair for entry in store.links()] == [Pair(0, 1)]
    assert store.fact(Outcome) == outcome(predicted_error_px=1.0)
    assert rows_on_disk(store, "placement") == 2


def test_seconds_of_a_stage_add_up_over_sessions(store):
    store.add_seconds("reading", 1.5)
    store.add_seconds("loop", 0.25)
    with reopened(store) as again:
        again.add_seconds("reading", 2.0)
        assert again.stages() == {"reading": 3.5, "loop": 0.25}


def test_creating_a_file_that_is_there_opens_it(store):
    store.keep_answer(yes(0, 1))
    store.close()
    with closing(Store.create(store.path)) as again:
        assert len(again.answers()) == 1


def test_a_new_file_is_still_there_after_a_power_failure(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    Store.create(tmp_path / FILE_NAME).close()
    assert tmp_path.resolve() in synced
