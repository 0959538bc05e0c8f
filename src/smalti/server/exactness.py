"""Requests taken at their word: a number is a number, not a text that looks like one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response


class ExactRoute(APIRoute):
    """A route whose body must be of the types that the message names; by itself pydantic would turn "7" into 7."""

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
