"""The gate that every request passes: the guard's rules, a limit to its size, headers on every response."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from smalti.annotation.messages import Refusal
from smalti.server.security import SAFE_HEADERS, Guard, Objection

MOST_BYTES = 2**20


class Gate:
    """Stands before the application; what it refuses never reaches it."""

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
        """Give the browser the token to keep, and take it out of the address."""
        if not self._guard.is_right(token):
            return refuse(Objection(HTTPStatus.FORBIDDEN, "the token is wrong; open the address that smalti printed"))
        response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        response.set_cookie(self._guard.cookie, token, path="/", httponly=True, samesite="strict")
        return response


TOO_LARGE = Objection(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the request is larger than {MOST_BYTES} bytes; send less")


def refuse(objection: Objection, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response that says why."""
    # What was sent and not read must not be taken for the next request.
    close = {"Connection": "close"} if objection is TOO_LARGE else {}
    content = Refusal(explanation=objection.explanation).model_dump()
    return JSONResponse(content, objection.status, headers={**close, **(headers or {})})


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isdecimal() and len(text) < 20 else MOST_BYTES + 1


class _TooLargeError(Exception):
    pass


async def _read(receive: Receive) -> bytes:
    """Return the body; give up as soon as it is too large, whatever its length was said to be."""
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
    """Return what the application receives: the body that was read, then whatever comes."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAFE_HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers
