"""`smalti annotate` as it is typed: what it says, how it ends, with which exit code."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from smalti.annotation.known_pairs import Measures
from smalti.annotation.messages import Queue
from smalti.cli import annotate_command as command
from smalti.cli.main import main
from smalti.server import app as page_files, serving
from smalti.server.serving import listen
from tests.forks import Forked
from tests.server import real_program
from tests.server.dispatchers import PAGE, wait_until
from tests.server.fake_session import FakeSession
from tests.server.projects import prepared_tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepared_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def any_page(monkeypatch):
    """The page need not be built."""
    monkeypatch.setattr(serving, "read_page", lambda: PAGE)


@contextmanager
def annotating(*words):
    """Run the command in a process of its own; yield it and the line it printed."""
    with closing(Forked(real_program.run, ["annotate", *map(str, words)])) as process:
        yield process, process.stdout.readline().strip()


def one_line(capfd):
    words = capfd.readouterr()
    assert len(words.err.splitlines()) == 1, words.err
    return words.err


def wait_until_asking(url, **options):
    wait_until(lambda: httpx.get(f"{url}api/state", timeout=20, **options).json()["stage"] == "asking", 60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_line_that_says_how_to_go_on(prepared, tmp_path, number):
    folder = shutil.copytree(prepared, tmp_path / "tiny one.smalti")
    with annotating("-q" if number == signal.SIGTERM else "--no-browser", "--no-browser", folder) as (process, url):
        wait_until_asking(url)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    quiet = number == signal.SIGTERM
    assert out == ("" if quiet else f"all answers are in {folder}; continue with: smalti annotate '{folder}'\n")
    assert process.returncode == 0
    assert "Traceback" not in err
    assert not (folder / "lock").exists()


def test_a_video_is_prepared_answered_and_gone_on_with(prepared, tmp_path):
    folder = tmp_path / "new.smalti"
    with annotating("-q", "--no-browser", "--max-size", 80, prepared.with_name("tiny.mp4"), "-o", folder) as (_, url):
        wait_until_asking(url)
        state = httpx.get(f"{url}api/state").json()
        assert (state["name"], state["width"], state["folder"]) == ("new", 80, str(folder))
        question = httpx.get(f"{url}api/question").json()
        body = {"i": question["i"], "j": question["j"], "verdict": "no", "seen_revision": question["revision"]}
        assert httpx.post(f"{url}api/answers", json=body, timeout=20).status_code == 200
    with annotating("-q", "--no-browser", "--target-px", 3, folder) as (_, url):
        wait_until_asking(url)
        state = httpx.get(f"{url}api/state").json()
        assert (state["counts"]["no"], state["target_px"]) == (1, 3.0)


def test_a_project_in_use_is_said_with_the_address_of_its_page(prepared, tmp_path, any_page, capfd):
    folder = shutil.copytree(prepared, tmp_path / "tiny.smalti")
    with annotating("-q", "--no-browser", folder) as (_, url):
        wait_until_asking(url)
        assert main(["annotate", "-q", "--no-browser", str(folder)]) == 1
    assert f"smalti annotate at {url}" in one_line(capfd)


def test_others_need_the_token_that_is_printed(prepared, tmp_path):
    folder = shutil.copytree(prepared, tmp_path / "tiny.smalti")
    with annotating("-q", "--no-browser", "--host", "0.0.0.0", folder) as (_, line):
        address, _, token = line.partition("?token=")
        assert len(token) >= 43
        url = f"http://127.0.0.1:{address.rstrip('/').rpartition(':')[2]}/"
        assert httpx.get(f"{url}api/state").status_code == 403
        wait_until_asking(url, headers={"authorization": f"Bearer {token}"})
        with httpx.Client(follow_redirects=True) as browser:
            assert browser.get(f"{url}?token={token}").url == url
            assert browser.get(f"{url}api/state").status_code == 200


@pytest.mark.parametrize(
    ("words", "line", "code"),
    [
        (["nowhere.mp4"], "nowhere.mp4: ", 1),
        (["--family", "best", "nowhere.mp4"], "unknown family 'best'", 2),
        (["--target-px", "-1", "nowhere.mp4"], "target -1.0 px", 2),
        (["--port", "70000", "nowhere.mp4"], "--port 70000", 2),
        (["--host", "192.0.2.1", "nowhere.mp4"], "--host 192.0.2.1: is not an address of this machine", 2),
        (["--queue", "some", "nowhere.mp4"], "--queue", 2),
        (["--known-share", "0.9", "nowhere.mp4"], "--known-share 0.9", 2),
        (["--known-share", "0.1", "--method", "paper", "nowhere.mp4"], "--known-share is not for --method paper", 2),
        ([], "INPUT", 2),
    ],
)
def test_a_wrong_call_is_one_line(any_page, tmp_path, monkeypatch, capfd, words, line, code):
    monkeypatch.chdir(tmp_path)
    assert main(["annotate", "-q", "--no-browser", *words]) == code
    assert line in one_line(capfd)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_one_line(any_page, capfd):
    taken = listen("127.0.0.1", 0)
    with taken.listener:
        assert main(["annotate", "-q", "--no-browser", "--port", str(taken.port), "nowhere.mp4"]) == 2
        assert f"--port {taken.port}: is in use" in one_line(capfd)


def test_a_page_that_was_not_built_is_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(page_files.resources, "files", lambda package: tmp_path)
    assert main(["annotate", "-q", "--no-browser", "nowhere.mp4"]) == 1
    assert "the page was not built: run `make page`" in one_line(capfd)


@pytest.mark.parametrize(
    ("option", "value"), [("--every", "2"), ("--start", "1"), ("--end", "9"), ("--max-size", "90"), ("--mask", "none")]
)
def test_a_project_does_not_choose_its_frames_again(prepared, any_page, monkeypatch, capfd, option, value):
    monkeypatch.setattr(serving.Session, "prepare", lambda *given, **options: pytest.fail("the session was opened"))
    assert main(["annotate", "-q", "--no-browser", option, value, str(prepared)]) == 2
    assert one_line(capfd).startswith(f"smalti: {option[2:]}: {prepared} is a project")


@pytest.mark.parametrize(("slow_to_end", "ends"), [(False, 130), (True, "at once")])
def test_ctrl_c_while_it_prepares_says_that_the_command_goes_on(any_page, monkeypatch, capfd, slow_to_end, ends):
    let_go = threading.Event()

    def opening(*arguments, progress, **options):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        if slow_to_end:
            let_go.wait(20)
            raise KeyboardInterrupt
        with progress.stage("reading", 0) as step:
            while True:
                step()
                time.sleep(0.01)

    class Exit(BaseException):
        pass

    def leave_at_once(code):
        let_go.set()
        assert code == 130
        raise Exit

    monkeypatch.setattr(serving.Session, "prepare", opening)
    monkeypatch.setattr(command.os, "_exit", leave_at_once)
    if ends == "at once":
        with pytest.raises(Exit):
            main(["annotate", "-q", "--no-browser", "nowhere.mp4"])
    else:
        assert main(["annotate", "-q", "--no-browser", "nowhere.mp4"]) == ends
    assert one_line(capfd) == "smalti: interrupted; run the same command to continue\n"


def test_the_options_reach_the_session(any_page, monkeypatch, capfd):
    given = {}

    def opening(location, folder, settings, *, progress, on_change, **options):
        given.update(options, location=location, folder=folder, settings=settings)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        return FakeSession().opening(progress, on_change)

    monkeypatch.setattr(serving.Session, "prepare", opening)
    frames = ["--every", "2", "--start", "3", "--end", "9", "--max-size", "80", "--mask", "none"]
    words = ["-o", "out", "--queue", "doubtful", "--target-px", "2", "--source", "there"]
    words += ["--known-share", "0", "--check-landmarks"]
    words += ["--method", "paper", "--family", "similarity", "--reference", "7"]
    assert main(["annotate", "-q", "--no-browser", *frames, *words, "a.png", "b.png"]) == 0
    settings, source = given["settings"], given["settings"].source
    assert (source.every, source.start, source.end, source.max_size) == (2, "3", "9", 80)
    assert (settings.mask, settings.target_px) == ("none", 2.0)
    assert (settings.method, settings.family, settings.reference) == ("paper", "similarity", "7")
    assert (given["queue"], given["moved_to"]) == (Queue.DOUBTFUL, Path("there"))
    assert given["measures"] == Measures(0.0, check_landmarks=True)
    assert (given["location"], given["folder"]) == (["a.png", "b.png"], Path("out"))


def test_the_queues_of_the_help_are_those_of_the_program():
    assert tuple(Queue) == command.QUEUES


def test_help_does_not_wait_for_the_engine():
    words = [sys.executable, "-X", "importtime", "-m", "smalti.cli.main", "annotate", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    for heavy in ("numpy", "numba", "fastapi", "uvicorn", "pydantic"):
        assert f" {heavy}\n" not in done.stderr, heavy


@pytest.mark.parametrize("words", [(), ("film.mp4", "--demo")])
def test_either_an_input_or_the_demonstration(words, capsys):
    assert main(["annotate", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--demo" in line
