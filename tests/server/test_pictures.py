"""Frames, sheets and files to take away."""

from __future__ import annotations

import pytest

from tests.server.dispatchers import opened


@pytest.fixture
def world():
    with opened() as world:
        yield world


@pytest.mark.parametrize("path", ["/api/frames/0.jpg", "/api/sheets/0.jpg"])
def test_a_picture_is_sent_as_jpeg_for_this_browser_only(world, path):
    answer = world[0].get(path)
    assert answer.content.startswith(b"\xff\xd8")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["cache-control"] == "private, no-cache"


def test_the_mask_is_sent_as_png_and_not_twice(world):
    client = world[0]
    answer = client.get("/api/mask.png")
    assert (answer.content, answer.headers["content-type"]) == (b"\x89PNGmask", "image/png")
    assert client.get("/api/mask.png", headers={"if-none-match": answer.headers["etag"]}).status_code == 304


def test_a_picture_that_the_browser_has_is_not_made_again(world):
    client, _, session = world
    tag = client.get("/api/frames/0.jpg").headers["etag"]
    answer = client.get("/api/frames/0.jpg", headers={"if-none-match": tag})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert session.pictures_made == 1


def test_another_picture_has_another_tag(world):
    client = world[0]
    tags = {
        client.get(path).headers["etag"] for path in ("/api/frames/0.jpg", "/api/frames/1.jpg", "/api/sheets/0.jpg")
    }
    assert len(tags) == 3
    assert client.get("/api/frames/1.jpg", headers={"if-none-match": '"edition-frame-11"'}).status_code == 200


@pytest.mark.parametrize("path", ["/api/frames/5.jpg", "/api/sheets/1.jpg"])
def test_a_picture_that_does_not_exist_is_not_found(world, path):
    answer = world[0].get(path)
    assert answer.status_code == 404
    assert answer.json()["explanation"].startswith(path.split("/")[2].rstrip("s"))


@pytest.mark.parametrize("name", ["-1.jpg", "x.jpg", "99999999999.jpg"])
def test_a_number_that_is_none_is_refused(world, name):
    assert world[0].get(f"/api/frames/{name}").status_code == 422


def test_a_file_is_taken_away_by_its_name(world):
    answer = world[0].get("/api/exports/landmarks.csv")
    assert answer.content == b"i,j\n"
    assert answer.headers["content-disposition"] == 'attachment; filename="landmarks.csv"'


def test_a_file_made_for_a_request_is_sent_and_deleted(world, tmp_path):
    client, _, session = world
    session.export_path = tmp_path / "elsewhere.png"
    session.export_path.write_bytes(b"\x89PNG")
    answer = client.get("/api/exports/mosaic.png")
    assert answer.content == b"\x89PNG"
    assert answer.headers["content-type"] == "image/png"
    assert 'filename="mosaic.png"' in answer.headers["content-disposition"]
    assert not session.export_path.exists()


@pytest.mark.parametrize("name", ["passwd", "..%2fproject.sqlite", "project.sqlite", "landmarks.csv%00"])
def test_no_other_file_can_be_taken_away(world, name):
    client, _, session = world
    session.export = lambda name: pytest.fail("the session was asked")
    assert client.get(f"/api/exports/{name}").status_code in (404, 422)
