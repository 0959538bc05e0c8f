"""The rules that keep other sites and other people out, each on its own."""

from __future__ import annotations

import socket

import pytest
from starlette.datastructures import Headers

from smalti.server import security
from smalti.server.security import MOST_BYTES, Guard
from tests.server.dispatchers import ADDRESS, NO, client_of, opened, opened_desk

TOKEN = "right-token"
REMOTE = "http://192.0.2.7:8000"
PATHS = ("/", "/assets/index-a1B2c3D4.js", "/api/state", "/api/frames/0.jpg", "/api/openapi.json", "/api/nothing")


@pytest.fixture
def world():
    with opened() as world:
        yield world


@pytest.fixture
def remote():
    """A client of a server that others may reach."""
    with opened_desk() as (dispatcher, _):
        yield client_of(dispatcher, Guard.of_address("192.0.2.7", "192.0.2.7", 8000, TOKEN), REMOTE)


@pytest.mark.parametrize("host", ["evil.example:8000", "127.0.0.1.evil.example", "127.0.0.1@evil", ""])
def test_another_name_of_the_host_is_refused(world, host):
    answer = world[0].get("/api/state", headers={"host": host})
    assert answer.status_code == 403
    assert "has another name" in answer.json()["explanation"]


@pytest.mark.parametrize("host", ["127.0.0.1", "LOCALHOST:8000", "localhost:9000"])
def test_own_names_pass_by_any_port_since_a_tunnel_may_have_another(world, host):
    assert world[0].get("/api/state", headers={"host": host}).status_code == 200


def test_two_hosts_are_refused():
    guard = Guard(frozenset({"localhost"}))
    twice = Headers(raw=[(b"host", b"localhost"), (b"host", b"localhost")])
    assert guard.object_to("GET", "/", twice) is not None
    assert guard.object_to("GET", "/", Headers({"host": "localhost"})) is None


def test_an_address_of_version_6_passes_in_brackets():
    guard = Guard.of_address("::1", "::1", 8000, None)
    assert guard.object_to("GET", "/", Headers({"host": "[::1]:8000"})) is None
    assert guard.object_to("GET", "/", Headers({"host": "[::2]:8000"})) is not None


def test_a_server_on_all_addresses_takes_any_address_and_its_own_names_only():
    guard = Guard.of_address("0.0.0.0", "0.0.0.0", 8000, TOKEN)
    for host in ("192.0.2.9:8000", "[2001:db8::1]:8000", f"{socket.gethostname()}:8000", "localhost:8000"):
        assert guard.object_to("GET", "/", Headers({"host": host})) is None, host
    assert guard.object_to("GET", "/", Headers({"host": "evil.example:8000"})) is not None


def test_a_server_on_this_machine_only_takes_no_other_address():
    guard = Guard.of_address("127.0.0.1", "127.0.0.1", 8000, None)
    assert guard.object_to("GET", "/", Headers({"host": "192.0.2.9:8000"})) is not None


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://127.0.0.1:3000", "https://127.0.0.1:8000", "http://localhost:8000", "null"],
)
def test_another_origin_is_refused(world, origin):
    answer = world[0].get("/api/state", headers={"origin": origin})
    assert answer.status_code == 403
    assert "another site" in answer.json()["explanation"]


def test_another_origin_changes_nothing(world):
    client, _, session = world
    assert client.post("/api/answers", json=NO, headers={"origin": "http://evil.example"}).status_code == 403
    assert session.revision == 0


