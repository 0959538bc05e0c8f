"""Access rules, size limits and headers for every request."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from smalti.annotation.messages import Refusal

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

SAFE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_AUTHORITY = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\s]+)(:\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a request is refused."""

    status: HTTPStatus
    explanation: str


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules of one server: its names, and the token if other machines may connect."""

    names: frozenset[str]
    any_address: bool = False  # it listens on all addresses of this machine
    token: str | None = None
    cookie: str = "smalti"

    @classmethod
    def of_address(cls, host: str, address: str, port: int, token: str | None) -> Guard:
        """Return the rules of a server that was given `host` and is bound to the address and port."""
        bound = ipaddress.ip_address(address)
        names = {host.lower(), address}
        if bound.is_loopback or bound.is_unspecified:
            names.add("localhost")
        if not bound.is_loopback:
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        # A cookie is for all ports of a host. Two servers on one host must not share it.
        return cls(frozenset(names), bound.is_unspecified, token, f"smalti-{port}")

    def object_to(self, method: str, path: str, headers: Headers) -> Objection | None:
        """Return why a request is refused before it is read, or None to let it pass."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return Objection(HTTPStatus.FORBIDDEN, "this server has another name; open the address that smalti printed")
        if _comes_from_elsewhere(hosts[0], headers) and not _opens_the_page(method, path, headers):
            return Objection(
                HTTPStatus.FORBIDDEN, "requests from another site are not allowed; open the address that smalti printed"
            )
        if path.startswith("/api/") and not self._is_trusted(headers):
            return Objection(
                HTTPStatus.FORBIDDEN, "the token is missing or wrong; open the whole address that smalti printed"
            )
        if method not in SAFE_METHODS and not _is_json(headers):
            return Objection(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the request as application/json")
        return None

    def is_right(self, token: str) -> bool:
        """Compare a token with the right one in constant time."""
        return self.token is not None and secrets.compare_digest(token.encode(), self.token.encode())

    def _is_own(self, host: str) -> bool:
        match = _AUTHORITY.fullmatch(host)
        if match is None:
            return False
        name = match["name"].strip("[]").lower()
        # Somebody else can make a name point here, but not an address.
        return name in self.names or (self.any_address and _is_address(name))

    def _is_trusted(self, headers: Headers) -> bool:
        if self.token is None:
            return True
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_right(bearer.strip()):
            return True
        return any(self.is_right(cookie_parser(line).get(self.cookie, "")) for line in headers.getlist("cookie"))


def _comes_from_elsewhere(host: str, headers: Headers) -> bool:
    own = f"http://{host}".lower()
    if any(origin.lower() != own for origin in headers.getlist("origin")):
        return True
    # Another port of this machine is the same site, but its page is a foreign page.
    return headers.get("sec-fetch-site", "none").lower() not in ("same-origin", "none")


def _opens_the_page(method: str, path: str, headers: Headers) -> bool:
    """Return whether a person follows a link to the page. The site with the link cannot read it."""
    return (
        method == "GET"
        and path == "/"
        and "origin" not in headers
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


MOST_BYTES = 2**20


class Gate:
    """Checks requests before the application. A refused request never reaches it."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self._admit(scope, receive, _with_headers(send))

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        objection = self._guard.object_to(scope["method"], scope["path"], headers)
        if objection is None and _length(headers) > MOST_BYTES:
            objection = TOO_LARGE
        if objection is not None:
            await refuse(objection)(scope, receive, send)
            return
        token = QueryParams(scope["query_string"]).get("token")
        if token is not None and self._guard.token is not None and scope["path"] == "/":
            await self._welcome(token)(scope, receive, send)
            return
        try:
            body = await _read(receive)
        except _TooLargeError:
            await refuse(TOO_LARGE)(scope, receive, send)
        except ClientDisconnect:
            return
        else:
            await self._app(scope, _replaying(body, receive), send)

    def _welcome(self, token: str) -> Response:
        """Give the browser the token as a cookie, and remove it from the address."""
        if not self._guard.is_right(token):
            return refuse(Objection(HTTPStatus.FORBIDDEN, "the token is wrong; open the address that smalti printed"))
        response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        response.set_cookie(self._guard.cookie, token, path="/", httponly=True, samesite="strict")
        return response


TOO_LARGE = Objection(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the request is larger than {MOST_BYTES} bytes; send less")


def refuse(objection: Objection, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response that says why."""
    # The unread rest of the body must not be taken for the next request.
    close = {"Connection": "close"} if objection is TOO_LARGE else {}
    content = Refusal(explanation=objection.explanation).model_dump()
    return JSONResponse(content, objection.status, headers={**close, **(headers or {})})


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isdecimal() and len(text) < 20 else MOST_BYTES + 1


class _TooLargeError(Exception):
    pass


async def _read(receive: Receive) -> bytes:
    """Return the body. Stop as soon as it is too large, whatever length was declared."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if sum(map(len, parts)) > MOST_BYTES:
            raise _TooLargeError
        if not message.get("more_body", False):
            return b"".join(parts)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return what the application receives: the body that was read, then further messages."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers
