"""Which page asks which question now, so that two people are not asked the same one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from smalti.active_loop import ActiveLoop
from smalti.annotation.session_state import AnyLoop
from smalti.records import Pair

LEASE_SECONDS = 600.0
"""A question that is neither answered nor left for so long may be asked elsewhere."""


class Leases:
    """The question of every page, and when it was asked. A page has one question at a time. Any thread may call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._taken: dict[str, tuple[Pair, float]] = {}

    def free(self, loop: AnyLoop, page: str) -> Pair | None:
        """Return the best question that no other page asks; None if there is none."""
        taken = self._of_others(page)
        if not taken or loop.best is None:
            return None if loop.best is None else loop.best.pair
        # The next best of one place would ask two people the same thing.
        count = len(taken) + 1
        found = loop.suggest_apart(count) if isinstance(loop, ActiveLoop) else loop.suggest(count)
        return next((suggestion.pair for suggestion in found if suggestion.pair not in taken), None)

    def take(self, page: str, pair: Pair | None) -> None:
        """Note the question of a page. A caller without a page, such as a program, takes none."""
        with self._lock:
            self._taken.pop(page, None)
            if page and pair is not None:
                self._taken[page] = pair, self._clock()

    def _of_others(self, page: str) -> set[Pair]:
        since = self._clock() - LEASE_SECONDS
        with self._lock:
            self._taken = {other: taken for other, taken in self._taken.items() if taken[1] >= since}
            return {pair for other, (pair, _) in self._taken.items() if other != page}