def test_the_own_origin_passes(world):
    assert world[0].post("/api/answers", json=NO, headers={"origin": ADDRESS}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site"])
def test_a_request_from_another_sites_page_is_refused(world, site):
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    assert world[0].get("/api/state", headers=headers).status_code == 403


@pytest.mark.parametrize("path", PATHS)
def test_no_path_is_open_to_others(world, path):
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert world[0].get(path, headers=headers).status_code == 403, headers


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_request_of_the_page_itself_passes(world, site):
    assert world[0].get("/api/state", headers={"sec-fetch-site": site}).status_code == 200


def test_a_link_on_another_site_may_open_the_page_but_nothing_else(world):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert world[0].get("/", headers=headers).status_code == 200
    assert world[0].get("/api/exports/landmarks.csv", headers=headers).status_code == 403
    assert world[0].post("/", json={}, headers=headers).status_code == 403


def test_another_site_may_not_frame_the_page(world):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
    assert world[0].get("/", headers=headers).status_code == 403


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("POST", "text/plain"),
        ("POST", "application/x-www-form-urlencoded"),
        ("POST", "application/jsonp"),
        ("POST", ""),
        ("PUT", "text/plain"),
        ("PATCH", "text/plain"),
        ("DELETE", "text/plain"),
    ],
)
def test_what_changes_something_must_be_json(world, method, kind):
    answer = world[0].request(method, "/api/answers", content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415


def test_json_with_a_charset_passes(world):
    body = b'{"i": 0, "j": 2, "verdict": "no", "seen_revision": 0}'
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert world[0].post("/api/answers", content=body, headers=headers).status_code == 200


def test_a_body_that_says_it_is_too_large_is_refused_unread(world):
    headers = {"content-type": "application/json", "content-length": str(MOST_BYTES + 1)}
    answer = world[0].post("/api/answers", content=b"{}", headers=headers)
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("length", ["-1", "x", "9" * 30, "²"])
def test_a_length_that_is_no_number_is_refused(world, length):
    headers = {"content-type": "application/json", "content-length": length.encode("latin-1")}
    assert world[0].post("/api/answers", content=b"{}", headers=headers).status_code == 413


def test_a_body_in_pieces_is_refused_as_soon_as_it_is_too_large(world):
    read = []

    async def pieces():
        for _ in range(100):
            read.append(1)
            yield b" " * (MOST_BYTES // 4)

    answer = world[0].post("/api/answers", content=pieces(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert len(read) < 10


def test_a_body_just_within_the_limit_is_read(world):
    body = b'{"i": 0, "j": 2, "verdict": "no", "seen_revision": 0}'.ljust(MOST_BYTES)
    answer = world[0].post("/api/answers", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/state", "/nothing"])
def test_every_response_carries_the_headers(world, path):
    headers = world[0].get(path).headers
    policy = headers["content-security-policy"]
    for rule in ("default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_refusal_carries_the_headers_too(world):
    answer = world[0].get("/", headers={"host": "evil.example"})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/api/state", "/api/frames/0.jpg", "/api/events", "/api/nothing"])
def test_without_the_token_a_remote_server_tells_nothing(remote, path):
    answer = remote.get(path)
    assert answer.status_code == 403
    assert "token" in answer.json()["explanation"]


@pytest.mark.parametrize("authorization", ["Bearer wrong", "Bearer ", "Bearer", TOKEN, f"Basic {TOKEN}", "Bearer \xe9"])
def test_a_wrong_token_is_refused(remote, authorization):
    headers = {"authorization": authorization.encode("latin-1")}
    assert remote.get("/api/state", headers=headers).status_code == 403


def test_the_token_as_bearer_passes(remote):
    assert remote.get("/api/state", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_address_with_the_token_sets_a_cookie_and_leaves_the_address_clean(remote):
    answer = remote.get(f"/?token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    pair = cookie.partition(";")[0]
    assert remote.get("/api/state", headers={"cookie": f"other=a b; {pair}"}).status_code == 200


def test_an_address_with_a_wrong_token_is_refused(remote):
    answer = remote.get("/?token=wrong")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_two_servers_on_one_machine_do_not_take_each_others_cookies():
    first, second = (Guard.of_address("192.0.2.7", "192.0.2.7", port, TOKEN) for port in (8000, 8001))
    headers = Headers({"host": "192.0.2.7", "cookie": f"{first.cookie}={TOKEN}"})
    assert first.object_to("GET", "/api/state", headers) is None
    assert second.object_to("GET", "/api/state", headers) is not None


def test_the_page_itself_needs_no_token_since_a_link_from_elsewhere_brings_no_cookie(remote):
    assert remote.get("/").status_code == 200
    assert remote.get("/assets/index-a1B2c3D4.js").status_code == 200


def test_a_token_in_the_address_of_a_local_server_is_nobodys_business(world):
    answer = world[0].get("/?token=anything")
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []
    compare = security.secrets.compare_digest
    monkeypatch.setattr(security.secrets, "compare_digest", lambda *both: compared.append(both) or compare(*both))
    assert Guard(frozenset(), token=TOKEN).is_right(TOKEN)
    assert compared
