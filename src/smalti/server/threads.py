"""The threads that do the work, and how they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 0.3
"""For what is waited for, when the program ends."""


class Worker:
    """One thread that does one thing after the other."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.pending: set[Future[Any]] = set()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have something done when all before it is."""
        future = self._pool.submit(work)
        self.pending.add(future)
        future.add_done_callback(self.pending.discard)
        return future

    def stop(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Threads:
    """The engine's thread; one each for opinions and pictures, which no answer waits for; one for long work."""

    def __init__(self) -> None:
        self.engine = Worker("engine")
        self.opinions = Worker("opinions")
        self.pictures = Worker("pictures")
        self.aside = Worker("aside")
        self.are_ending = False
        self._awaited: set[asyncio.Future[Any]] = set()

    async def wait_for(self, future: Future[T]) -> T:
        """Return what becomes of work; cancelled if the program ends before it does."""
        waiting = asyncio.wrap_future(future)
        self._awaited.add(waiting)
        try:
            return await waiting
        finally:
            self._awaited.discard(waiting)

    async def leave(self) -> None:
        """Take nothing more on, and wait no longer than a moment for what is being done."""
        self.are_ending = True
        if self._awaited:
            _, late = await asyncio.wait(set(self._awaited), timeout=GRACE_SECONDS)
            for waiting in late:
                waiting.cancel()

    def close(self, last: Callable[[], None], patience_seconds: float) -> bool:
        """End all work and do a last thing; return False where that takes too long, and a thread is still at it."""
        self.are_ending = True
        workers = (self.engine, self.opinions, self.pictures, self.aside)
        for worker in workers:
            worker.stop()
        if wait([future for worker in workers for future in list(worker.pending)], patience_seconds).not_done:
            return False
        ending = threading.Thread(target=last, name="closing", daemon=True)
        ending.start()
        ending.join(patience_seconds)
        return not ending.is_alive()
