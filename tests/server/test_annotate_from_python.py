"""`smalti.annotate`: a page for a Python program or a notebook, and the project when it is done."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import socket
import threading

import httpx
import pytest

import smalti
from smalti.server import serving
from tests.server.dispatchers import PAGE, wait_until
from tests.server.projects import prepared_tiny


@pytest.fixture
def folder(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "read_page", lambda: PAGE)
    monkeypatch.setattr(serving, "FAREWELL_SECONDS", 0.1)
    return shutil.copytree(prepared_tiny(tmp_path_factory.mktemp("tiny")), tmp_path / "tiny.smalti")


def is_asking(url):
    try:
        return httpx.get(f"{url}api/state", timeout=20).json()["stage"] == "asking"
    except httpx.ConnectError:
        return False


def answer_and_stop(url):
    """Do what a person does: say no once, then press "stop here"."""
    wait_until(lambda: is_asking(url), 60)
    question = httpx.get(f"{url}api/question", timeout=20).json()
    body = {"i": question["i"], "j": question["j"], "verdict": "no", "seen_revision": question["revision"]}
    revision = httpx.post(f"{url}api/answers", json=body, timeout=20).json()["state"]["revision"]
    assert httpx.post(f"{url}api/finish", json={"seen_revision": revision}, timeout=20).status_code == 200


def annotate_with_person(folder):
    """Run the call with a person beside it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    person = threading.Thread(target=answer_and_stop, args=(f"http://127.0.0.1:{port}/",))
    person.start()
    try:
        return smalti.annotate(folder, browser=False, port=port)
    finally:
        person.join()


def test_it_returns_the_project_when_the_mosaic_is_made(folder):
    with annotate_with_person(folder) as project:
        assert project.is_finished
        assert project.info().no == 1
    assert (folder / "mosaic.png").exists()
    # Nothing holds on to the project.
    with smalti.Session.open(folder) as session:
        assert session.state().counts.no == 1


def test_it_works_where_a_loop_runs_already_as_in_a_notebook(folder):
    async def cell():
        return annotate_with_person(folder)

    with asyncio.run(cell()) as project:
        assert project.is_finished


def test_an_input_that_cannot_be_used_is_raised(folder, tmp_path):
    with pytest.raises(smalti.SmaltiError, match="nowhere"):
        smalti.annotate(tmp_path / "nowhere.mp4", browser=False)


def test_a_session_has_the_same_keywords_but_for_the_page():
    page = {"host", "port", "browser"}
    assert set(inspect.signature(smalti.annotate).parameters) - page == set(
        inspect.signature(smalti.Session.open).parameters
    )
