"""Every address answers with its message, and every error with words."""

from __future__ import annotations

import pytest

from smalti.annotation import messages as say
from smalti.server import typescript
from tests.server.dispatchers import NO, client_of, new_dispatcher, opened, wait_until
from tests.server.fake_session import IDENTITY

SNAP = {"i": 0, "j": 1, "x_i": 1.0, "y_i": 2.0, "x_j": 3.0, "y_j": 4.0, "moving": "i", "i_from_j": IDENTITY[:6]}
APPEARANCES = {
    "/api/state": say.State,
    "/api/question": say.Question,
    "/api/pairs/0/2": say.Question,
    "/api/pairs/0/2/proposal": say.Proposal,
    "/api/pairs/0/2/forecast": say.Forecast,
    "/api/mosaic": say.LiveMosaic,
    "/api/maps/reward": say.PairMap,
}
ACTS = {
    "/api/answers": (NO, say.Outcome),
    "/api/check": ({"i": 0, "j": 1, "landmarks": []}, say.Checked),
    "/api/snap": (SNAP, say.Snapped),
    "/api/align": ({"i": 0, "j": 1, "i_from_j": IDENTITY}, say.Proposal),
}


@pytest.fixture
def world():
    with opened() as world:
        yield world


@pytest.mark.parametrize("path", APPEARANCES)
def test_a_look_returns_its_message(world, path):
    answer = world[0].get(path)
    assert answer.status_code == 200
    APPEARANCES[path].model_validate_json(answer.content, strict=True)


@pytest.mark.parametrize("path", ACTS)
def test_an_act_returns_its_message(world, path):
    body, kind = ACTS[path]
    answer = world[0].post(path, json=body)
    assert answer.status_code == 200
    kind.model_validate_json(answer.content, strict=True)


def test_no_question_is_null(world):
    client, _, session = world
    session.revision = 3
    assert client.get("/api/question").json() is None


def test_an_answer_stands_in_the_table(world):
    client = world[0]
    client.post("/api/answers", json=NO)
    (row,) = client.get("/api/answers").json()
    assert (row["i"], row["j"], row["verdict"], row["author"]) == (0, 2, "no", "person")


def test_an_answer_is_removed_and_undone(world):
    client = world[0]
    client.post("/api/answers", json=NO)
    assert client.post("/api/answers/removal", json={"i": 0, "j": 2, "seen_revision": 1}).json()["done"] == "removed"
    client.post("/api/answers", json={**NO, "seen_revision": 2})
    assert client.post("/api/undo", json={"seen_revision": 3}).json()["done"] == "undone"


def test_the_window_of_a_map_reaches_the_session(world):
    found = world[0].get("/api/maps/overlap?row=3&column=4&frames=5&size=6").json()
    assert (found["kind"], found["first_row"], found["first_column"]) == ("overlap", 3, 4)


@pytest.mark.parametrize("query", ["row=-1", "size=0", "size=100000", "frames=x"])
def test_a_window_out_of_bounds_is_refused(world, query):
    answer = world[0].get(f"/api/maps/overlap?{query}")
    assert answer.status_code == 422
    assert query.partition("=")[0] in answer.json()["explanation"]


def test_an_error_of_the_engine_is_refused_in_its_words(world):
    answer = world[0].get("/api/pairs/2/1")
    assert answer.status_code == 400
    assert answer.json() == {"explanation": "pair (2, 1): give two different frames, the earlier one first"}


def test_nothing_to_redo_is_refused_in_words(world):
    answer = world[0].post("/api/redo", json={"seen_revision": 0})
    assert (answer.status_code, answer.json()) == (400, {"explanation": "there is nothing to redo"})


def test_an_unknown_address_is_explained(world):
    answer = world[0].get("/api/nothing")
    assert (answer.status_code, answer.json()) == (404, {"explanation": "there is nothing at this address"})


def test_a_wrong_method_is_explained(world):
    answer = world[0].get("/api/undo")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert "does not accept this kind of request" in answer.json()["explanation"]


