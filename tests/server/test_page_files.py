"""The page's files: a table read at the start, and how they are sent."""

from __future__ import annotations

import pytest

from smalti.errors import InputError
from smalti.server.app import read_page
from tests.server.dispatchers import client_of, opened_desk


@pytest.fixture
def built(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "assets" / "index-DkT3a_9-.js").write_text("1")
    (tmp_path / "assets" / "plain.css").write_text("2")
    return tmp_path


def test_the_page_is_at_the_root_and_its_files_at_their_paths(built):
    assert set(read_page(built)) == {"/", "/assets/index-DkT3a_9-.js", "/assets/plain.css"}


def test_names_with_a_hash_last_and_others_do_not(built):
    files = read_page(built)
    assert {path: file.immutable for path, file in files.items()} == {
        "/": False,
        "/assets/index-DkT3a_9-.js": True,
        "/assets/plain.css": False,
    }


def test_media_types_are_those_of_the_web(built):
    files = read_page(built)
    assert files["/assets/index-DkT3a_9-.js"].media_type == "text/javascript; charset=utf-8"
    assert files["/"].media_type == "text/html; charset=utf-8"


def test_a_page_that_was_not_built_is_said_in_one_line(tmp_path):
    with pytest.raises(InputError, match="the page was not built: run `make page`"):
        read_page(tmp_path)


def test_a_file_added_later_is_not_sent(built):
    with opened_desk() as (dispatcher, _):
        client = client_of(dispatcher)
        assert client.get("/assets/plain.css").status_code == 404


@pytest.mark.parametrize(
    "path", ["/../desks.py", "/assets/../../desks.py", "/%2e%2e/desks.py", "/assets/..%2f..%2fdesks.py", "//etc/passwd"]
)
def test_no_path_leads_to_another_file(path):
    with opened_desk() as (dispatcher, _):
        assert client_of(dispatcher).get(path).status_code == 404


def test_the_page_is_asked_for_anew_and_assets_with_a_hash_never(built):
    with opened_desk() as (dispatcher, _):
        client = client_of(dispatcher)
        assert client.get("/").headers["cache-control"] == "no-store"
        assert "immutable" in client.get("/assets/index-a1B2c3D4.js").headers["cache-control"]
        assert client.get("/favicon.svg").headers["cache-control"] == "no-store"
