"""Open pages are told of every change, and let go of when the server ends."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import httpx
import pytest

from smalti.annotation.messages import ErrorAfter, Notice, Prediction, Progress, Stage
from smalti.errors import InputError
from smalti.server import events
from smalti.server.events import Bulletin, write_events
from tests.server.dispatchers import NO, new_dispatcher, opened_desk, wait_until
from tests.server.fake_session import FakeSession
from tests.server.running import Page, running


def notice(revision=0, stage=Stage.ASKING, done=None):
    progress = None if done is None else Progress(name="reading", done=done, total=9)
    return Notice(revision=revision, stage=stage, progress=progress)


def read_while(bulletin, act):
    """Return the notices that a reader gets while `act` runs in another thread and until the bulletin is closed."""

    async def read():
        found = []
        thread = threading.Thread(target=act)
        async for one in bulletin.read():
            if not found:
                thread.start()
            found.append(one)
        thread.join()
        return found

    return asyncio.run(asyncio.wait_for(read(), 10))


def test_a_reader_gets_the_latest_notice_at_once_and_the_later_ones():
    bulletin = Bulletin(notice(3))

    def act():
        bulletin.post(notice(4))
        time.sleep(0.05)
        bulletin.post(notice(5))
        time.sleep(0.05)
        bulletin.close()

    assert read_while(bulletin, act) == [notice(3), notice(4), notice(5)]


def test_what_is_posted_just_before_the_end_still_arrives():
    bulletin = Bulletin(notice(3))

    def act():
        bulletin.post(notice(4))
        bulletin.close()

    assert read_while(bulletin, act) == [notice(3), notice(4)]


def test_a_notice_that_reads_the_same_is_told_again():
    bulletin = Bulletin(notice(3))

    def act():
        bulletin.post(notice(3))
        time.sleep(0.05)
        bulletin.close()

    assert read_while(bulletin, act) == [notice(3), notice(3)]


def test_progress_is_told_a_few_times_a_second_and_the_last_is_not_lost():
    bulletin = Bulletin(notice(0, Stage.PREPARING, 0))

    def act():
        for done in range(1, 101):
            bulletin.post(notice(0, Stage.PREPARING, done))
            time.sleep(0.005)
        time.sleep(0.3)
        bulletin.close()

    began = time.monotonic()
    found = read_while(bulletin, act)
    assert 3 <= len(found) <= 3 + (time.monotonic() - began) / events.PROGRESS_SECONDS
    assert found[-1] == notice(0, Stage.PREPARING, 100)


def test_a_reader_that_left_is_forgotten():
    bulletin = Bulletin(notice())

    async def read():
        reading = bulletin.read()
        await anext(reading)
        assert bulletin.readers == 1
        await reading.aclose()
        assert bulletin.readers == 0

    asyncio.run(read())
    bulletin.post(notice(1))


def test_where_nothing_changes_a_comment_keeps_the_connection(monkeypatch):
    monkeypatch.setattr(events, "KEEP_ALIVE_SECONDS", 0.05)
    bulletin = Bulletin(notice())

    async def read():
        lines = []
        async for text in write_events(bulletin):
            lines.append(text)
            if len(lines) == 4:
                bulletin.close()
        return lines

    retry, first, *comments = asyncio.run(asyncio.wait_for(read(), 5))
    assert retry == "retry: 1000\n\n"
    assert first == f"data: {notice().model_dump_json()}\n\n"
    assert comments == [": nothing new\n\n"] * 2


def test_two_pages_both_hear_of_an_answer():
    with opened_desk() as (dispatcher, _), running(dispatcher) as (_, url):
        pages = [Page(url), Page(url)]
        assert httpx.post(f"{url}/api/answers", json=NO).status_code == 200
        for page in pages:
            wait_until(
                lambda page=page: (
                    page.notices[-1]
                    == {"revision": 1, "stage": "asking", "progress": None, "prediction": None, "working": False}
                )
            )
    for page in pages:
        page.wait()


def test_a_page_hears_of_the_preparation_from_its_progress_to_its_end():
    dispatcher, session, go_on = new_dispatcher(), FakeSession(), threading.Event()

    def opening(progress, on_change):
        with progress.stage("reading", 2) as step:
            step()
            assert go_on.wait(5)
            step()
        return session.opening(progress, on_change)

    with running(dispatcher) as (_, url):
        page = Page(url)
        dispatcher.open(opening)
        reading = {"name": "reading", "done": 1, "total": 2}
        wait_until(
            lambda: (
                page.notices[-1]
                == {"revision": 0, "stage": "preparing", "progress": reading, "prediction": None, "working": False}
            )
        )
        go_on.set()
        wait_until(
            lambda: (
                page.notices[-1]
                == {"revision": 0, "stage": "asking", "progress": None, "prediction": None, "working": False}
            )
        )
    page.wait()
    dispatcher.close()


def test_a_page_hears_why_the_preparation_failed():
    dispatcher = new_dispatcher()

    def opening(progress, on_change):
        raise InputError("clip.mp4: no frames; give another file")

    with running(dispatcher) as (_, url):
        page = Page(url)
        with pytest.raises(InputError):
            dispatcher.open(opening).result(5)
        wait_until(lambda: page.notices[-1]["stage"] == "failed")
        assert httpx.get(f"{url}/api/state").json()["failure"] == "clip.mp4: no frames; give another file"
        assert httpx.get(f"{url}/api/question").json() == {"explanation": "clip.mp4: no frames; give another file"}
    page.wait()
    dispatcher.close()


def test_a_change_that_nobody_asked_for_is_told():
    with opened_desk() as (dispatcher, session), running(dispatcher) as (_, url):
        page = Page(url)
        session.revision = 7
        session.on_change()
        wait_until(lambda: page.notices[-1]["revision"] == 7)
    page.wait()


def test_what_is_foretold_while_people_look_comes_by_itself():
    prediction = Prediction(
        answers=2, bound_px=2.9, ahead=[ErrorAfter(answers=7, predicted_px=1.6)], worth_going_on=True
    )
    with opened_desk() as (dispatcher, session), running(dispatcher) as (_, url):
        page = Page(url)
        session.prediction = prediction
        session.on_change()
        wait_until(lambda: page.notices[-1]["prediction"] == prediction.model_dump())
    page.wait()


def test_the_server_ends_within_a_second_with_pages_open():
    with opened_desk() as (dispatcher, _):
        with running(dispatcher) as (server, url):
            pages = [Page(url) for _ in range(3)]
            began = time.monotonic()
            server.should_exit = True
            for page in pages:
                page.wait()
        assert time.monotonic() - began < 1.0
        assert all(page.ended for page in pages)


def test_the_server_ends_within_a_second_while_somebody_waits_for_the_engine():
    with opened_desk() as (dispatcher, session):
        with running(dispatcher) as (server, url):
            session.hold.clear()
            answers = []
            asking = threading.Thread(target=lambda: answers.append(httpx.get(f"{url}/api/state", timeout=10)))
            asking.start()
            wait_until(lambda: "state" in session.threads)
            began = time.monotonic()
            server.should_exit = True
            asking.join(5)
        assert time.monotonic() - began < 1.0
        assert answers[0].status_code == 503
        assert answers[0].json() == {"explanation": "the program is ending; start it again"}


def test_a_page_that_is_closed_is_forgotten():
    with opened_desk() as (dispatcher, _), running(dispatcher) as (_, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET /api/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            wait_until(lambda: dispatcher.bulletin.readers == 1)
        wait_until(lambda: dispatcher.bulletin.readers == 0)


def test_a_page_that_is_closed_lets_others_have_its_question():
    with opened_desk() as (dispatcher, session), running(dispatcher) as (_, url):
        with httpx.Client(timeout=10) as client, client.stream("GET", f"{url}/api/events?page=mine") as response:
            lines = response.iter_lines()  # kept: the response is closed with it
            assert next(lines).startswith("retry")
            assert session.left == []
        session.on_change()  # the next thing that is written finds nobody
        wait_until(lambda: session.left == ["mine"])
