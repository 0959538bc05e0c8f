"""A project where nothing can be written: it is read, all of it, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from smalti.errors import OutputError, ProjectError
from smalti.project import answer_store, database, project as project_module, project_lock
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.project import Project
from smalti.project.project_lock import make_folder
from tests.project.entries import no, yes
from tests.project.folders import begin, finish, write_images


@pytest.fixture
def locked(monkeypatch):
    """Nothing can be written, as far as the program is told."""
    for module in (database, answer_store, project_lock, project_module):
        monkeypatch.setattr(module, "is_writable", lambda path: False)


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    with begin(tmp_path / "out", write_images(tmp_path / "images")) as project:
        finish(project)
    return tmp_path / "out"


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_project_on_a_read_only_disk_is_read_without_a_trace(finished, locked):
    before = names(finished)
    with Project.open(finished) as project:
        assert len(project.answers) == 6
        assert project.info().frames.placed == 3
        assert names(finished) == before
    assert names(finished) == before


def test_answers_in_the_write_ahead_log_of_a_killed_program_are_read_too(tmp_path, locked, monkeypatch):
    with monkeypatch.context() as free:
        free.undo()
        with closing(Store.create(tmp_path / FILE_NAME)) as store:
            store.keep_answer(yes(0, 1))
            store.keep_answer(no(0, 2))
            # As a killed program leaves it: its last entries are in the second file only.
            shutil.copytree(tmp_path, tmp_path / "killed")
    killed = tmp_path / "killed" / FILE_NAME
    assert killed.with_name(FILE_NAME + "-wal").stat().st_size > 0
    before = {file: file.read_bytes() for file in killed.parent.iterdir()}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for module in (database, answer_store):
        monkeypatch.setattr(module, "is_writable", lambda path: False)
    with closing(Store.open(killed, read_only=True)) as store:
        assert [entry.answer.pair.j for entry in store.answers()] == [1, 2]
    assert {file: file.read_bytes() for file in killed.parent.iterdir()} == before
    assert list(temporary.iterdir()) == []


def test_who_wants_to_write_is_told_that_it_is_needed(finished, locked):
    with pytest.raises(OutputError, match="cannot be written; copy the project to a writable folder"):
        Store.open(finished / FILE_NAME)
    with pytest.raises(OutputError, match="build and annotate add to a project; copy it to a writable folder"):
        make_folder(finished)


def test_a_mosaic_of_a_read_only_project_has_its_working_files_elsewhere(finished, locked):
    shutil.rmtree(finished / "cache", ignore_errors=True)
    with Project.open(finished) as project:
        project.mosaic().image(100)
    assert not (finished / "cache").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_looked_into_is_one_line(finished):
    finished.chmod(0)
    try:
        with pytest.raises(ProjectError, match="check the permissions"):
            Project.open(finished)
    finally:
        finished.chmod(0o755)


def test_a_file_that_may_not_be_opened_is_not_called_damaged(finished, monkeypatch):
    def refuse(*given, **named):
        return connect(f"file:{finished.parent}/nowhere/none?mode=ro", uri=True)

    connect = database.sqlite3.connect
    monkeypatch.setattr(database.sqlite3, "connect", refuse)
    with pytest.raises(ProjectError, match=r"cannot be opened \(unable to open database file\); check the permissions"):
        Store.open(finished / FILE_NAME, read_only=True)
