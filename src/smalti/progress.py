"""Show the progress of long work: an interface, silence, and bars in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from tqdm import tqdm

from smalti.errors import as_one_line


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


def progress_of(shown: Progress | bool) -> Progress:
    """Return what the user chose: bars, silence, or an object of their own."""
    if isinstance(shown, bool):
        return Bars() if shown else Silence()
    return shown


class Silence:
    """Shows nothing."""

    def stage(self, name: str, total: int) -> AbstractContextManager[Step]:
        """Begin a stage nobody sees."""
        return nullcontext(_ignore)

    def say(self, message: str) -> None:
        """Say nothing."""


def _ignore(done: int = 1) -> None:
    pass


class Bars:
    """Shows every stage as a bar on standard error."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Step]:
        """Show a bar of `total` parts."""
        # Whoever has closed standard error wants no bars.
        nowhere = sys.stderr is None
        with tqdm(
            total=total, desc=f"{name:<10}", dynamic_ncols=True, smoothing=0.1, mininterval=0.2, disable=nowhere
        ) as bar:

            def step(done: int = 1) -> None:
                bar.update(done)

            yield step

    def say(self, message: str) -> None:
        """Print a line that no bar overwrites."""
        if sys.stderr is not None:
            tqdm.write(f"smalti: {as_one_line(message)}", file=sys.stderr)
