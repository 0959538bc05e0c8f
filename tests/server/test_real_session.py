"""The server before a real session on a small project."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from smalti.annotation import messages as say
from tests.server.dispatchers import client_of, wait_until
from tests.server.projects import prepared_tiny, real_desk
from tests.server.running import Page, running


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepared_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def world(prepared, tmp_path):
    with real_desk(prepared, tmp_path / "tiny.smalti") as (dispatcher, session):
        yield client_of(dispatcher), dispatcher, session


def answer(client, verdict="no", **more):
    question = client.get("/api/question").json()
    body = {"i": question["i"], "j": question["j"], "verdict": verdict, "seen_revision": question["revision"], **more}
    return client.post("/api/answers", json=body)


def test_everything_that_can_be_looked_at_is_as_described(world):
    client = world[0]
    question = say.Question.model_validate_json(client.get("/api/question").content, strict=True)
    pair = f"/api/pairs/{question.i}/{question.j}"
    for path, kind in {
        "/api/state": say.State,
        "/api/mosaic": say.LiveMosaic,
        pair: say.Question,
        f"{pair}/proposal": say.Proposal,
        f"{pair}/forecast": say.Forecast,
        "/api/maps/overlap?size=4": say.PairMap,
        "/api/maps/informativeness": say.PairMap,
        "/api/maps/reward?row=2&column=3&frames=5": say.PairMap,
    }.items():
        response = client.get(path)
        assert response.status_code == 200, response.text
        kind.model_validate_json(response.content, strict=True)


def test_frames_and_sheets_are_pictures(world):
    client = world[0]
    for path in ("/api/frames/0.jpg", "/api/frames/11.jpg", "/api/sheets/0.jpg"):
        assert client.get(path).content.startswith(b"\xff\xd8\xff")
    for path in ("/api/frames/12.jpg", "/api/sheets/1.jpg"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("name", "begins"),
    [("landmarks.csv", b""), ("transforms.json", b"{"), ("preview.png", b"\x89PNG"), ("project.zip", b"PK")],
)
def test_every_export_can_be_taken_away(world, name, begins):
    response = world[0].get(f"/api/exports/{name}")
    assert response.status_code == 200, response.text
    assert response.content.startswith(begins)
    assert len(response.content) > 50


def test_an_answer_is_given_undone_and_given_again(world):
    client, _, session = world
    before = client.get("/api/answers").json()
    outcome = say.Outcome.model_validate_json(answer(client).content, strict=True)
    assert outcome.state.counts.no == 1
    undone = client.post("/api/undo", json={"seen_revision": outcome.state.revision}).json()
    assert client.get("/api/answers").json() == before
    redone = client.post("/api/redo", json={"seen_revision": undone["state"]["revision"]}).json()
    assert redone["state"]["counts"]["no"] == 1
    assert session.revision == outcome.state.revision + 2


def test_the_later_of_two_tabs_is_told_what_the_other_said(world):
    client = world[0]
    question = client.get("/api/question").json()
    body = {"i": question["i"], "j": question["j"], "seen_revision": question["revision"]}
    assert client.post("/api/answers", json={**body, "verdict": "no", "reason": "another place"}).status_code == 200
    late = client.post("/api/answers", json={**body, "verdict": "unsure"})
    assert late.status_code == 409
    conflict = say.Conflict.model_validate_json(late.content, strict=True)
    assert (conflict.i, conflict.j) == (question["i"], question["j"])
    assert (conflict.theirs.verdict, conflict.theirs.reason) == ("no", "another place")


def test_the_later_of_two_undos_is_told(world):
    client, _, session = world
    answer(client)
    revision = answer(client).json()["state"]["revision"]
    assert client.post("/api/undo", json={"seen_revision": revision}).status_code == 200
    late = client.post("/api/undo", json={"seen_revision": revision})
    assert late.status_code == 409
    assert say.Conflict.model_validate_json(late.content, strict=True).state.counts.no == 1
    assert session.revision == revision + 1


def test_of_many_answers_at_once_exactly_one_is_kept(world):
    client, _, session = world
    question, before = client.get("/api/question").json(), session.revision
    body = {"i": question["i"], "j": question["j"], "verdict": "no", "seen_revision": question["revision"]}
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: client.post("/api/answers", json=body).status_code, range(8)))
    assert sorted(statuses) == [200] + [409] * 7
    assert session.revision == before + 1


def test_both_tabs_hear_of_an_answer(prepared, tmp_path):
    with real_desk(prepared, tmp_path / "tiny.smalti") as (dispatcher, session), running(dispatcher) as (_, url):
        pages = [Page(url), Page(url)]
        question = httpx.get(f"{url}/api/question", timeout=20).json()
        body = {"i": question["i"], "j": question["j"], "verdict": "no", "seen_revision": question["revision"]}
        assert httpx.post(f"{url}/api/answers", json=body, timeout=20).status_code == 200
        for page in pages:
            wait_until(lambda page=page: page.notices[-1]["revision"] == session.revision)
    for page in pages:
        page.wait()


def test_stop_here_leaves_a_mosaic_and_a_report(world):
    client, dispatcher, _ = world
    assert client.post("/api/finish", json={"seen_revision": 0}).json()["stage"] == "finishing"
    wait_until(lambda: client.get("/api/state").json()["stage"] == "asking", 60)
    state = client.get("/api/state").json()
    assert (state["failure"], state["finished"]) == (None, True)
    for name in ("mosaic.png", "report.html"):
        assert (dispatcher.folder / name).stat().st_size > 100


def test_answers_are_taken_while_the_mosaic_is_finished(world):
    client, _, session = world
    going_on, go_on = threading.Event(), threading.Event()
    finish = session.finish

    def slowly(progress):
        going_on.set()
        assert go_on.wait(20)
        finish(progress)

    session.finish = slowly
    client.post("/api/finish", json={"seen_revision": 0})
    assert going_on.wait(5)
    assert answer(client).status_code == 200
    go_on.set()
    wait_until(lambda: client.get("/api/state").json()["stage"] == "asking", 60)
    assert client.get("/api/state").json()["failure"] is None
