"""One program at a time works in a project's folder, and whoever is refused is told who does."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from smalti.errors import OutputError, ProjectError
from smalti.project.answer_store import FILE_NAME
from smalti.project.project import Project
from smalti.project.project_lock import LOCK_NAME, ProjectLock
from tests.project.folders import BINDING, begin, write_images

ROOT = Path(__file__).parents[2]
PAGE = "smalti annotate, http://127.0.0.1:8000/"

HOLD = """
import sys
from pathlib import Path
from smalti.project.project_lock import ProjectLock

with ProjectLock(Path(sys.argv[1]), sys.argv[2]) as lock:
    print("held", flush=True)
    for what in sys.stdin:
        lock.describe(what.strip())
        print("described", flush=True)
print("released", flush=True)
"""

RACE = """
import sys, time
from pathlib import Path
from smalti.errors import ProjectError
from smalti.project.project_lock import ProjectLock

folder = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
until = time.monotonic() + 1.0
held = 0
while time.monotonic() < until:
    try:
        with ProjectLock(folder, "race"):
            (folder / "mine").open("x").close()
            (folder / "mine").unlink()
            held += 1
    except ProjectError:
        pass
print(held)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def held(folder: Path, what: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock."""
    with start(HOLD, folder, what) as process:
        assert process.stdout.readline() == "held\n", process.stderr.read()
        yield process
        if process.poll() is None:
            process.kill()


def refusal(folder: Path) -> str:
    with pytest.raises(ProjectError) as caught, ProjectLock(folder, "smalti build"):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path):
    with held(tmp_path, PAGE) as process:
        expected = f"{tmp_path}: is in use by process {process.pid} ({PAGE}); open that page or end it first"
        assert refusal(tmp_path) == expected


def test_a_refusal_speaks_of_a_page_only_where_there_is_one(tmp_path):
    with held(tmp_path, "smalti build") as process:
        assert refusal(tmp_path) == (
            f"{tmp_path}: is in use by process {process.pid} (smalti build); wait for it or end it first"
        )


def test_what_is_told_can_be_changed_while_it_is_held(tmp_path):
    with held(tmp_path, "smalti annotate, preparing a very long sequence") as process:
        process.stdin.write(f"{PAGE}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "described\n"
        assert f"({PAGE});" in refusal(tmp_path)


def test_a_process_that_ends_leaves_nothing(tmp_path):
    with held(tmp_path, PAGE) as process:
        out, _ = process.communicate()
        assert out == "released\n"
    assert list(tmp_path.iterdir()) == []
    with ProjectLock(tmp_path, "smalti build"):
        assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\nsmalti build\n"


def test_a_process_that_is_killed_locks_nobody_out(tmp_path):
    with held(tmp_path, PAGE) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / LOCK_NAME).exists()
    with ProjectLock(tmp_path, "smalti build"):
        pass


def test_a_holder_that_has_not_said_its_name_yet_keeps_others_out_too(tmp_path):
    with ProjectLock(tmp_path, PAGE):
        (tmp_path / LOCK_NAME).write_text("")
        assert refusal(tmp_path) == f"{tmp_path}: is in use by another process; end it first"


def test_two_never_hold_it_at_once_however_often_it_is_taken_and_released(tmp_path):
    processes = [start(RACE, tmp_path) for _ in range(3)]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
        counts = []
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            out, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
            counts.append(int(out))
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sum(counts) > 100


def test_a_process_forked_off_does_not_release_the_lock_of_its_parent(tmp_path):
    script = """
import os, sys
from pathlib import Path
from smalti.errors import ProjectError
from smalti.project.project_lock import ProjectLock

lock = ProjectLock(Path(sys.argv[1]), "parent").acquire()
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
try:
    ProjectLock(Path(sys.argv[1]), "other").acquire()
except ProjectError as error:
    print(error)
"""
    with start(script, tmp_path) as process:
        out, errors = process.communicate()
    assert "is in use by this process (parent)" in out, errors


def test_a_folder_that_cannot_hold_it_is_an_error_of_output(tmp_path):
    with pytest.raises(OutputError, match=r"nowhere/lock: cannot be locked \(No such file"):
        ProjectLock(tmp_path / "nowhere", "smalti build").acquire()


def test_a_project_that_is_begun_is_locked_until_it_is_closed(tmp_path):
    images = write_images(tmp_path / "images")
    project = begin(tmp_path / "out", images)
    with pytest.raises(ProjectError, match=r"in use by this process \(smalti build\); close that project first"):
        begin(tmp_path / "out", images)
    project.lock.describe(PAGE)
    assert PAGE in refusal(tmp_path / "out")
    project.close()
    assert [file.name for file in (tmp_path / "out").iterdir()] == [FILE_NAME]
    begin(tmp_path / "out", images).close()


def test_readers_neither_take_the_lock_nor_mind_it(tmp_path):
    with begin(tmp_path / "out", write_images(tmp_path / "images")) as project:
        with Project.open(tmp_path / "out") as reader:
            assert reader.lock is None
            assert reader.width == project.width
        assert "in use" in refusal(tmp_path / "out")


def test_a_project_that_is_refused_is_not_locked(tmp_path):
    images = write_images(tmp_path / "images")
    begin(tmp_path / "out", images).close()
    with pytest.raises(ProjectError, match="other options") as caught:
        begin(tmp_path / "out", images, replace(BINDING, seed=1))
    assert caught.tb is not None  # the error is still at hand, and with it all that it would keep open
    assert not (tmp_path / "out" / LOCK_NAME).exists()


def test_a_project_whose_file_is_damaged_is_not_locked(tmp_path):
    images = write_images(tmp_path / "images")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FILE_NAME).write_bytes(b"not a database " * 500)
    with pytest.raises(ProjectError, match="damaged") as caught:
        begin(tmp_path / "out", images)
    assert caught.tb is not None
    assert not (tmp_path / "out" / LOCK_NAME).exists()


def test_a_project_that_is_dropped_without_being_closed_is_not_locked_for_ever(tmp_path):
    images = write_images(tmp_path / "images")
    project = begin(tmp_path / "out", images)
    del project
    gc.collect()
    begin(tmp_path / "out", images).close()


def test_a_folder_with_nothing_but_the_lock_of_a_killed_process_can_be_begun(tmp_path):
    images = write_images(tmp_path / "images")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK_NAME).write_text("1\nsmalti build\n")
    begin(tmp_path / "out", images).close()


def test_where_there_are_no_such_locks_the_file_can_be_imported_and_used(tmp_path):
    script = """
import sys
from pathlib import Path
from pydantic import TypeAdapter  # it asks for the platform, too
sys.modules["fcntl"] = None
sys.platform = "win32"
from smalti.project.project_lock import ProjectLock
with ProjectLock(Path(sys.argv[1]), "smalti build") as lock:
    lock.describe("smalti annotate")
print("done")
"""
    with start(script, tmp_path) as process:
        out, errors = process.communicate()
    assert out == "done\n", errors


def test_a_disk_too_full_for_the_lock_is_named_and_keeps_nobody_out(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as context:
        context.setattr(os, "pwrite", refuse)
        with pytest.raises(OutputError, match=f"{LOCK_NAME}: cannot be written .No space left on device"):
            ProjectLock(tmp_path, "smalti build").acquire()
    assert not (tmp_path / LOCK_NAME).exists()
    ProjectLock(tmp_path, "smalti build").acquire().release()


def test_a_symbolic_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    target = tmp_path / "letter.txt"
    target.write_text("dear")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / LOCK_NAME).symlink_to(target)
    with pytest.raises(OutputError, match="cannot be locked"):
        ProjectLock(folder, "smalti build").acquire()
    assert target.read_text() == "dear"
