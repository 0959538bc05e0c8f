"""How long work shows itself: one interface, and silence."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Step(Protocol):
    """Called when a part of a stage is done."""

    def __call__(self, done: int = 1) -> None:
        """Count `done` more."""
        ...


class Progress(Protocol):
    """Shows stages as they go by."""

    def stage(self, name: str, total: int) -> AbstractContextManager[Step]:
        """Begin a stage of `total` parts; leaving the context ends it."""
        ...

    def say(self, message: str) -> None:
        """Tell the user something worth knowing."""
        ...


class Silence:
    """Shows nothing."""

    def stage(self, name: str, total: int) -> AbstractContextManager[Step]:
        """Begin a stage nobody sees."""
        return nullcontext(_ignore)

    def say(self, message: str) -> None:
        """Say nothing."""


def _ignore(done: int = 1) -> None:
    pass
