"""A build that is killed goes on where it stopped, and ends as if nothing had happened."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import smalti
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.walks import walk

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 300


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(walk(), tmp_path_factory.mktemp("source") / "walk.mp4")


@pytest.fixture(scope="module")
def built(video, tmp_path_factory):
    """Return the folder of a build that nobody disturbed."""
    folder = tmp_path_factory.mktemp("built") / "walk.smalti"
    smalti.build(video, folder).close()
    return folder


@pytest.fixture(scope="module", params=[signal.SIGINT, signal.SIGKILL])
def interrupted(request, video, tmp_path_factory):
    """Return folder, signal, exit code, last words and kept answers of a build stopped in the middle of asking."""
    folder = tmp_path_factory.mktemp("interrupted") / "walk.smalti"
    process = start(video, folder)
    try:
        wait_for_loop_answers(process, folder / "project.sqlite", 3)
        process.send_signal(request.param)
        _, words = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    with smalti.Project.open(folder) as project:
        kept = project.answers
    return folder, request.param, process.returncode, words, kept


@pytest.fixture(scope="module")
def resumed(interrupted, video):
    """Return the folder after the same command was given again."""
    folder = interrupted[0]
    process = start(video, folder)
    out, words = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out, words) == (0, "", "")
    return folder


def start(video, folder):
    command = [sys.executable, "-m", "smalti.cli.main", "build", "-q", str(video), "-o", str(folder)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        # A shell that runs the tests in the background has them ignore interrupts, and so their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def wait_for_loop_answers(process, path, count):
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if path.exists() and loop_answers(path) >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"the build did not get to question {count}: {process.poll()}")


def loop_answers(path):
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM log WHERE role IN ('loop', 'near')").fetchone()[0]
        except sqlite3.OperationalError:  # there is no table yet
            return 0


def test_it_was_in_the_middle(interrupted, built):
    kept = interrupted[4]
    with smalti.Project.open(built) as project:
        asked, all_asked = (sum(one.role.is_after_chain for one in given) for given in (kept, project.answers))
        assert 3 <= asked < all_asked
    assert not (interrupted[0] / "transforms.json").exists()


def test_an_interrupt_says_one_line_and_a_kill_none(interrupted):
    _, sign, code, words, _ = interrupted
    if sign is signal.SIGINT:
        assert code == 130, words
        assert words.splitlines() == ["smalti: interrupted; run the same command to continue"]
    else:
        assert (code, words) == (-signal.SIGKILL, "")


def test_the_same_command_ends_as_an_undisturbed_build_does(resumed, built):
    for name in ("transforms.json", "landmarks.csv", "mosaic.png"):
        assert (resumed / name).read_bytes() == (built / name).read_bytes(), name


def test_no_answer_that_was_kept_is_asked_again(interrupted, resumed, built):
    with smalti.Project.open(resumed) as project, smalti.Project.open(built) as undisturbed:
        after, expected = project.answers, undisturbed.answers
    kept = interrupted[4]
    # The seconds that an answer took do not come out the same twice.
    assert [(e.answer.pair, e.seconds) for e in after[: len(kept)]] == [(e.answer.pair, e.seconds) for e in kept]
    assert [(e.answer.pair, e.role) for e in after] == [(e.answer.pair, e.role) for e in expected]
