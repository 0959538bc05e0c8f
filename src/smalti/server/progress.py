"""Long work shown in the page, and beside it wherever else it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from smalti.annotation import messages
from smalti.building.progress import Progress, Step


class PageProgress:
    """Passes every stage on as a message.

    `show` may raise KeyboardInterrupt, which ends the work as Ctrl-C would: between two steps.
    """

    def __init__(self, show: Callable[[messages.Progress], None], beside: Progress) -> None:
        self._show = show
        self._beside = beside

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Step]:
        """Show a stage of `total` parts."""
        with self._beside.stage(name, total) as step_beside:
            finished = 0

            def step(done: int = 1) -> None:
                nonlocal finished
                finished += done
                step_beside(done)
                self._show(messages.Progress(name=name, done=finished, total=total))

            self._show(messages.Progress(name=name, done=0, total=total))
            yield step

    def say(self, message: str) -> None:
        """Tell it beside the page."""
        self._beside.say(message)
