"""Hostile requests to the annotator's server on this machine.

Meanwhile honest requests must be answered within a second, and no answer may come or go that nobody gave.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.campaign.attacked_server import serving
from tests.campaign.tally import Tally

BETWEEN_LOOKS = 20
SEEN = 1_000_000
"""A revision that the log has not reached: no answer is refused because another one came between."""

POINT = {"x_i": 10.0, "y_i": 10.0, "x_j": 10.0, "y_j": 10.0}
REQUESTS: tuple[tuple[str, str, object], ...] = (
    *(("GET", f"/api/{name}", None) for name in ("state", "question", "mosaic", "answers", "openapi.json", "mask.png")),
    *(("GET", path, None) for path in ("/", "/favicon.svg", "/api/pairs/0/3", "/api/pairs/0/3/proposal")),
    *(("GET", path, None) for path in ("/api/pairs/0/4/forecast", "/api/maps/overlap?size=16", "/api/frames/0.jpg")),
    *(("GET", path, None) for path in ("/api/finished", "/api/finished/1/now/3/0_0.png", "/api/results/report.html")),
    *(("GET", path, None) for path in ("/api/sheets/0.jpg", "/api/exports/landmarks.csv", "/api/exports/project.zip")),
    ("POST", "/api/answers", {"i": 0, "j": 3, "verdict": "no", "reason": "", "seconds": 1.0, "seen_revision": SEEN}),
    ("POST", "/api/answers", {"i": 0, "j": 3, "verdict": "yes", "landmarks": [POINT] * 4, "seen_revision": SEEN}),
    ("POST", "/api/answers/removal", {"i": 0, "j": 1, "seen_revision": SEEN}),
    ("POST", "/api/undo", {"seen_revision": SEEN}),
    ("POST", "/api/redo", {"seen_revision": SEEN}),
    ("POST", "/api/check", {"i": 0, "j": 3, "landmarks": [POINT] * 4}),
    ("POST", "/api/snap", {"i": 0, "j": 3, **POINT, "moving": "i", "i_from_j": [1, 0, 0, 0, 1, 0]}),
    ("POST", "/api/align", {"i": 0, "j": 3, "i_from_j": [1, 0, 0, 0, 1, 0, 0, 0, 1]}),
)
VALUES = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**400, -0.0, 1e308, "", "x", "no", "\x00", "é" * 2000, [], {}, [[]]),
    *([1] * 5000, {"a": {"b": {}}}, "1", "NaN", "../../etc/passwd"),
)
TRAVERSALS = (
    *("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/assets/../../../etc/passwd"),
    *("//etc/passwd", "/api/exports/..%2f..%2fproject.sqlite", "/api/exports/project.sqlite", "/api/frames/..%2f0.jpg"),
    *("/api/results/..%2fproject.sqlite", "/api/results/project.sqlite", "/api/finished/..%2f..%2f/now/0/0_0.png"),
    *("/api/finished/1/..%2f..%2f/0/0_0.png", "/api/finished/1/now/0/..%2f..%2f_0.png", "/api/results/%2fetc%2fpasswd"),
    *(
        "/api/frames/%00.jpg",
        "/api/../project.sqlite",
        "/.git/config",
        "/static/%5c..%5c..%5cetc",
        "http://evil/etc/passwd",
    ),
)
FOREIGN = {
    "Host": ("evil.example", "127.0.0.1.evil.example", "", "localhost@evil", "[::1", "127.0.0.1:99999999"),
    "Origin": ("http://evil.example", "null", "http://127.0.0.1:1", "file://"),
    "Sec-Fetch-Site": ("cross-site", "same-site"),
}


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Send requests that differ from real ones in something."""
    tally = Tally("hostile requests")
    with serving(folder, tally) as server:
        for number in range(seed, seed + count):
            rng = np.random.default_rng(number)
            what, content, may_pass = _hostile(rng, server.port)
            try:
                status, body = server.send(content)
            except OSError as error:
                tally.failures.append(f"seed {number}: {what}: no connection: {error}")
                break
            tally.count("closed" if status == 0 else f"{status // 100}xx")
            if status >= 500:
                tally.failures.append(f"seed {number}: {what}: {status} {body[:200]!r}")
            if b"root:" in body or b"SQLite format" in body:
                tally.failures.append(f"seed {number}: {what}: a file is given away")
            if status in range(200, 300) and not may_pass:
                tally.failures.append(f"seed {number}: {what}: is accepted")
            if status == 200 and b"POST" in content[:6]:
                server.known = server.answers()  # it was well-formed by chance
            if number % BETWEEN_LOOKS == 0 and (wrong := server.look()):
                tally.failures.append(f"seed {number}: {what}: after it, {wrong}")
    return tally