def test_a_fault_of_ours_is_admitted_without_its_details():
    with opened() as (_, dispatcher, session):
        session.mosaic = lambda: 1 / 0
        answer = client_of(dispatcher, raise_faults=False).get("/api/mosaic")
    assert answer.status_code == 500
    assert answer.json() == {"explanation": "Smalti has an internal error; see the terminal"}
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "body",
    [
        {**NO, "i": "0"},
        {**NO, "i": True},
        {**NO, "i": 0.5},
        {**NO, "verdict": "maybe"},
        {**NO, "more": 1},
        {**NO, "seconds": "3"},
        {**NO, "reason": "a" * 1001},
        {"i": 0, "j": 2, "verdict": "no"},
        [],
        "no",
    ],
)
def test_a_body_of_other_types_is_refused_and_changes_nothing(world, body):
    client, _, session = world
    answer = client.post("/api/answers", json=body)
    assert answer.status_code == 422
    assert answer.json()["explanation"]
    assert session.revision == 0


@pytest.mark.parametrize("text", ["", "\xff", '{"i": NaN}', "[" * 100_000, "1" * 5000, '{"reason": "\\ud800"}'])
def test_a_body_that_is_not_json_is_refused(world, text):
    body = text.encode("latin-1")
    answer = world[0].post("/api/answers", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["explanation"]


def test_a_refused_field_is_named(world):
    landmark = {"x_i": 1, "y_i": 2, "x_j": 1e9, "y_j": 4}
    answer = world[0].post("/api/check", json={"i": 0, "j": 1, "landmarks": [landmark]})
    assert answer.json()["explanation"].startswith("landmarks.0.x_j: ")


def test_while_the_sequence_is_prepared_only_the_state_is_there():
    dispatcher = new_dispatcher()
    client = client_of(dispatcher)
    assert client.get("/api/state").json()["stage"] == "preparing"
    for path in ("/api/question", "/api/frames/0.jpg", "/api/exports/landmarks.csv", "/api/pairs/0/1"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.json() == {"explanation": "the sequence is being prepared; wait until it is done"}
    assert client.post("/api/finish", json={"seen_revision": 0}).status_code == 503
    dispatcher.close()


def test_stop_here_finishes_in_the_background_and_says_so(world):
    client, _, session = world
    assert client.post("/api/finish", json={"seen_revision": 0}).json()["stage"] == "finishing"
    wait_until(lambda: client.get("/api/state").json()["progress"] == {"name": "rendering", "done": 1, "total": 2})
    assert client.post("/api/answers", json=NO).json()["state"]["stage"] == "finishing"
    session.finishing.set()
    wait_until(lambda: client.get("/api/state").json()["stage"] == "asking")
    assert client.get("/api/state").json()["progress"] is None


def test_stop_here_twice_finishes_once(world):
    client, _, session = world
    begun = []
    finish = session.finish
    session.finish = lambda progress: (begun.append(1), finish(progress))
    for _ in range(2):
        client.post("/api/finish", json={"seen_revision": 0})
    session.finishing.set()
    wait_until(lambda: client.get("/api/state").json()["stage"] == "asking")
    assert begun == [1]


def test_a_mosaic_that_cannot_be_written_is_told_in_the_state(world):
    client, _, session = world
    session.disk_is_full = True
    session.finishing.set()
    client.post("/api/finish", json={"seen_revision": 0})
    wait_until(lambda: client.get("/api/state").json()["stage"] == "asking")
    assert client.get("/api/state").json()["failure"] == "mosaic.png: cannot be written; make room"


def test_the_description_names_every_message_and_the_errors(world):
    described = world[0].get("/api/openapi.json").json()
    for path in ("/api/answers", "/api/answers/removal", "/api/undo", "/api/redo"):
        responses = described["paths"][path]["post"]["responses"]
        schema = responses["409"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Conflict"}
        assert responses["422"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Refusal"}
    assert "HTTPValidationError" not in described["components"]["schemas"]


def test_what_the_page_sends_is_what_the_types_take_for_requests(world):
    described = world[0].get("/api/openapi.json").json()
    bodies = {
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for path in described["paths"].values()
        for operation in path.values()
        if "requestBody" in operation
    }
    assert bodies == {kind.__name__ for kind in typescript.REQUESTS}


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_there_are_no_pages_of_the_framework(world, path):
    assert world[0].get(path).status_code == 404
