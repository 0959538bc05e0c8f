"""What is done in which thread, and how the work ends."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext

import pytest

from smalti.annotation.messages import Progress
from smalti.errors import InputError
from tests.server.dispatchers import NO, client_of, new_dispatcher, opened, wait_until
from tests.server.fake_session import FakeSession


def test_a_picture_does_not_wait_for_the_engine():
    with opened() as (client, _, session):
        session.hold.clear()
        asking = threading.Thread(target=lambda: client.get("/api/state"))
        asking.start()
        wait_until(lambda: "state" in session.threads)
        assert client.get("/api/frames/0.jpg").status_code == 200
        session.hold.set()
        asking.join()
        assert session.threads["state"].startswith("engine")
        assert session.threads["frame"].startswith("pictures")


def test_an_answer_does_not_wait_for_an_opinion():
    with opened() as (client, _, session):
        forming, formed = threading.Event(), threading.Event()
        forecast = session.forecast

        def slow(*asked):
            forming.set()
            assert formed.wait(5)
            return forecast(*asked)

        session.forecast = slow
        asking = threading.Thread(target=lambda: client.get("/api/pairs/0/1/forecast"))
        asking.start()
        assert forming.wait(5)
        assert client.post("/api/answers", json=NO).status_code == 200
        formed.set()
        asking.join()


def test_answers_are_taken_one_after_the_other():
    with opened() as (client, _, session):
        at_once, most = [], []
        give = session.give

        def slow(request, page):
            at_once.append(1)
            most.append(len(at_once))
            time.sleep(0.02)
            at_once.pop()
            return give(request, page)

        session.give = slow
        asking = [
            threading.Thread(target=lambda j=j: client.post("/api/answers", json={**NO, "j": j})) for j in (1, 2, 3, 4)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        assert most == [1, 1, 1, 1]
        assert session.revision == 4


def test_the_later_of_two_tabs_is_told_what_the_other_said():
    with opened() as (client, _, session):
        client.post("/api/answers", json={**NO, "reason": "another place"})
        late = client.post("/api/answers", json={**NO, "verdict": "unsure"})
        assert late.status_code == 409
        told = late.json()
        assert (told["i"], told["j"]) == (0, 2)
        assert told["theirs"] == {"verdict": "no", "landmarks": [], "author": "person", "reason": "another place"}
        assert told["state"]["revision"] == 1
        assert session.revision == 1


def test_progress_is_shown_beside_the_page_too():
    shown = []

    class Beside:
        def stage(self, name, total):
            shown.append((name, total))
            return nullcontext(lambda done=1: shown.append(done))

        def say(self, message):
            shown.append(message)

    dispatcher = new_dispatcher(Beside())

    def opening(progress, on_change):
        with progress.stage("reading", 3) as step:
            step(2)
        progress.say("one frame is dark")
        return FakeSession().opening(progress, on_change)

    dispatcher.open(opening).result(5)
    dispatcher.close()
    assert shown == [("reading", 3), 2, "one frame is dark"]


def test_closing_ends_the_preparation_at_its_next_step():
    dispatcher, begun = new_dispatcher(), threading.Event()

    def opening(progress, on_change):
        with progress.stage("reading", 0) as step:
            for _ in range(3000):
                step()
                begun.set()
                time.sleep(0.005)
        pytest.fail("it went on")

    preparing = dispatcher.open(opening)
    assert begun.wait(5)
    assert dispatcher.close(10)
    assert preparing.done()
    assert not dispatcher.is_open


def test_closing_ends_the_finishing_and_the_session():
    with opened() as (client, dispatcher, session):
        client.post("/api/finish", json={"seen_revision": 0})
        session.finishing.set()
        assert dispatcher.close(10)
        assert session.closed


def test_work_that_does_not_end_is_left_to_itself():
    with opened() as (client, dispatcher, session):
        client.post("/api/finish", json={"seen_revision": 0})
        began = time.monotonic()
        assert not dispatcher.close()
        assert time.monotonic() - began < 0.8
        assert not session.closed


def test_after_the_end_nothing_is_taken_on():
    with opened() as (client, dispatcher, _):
        dispatcher.close()
        assert client.get("/api/question").status_code == 503


def test_a_fault_in_the_preparation_is_named_in_the_state():
    dispatcher = new_dispatcher()
    with pytest.raises(ZeroDivisionError):
        dispatcher.open(lambda progress, on_change: 1 / 0).result(5)
    failure = client_of(dispatcher).get("/api/state").json()["failure"]
    assert failure == "Smalti has an internal error: ZeroDivisionError: division by zero"
    dispatcher.close()


def test_an_input_that_cannot_be_used_is_named_in_the_state():
    dispatcher = new_dispatcher()

    def opening(progress, on_change):
        raise InputError("clip.mp4: no frames")

    with pytest.raises(InputError):
        dispatcher.open(opening).result(5)
    state = client_of(dispatcher).get("/api/state").json()
    assert (state["stage"], state["failure"]) == ("failed", "clip.mp4: no frames")
    dispatcher.close()


def test_the_sessions_own_progress_is_kept_while_it_asks():
    with opened() as (client, _, session):
        work = Progress(name="the matcher answers", done=3, total=0)
        said = session.state().model_copy(update={"progress": work})
        session.state = lambda: said
        assert client.get("/api/state").json()["progress"]["done"] == 3