def _hostile(rng: np.random.Generator, port: int) -> tuple[str, bytes, bool]:
    """Return what is wrong with a request, the request, and whether it may be granted all the same."""
    name = str(rng.choice(list(WAYS)))
    requests = [one for one in REQUESTS if one[0] == "POST" or name not in ABOUT_BODIES]
    method, path, body = requests[rng.integers(len(requests))]
    what, content, may_pass = WAYS[name](rng, method, path, body, port)
    return f"{name}: {method} {path} {what}", content, may_pass


def compose(method: str, path: str, body: bytes, port: int, headers: dict[str, str] | None = None) -> bytes:
    known = {"Host": f"127.0.0.1:{port}", "Connection": "close", "Content-Length": str(len(body))}
    known |= {"Content-Type": "application/json"} | (headers or {})
    lines = "".join(f"{key}: {value}\r\n" for key, value in known.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode(errors="surrogateescape") + body


def packed(body: object) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


def _change_value(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    value = VALUES[rng.integers(len(VALUES))]
    changed = dict(body) if isinstance(body, dict) else {}
    key = str(rng.choice([*changed, "extra"]))
    changed[key] = value
    return f"{key} = {str(value)[:30]}", compose("POST", path, packed(changed), port), True


def _break_body(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    broken = (
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"NaN",
        b'{"i":1e999}',
        b"\x00" * 99,
    )
    content = broken[rng.integers(len(broken))]
    return f"body {content[:20]!r}", compose("POST", path, content, port), False


def _from_elsewhere(
    rng: np.random.Generator, method: str, path: str, body: object, port: int
) -> tuple[str, bytes, bool]:
    header = str(rng.choice(list(FOREIGN)))
    value = str(rng.choice(FOREIGN[header]))
    return f"{header}: {value}", compose(method, path, packed(body), port, {header: value}), False


def _traverse(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    place = str(rng.choice(TRAVERSALS))
    return place, compose("GET", place, b"", port), False


def _too_large(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    size = int(rng.choice([2**20 + 1, 5_000_000, 30_000_000]))
    return f"{size} bytes", compose("POST", path, b" " * size, port), False


def _lie_about_length(
    rng: np.random.Generator, method: str, path: str, body: object, port: int
) -> tuple[str, bytes, bool]:
    lengths = ("-1", "0", "1", "99999999999999999999", "x", "1, 2", "+5", "0x10", "1" * 5000)
    length = str(rng.choice(lengths))
    return f"length {length[:20]}", compose("POST", path, packed(body), port, {"Content-Length": length}), False


def _smuggle(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    coding = str(rng.choice(["chunked", "chunked, chunked", "gzip", "x", "\tchunked"]))
    hidden = rng.choice([b"0\r\n\r\nGET /api/state HTTP/1.1\r\n\r\n", b"ffffffffffffffff\r\nx", b"5\r\nabc", b"z\r\n"])
    return f"coding {coding}", compose("POST", path, bytes(hidden), port, {"Transfer-Encoding": coding}), False


def _odd_line(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    lines = (
        b"",
        b"\r\n" * 50,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"PRI * HTTP/2.0\r\n\r\n",
    )
    lines += (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nA: " + b"b" * 500_000 + b"\r\n\r\n")
    lines += (
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
        rng.bytes(2000),
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    )
    line = lines[rng.integers(len(lines))]
    return f"{line[:30]!r}", line, False


def _odd_method(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    other = str(rng.choice(["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "HEAD", "OPTIONS", "get", "X" * 1000]))
    return other[:10], compose(other, path, packed(body), port), other == "HEAD"


def _odd_path(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    number = str(rng.choice(["-1", "99999999999999999999", "1e3", "%31", "1.5", "a", "", "0;1", "٣", "9" * 4000]))
    places = (
        "/api/pairs/0/{}",
        "/api/pairs/{}/1",
        "/api/frames/{}.jpg",
        "/api/sheets/{}.jpg",
        "/api/maps/overlap?size={}",
    )
    place = str(rng.choice([*places, "/api/maps/{}", "/api/maps/reward?row={}", "/api/state?x={}", "/api/{}"])).format(
        number
    )
    return place[:60], compose("GET", place, b"", port), True


def _odd_type(rng: np.random.Generator, method: str, path: str, body: object, port: int) -> tuple[str, bytes, bool]:
    kind = str(rng.choice(["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", ""]))
    return f"type {kind}", compose("POST", path, packed(body), port, {"Content-Type": kind}), False


Way = Callable[[np.random.Generator, str, str, object, int], tuple[str, bytes, bool]]
WAYS: dict[str, Way] = {
    "value": _change_value,
    "body": _break_body,
    "from elsewhere": _from_elsewhere,
    "traversal": _traverse,
    "too large": _too_large,
    "length": _lie_about_length,
    "smuggled": _smuggle,
    "line": _odd_line,
    "method": _odd_method,
    "path": _odd_path,
    "type": _odd_type,
}
ABOUT_BODIES = ("value", "body", "too large", "length", "smuggled", "type")
