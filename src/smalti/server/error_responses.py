"""Errors as responses that say why and what to do; strict parsing of requests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from smalti.annotation.messages import Conflict, Refusal
from smalti.errors import SmaltiError
from smalti.server.dispatcher import ConflictError, NotReadyError
from smalti.server.security import SAFE_HEADERS, Objection, refuse

_OF_ROUTING = {
    HTTPStatus.NOT_FOUND: "there is nothing at this address",
    HTTPStatus.METHOD_NOT_ALLOWED: "this address does not accept this kind of request",
    HTTPStatus.BAD_REQUEST: "the request cannot be read as JSON",
}


def refusals(*more: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route, for the description of the interface."""
    always = (
        *(HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        *(HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
    )
    return {
        int(status): {
            "model": Conflict if status is HTTPStatus.CONFLICT else Refusal,
            "description": status.phrase,
        }
        for status in (*always, *more)
    }


def explain_errors(app: FastAPI) -> None:
    """Answer every error of the application in words."""
    app.add_exception_handler(SmaltiError, _explain)
    app.add_exception_handler(RequestValidationError, _explain_request)
    app.add_exception_handler(HTTPException, _explain_routing)
    app.add_exception_handler(Exception, _admit_fault)


def not_found(error: SmaltiError) -> HTTPException:
    """Return the error of something that is asked for by number and does not exist."""
    return HTTPException(HTTPStatus.NOT_FOUND, str(error))


async def _explain(request: Request, error: Exception) -> Response:
    if isinstance(error, ConflictError):
        return JSONResponse(error.conflict.model_dump(mode="json"), HTTPStatus.CONFLICT)
    if isinstance(error, NotReadyError):
        return refuse(Objection(HTTPStatus.SERVICE_UNAVAILABLE, str(error)), {"Retry-After": "1"})
    return refuse(Objection(HTTPStatus.BAD_REQUEST, str(error)))


async def _explain_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return refuse(Objection(HTTPStatus.UNPROCESSABLE_ENTITY, f"{place}: {first['msg']}"))


async def _explain_routing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = error.detail if error.detail != status.phrase else ""
    words = detail if status is HTTPStatus.NOT_FOUND and detail else _OF_ROUTING.get(status, error.detail)
    return refuse(Objection(status, words), error.headers)


async def _admit_fault(request: Request, error: Exception) -> Response:
    # This response does not pass the gate. The error itself goes to the server's log.
    objection = Objection(HTTPStatus.INTERNAL_SERVER_ERROR, "Smalti has an internal error; see the terminal")
    return refuse(objection, {**SAFE_HEADERS, "Cache-Control": "no-store"})


class ExactRoute(APIRoute):
    """A route whose body must have exactly the types of the message. By itself pydantic would turn "7" into 7."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler with the check before it."""
        handle = super().get_route_handler()
        kind: Any = None if self.body_field is None else self.body_field.field_info.annotation
        if kind is None:
            return handle
        assert isinstance(kind, type) and issubclass(kind, BaseModel), kind  # noqa: PT018

        async def handle_exactly(request: Request) -> Response:
            try:
                kind.model_validate_json(await request.body(), strict=True)
            except ValidationError as error:
                raise RequestValidationError(
                    [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False)]
                ) from None
            return await handle(request)

        return handle_exactly
