"""`answers.jsonl` follows the log: the same entries to the last bit, on disk, and caught up after a kill."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from smalti.errors import DamageError, NothingToUndoError, OutputError, PairError, ProjectError
from smalti.project import answer_backup
from smalti.project.answer_backup import read_backup
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.database import BACKUP_NAME
from smalti.project.entries import AnswerEntry, Role
from smalti.project.facts import SourceFacts
from smalti.records import Answer, Author, Landmarks, Pair
from tests.project.acts import do, wishes
from tests.project.entries import no, yes
from tests.project.folders import BINDING

SOURCE = SourceFacts("a.mp4", "f", 48, 36, BINDING)


@pytest.fixture
def path(store: Store) -> Path:
    return store.path.with_name(BACKUP_NAME)


def by_person(i: int, j: int) -> AnswerEntry:
    return AnswerEntry(Answer.no(Pair(i, j), "ü ≠ u\nnext", Author.PERSON), Role.LOOP, 2.5, '{"a": 1}')


def assert_same(path: Path, store: Store) -> None:
    assert list(read_backup(path).rows) == [row[:-1] for row in store._read_log(0)]
    assert list(read_backup(path).checksums) == store.log_checksums()


def test_every_entry_is_a_line_that_gives_the_same_entry_to_the_last_bit(store, path):
    points = np.random.default_rng(2).normal(0, 1e3, (2, 5, 2)) / 3
    points[0, 0], points[1, 0] = [5e-324, -0.0], [1e300, np.nextafter(1.0, 2.0)]
    store.keep_fact(SOURCE)
    store.keep_answer(AnswerEntry(Answer.yes(Landmarks(Pair(3, 8), *points, 1 / 3)), Role.LOOP, 0.1))
    store.keep_answer(by_person(0, 1))
    store.remove_answer(Pair(3, 8))
    store.undo()
    store.redo()
    assert_same(path, store)
    assert read_backup(path).source == SOURCE
    assert len(path.read_text().splitlines()) == 6


@settings(max_examples=25, deadline=None)
@given(wishes(12))
def test_whatever_is_done_the_copy_has_the_same_log(tmp_path_factory, acts):
    folder = tmp_path_factory.mktemp("log")
    with closing(Store.create(folder / FILE_NAME)) as store:
        for act, pair in acts:
            try:
                do(store, act, pair)
            except (PairError, NothingToUndoError):
                continue
        if store.revision:
            assert_same(folder / BACKUP_NAME, store)
        else:
            assert not (folder / BACKUP_NAME).exists()


def test_a_hole_that_a_power_loss_left_is_filled(store, path):
    for n in range(5):
        store.keep_answer(yes(n, n + 1, landmarks=50))
    content = path.read_bytes()
    hole = len(content) // 2
    path.write_bytes(content[:hole] + bytes(512) + content[hole + 512 :])
    with closing(Store.create(store.path)):
        assert path.read_bytes() == content
    assert sorted(file.name for file in path.parent.glob("*.jsonl")) == [BACKUP_NAME]


def test_a_line_can_be_read_by_people(store, path):
    store.keep_answer(by_person(3, 9))
    said = json.loads(path.read_text().splitlines()[1])
    assert (said["place"], said["act"], said["i"], said["j"], said["verdict"]) == (1, "give", 3, 9, "no")
    assert (said["author"], said["reason"]) == ("person", "ü ≠ u\nnext")


def test_what_a_person_did_is_synced_and_what_the_matcher_did_is_not(store, path, monkeypatch):
    store.keep_answer(no(0, 1))
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    store.keep_answer(no(0, 2))
    assert synced == []
    store.keep_answer(by_person(0, 3))
    store.undo()
    assert synced == [path.resolve()] * 2


@pytest.mark.parametrize("cut", [0, 1, 40, 10_000])
def test_a_copy_that_was_cut_short_by_a_kill_is_caught_up_when_the_project_is_opened_to_write(store, path, cut):
    for n in range(5):
        store.keep_answer(yes(n, n + 1))
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    with closing(Store.open(store.path)):
        assert path.read_bytes() == whole


def test_a_missing_copy_is_written_when_the_project_is_opened_to_write(store, path):
    store.keep_answer(yes(0, 1))
    store.close()
    whole = path.read_bytes()
    path.unlink()
    Store.open(store.path, read_only=True).close()
    assert not path.exists()
    Store.open(store.path).close()
    assert path.read_bytes() == whole


def test_a_copy_of_another_log_is_moved_aside_and_never_overwritten(store, path):
    for n in range(3):
        store.keep_answer(yes(n, n + 1))
    store.close()
    longer = path.read_bytes()
    for suffix in ("", "-wal", "-shm"):
        store.path.with_name(store.path.name + suffix).unlink(missing_ok=True)
    with closing(Store.create(store.path)) as restored:
        assert path.with_name("answers-1.jsonl").read_bytes() == longer
        restored.keep_answer(no(4, 5))
        assert_same(path, restored)


def test_two_handles_on_one_project_write_one_copy(store, other, path):
    for n in range(6):
        (store, other)[n % 2].keep_answer(no(n, n + 1))
    assert_same(path, store)


def test_an_answer_whose_copy_fails_is_kept_and_the_next_is_refused_until_it_is_written(store, path, monkeypatch):
    def fail(row, checksum):
        raise OSError(28, os.strerror(28))

    store.keep_answer(no(0, 1))
    monkeypatch.setattr(answer_backup, "row_line", fail)
    store.keep_answer(no(0, 2))
    with pytest.raises(OutputError, match=r"answers\.jsonl: cannot be written \(No space left on device\); free"):
        store.keep_answer(no(0, 3))
    assert len(store.answers()) == 2
    monkeypatch.undo()
    store.keep_answer(no(0, 3))
    assert_same(path, store)
    assert len(store.answers()) == 3


@pytest.mark.parametrize("line", [1, 2, 3])
def test_whatever_byte_of_the_copy_is_changed_it_is_noticed_with_its_line(store, path, line):
    store.keep_fact(SOURCE)
    store.keep_answer(by_person(3, 9))
    store.keep_answer(yes(0, 1, landmarks=2))
    lines = path.read_bytes().splitlines(keepends=True)
    start = sum(map(len, lines[: line - 1]))
    whole = path.read_bytes()
    for at in range(start, start + len(lines[line - 1]) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ProjectError) as caught:
            read_backup(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


def test_a_damaged_line_names_the_answer_that_is_affected(store, path):
    store.keep_answer(by_person(3, 9))
    store.keep_answer(by_person(3, 8))
    path.write_text(path.read_text().replace('"j": 8, "role"', '"j": 7, "role"'))
    with pytest.raises(ProjectError, match=r"line 3 is damaged \(entry 2, on pair \(3, 7\), was changed\)"):
        read_backup(path)


def test_a_line_that_is_missing_is_noticed(store, path):
    for n in range(3):
        store.keep_answer(no(n, n + 1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(ProjectError, match=r"line 3 is damaged \(entry 2 should follow\)"):
        read_backup(path)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"[]\n", b"hello\n", b'{"smalti": "answers"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"]
)
def test_a_file_of_something_else_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "other.jsonl").write_bytes(content)
    with pytest.raises(ProjectError) as caught:
        read_backup(tmp_path / "other.jsonl")
    assert str(tmp_path / "other.jsonl") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def shortened(store, path):
    """Return a project whose database has lost its last two answers, as after damage in SQLite's own journal."""
    store.keep_fact(SOURCE)
    store.keep_answer(by_person(0, 1))
    store.close()
    before = store.path.read_bytes()
    with closing(Store.open(store.path)) as again:
        again.keep_answer(by_person(0, 2))
        again.keep_answer(by_person(1, 2))
        full = again.log_checksums()
    store.path.write_bytes(before)
    return store.path, full


def test_answers_that_the_database_has_lost_are_restored(shortened):
    database, full = shortened
    with closing(Store.open(database)) as store:
        assert store.log_checksums() == full
        assert "had lost its last 2 answers" in " ".join(store.discarded)


def test_whoever_only_reads_is_told_of_answers_that_the_database_has_lost(shortened):
    database, _ = shortened
    with pytest.raises(DamageError, match=r"has lost its last 2 answers, which answers\.jsonl has; run"):
        Store.open(database, read_only=True)


def test_a_copy_of_another_log_is_no_reason_to_doubt_the_database(shortened, tmp_path):
    database, _ = shortened
    folder = tmp_path / "other"
    folder.mkdir()
    with closing(Store.create(folder / FILE_NAME)) as other:
        other.keep_fact(SOURCE)
        for j in range(1, 5):
            other.keep_answer(by_person(0, j + 3))
    database.with_name(BACKUP_NAME).write_bytes((folder / BACKUP_NAME).read_bytes())
    with closing(Store.open(database, read_only=True)) as store:
        assert store.revision == 1


def test_a_pipe_in_the_place_of_the_copy_does_not_block(store, path):
    store.keep_answer(by_person(0, 1))
    store.close()
    path.unlink()
    os.mkfifo(path)
    with closing(Store.open(store.path, read_only=True)) as again:
        assert again.revision == 1
