"""Tell every open page what has changed, including progress, as server-sent events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from smalti.annotation import messages
from smalti.annotation.messages import Notice
from smalti.progress import Progress, Step

KEEP_ALIVE_SECONDS = 15.0
PROGRESS_SECONDS = 0.2
"""Time between two notices that differ only in progress."""

RETRY_MILLISECONDS = 1000
"""Time after which a page that lost the connection asks again."""


class Bulletin:
    """The latest notice, and the pages that wait for the next. Any thread may post.

    A page that is slower than the changes misses some, but never the last one.
    """

    def __init__(self, first: Notice) -> None:
        self._latest = first
        self._closed = False
        self._lock = threading.Lock()
        self._readers: set[_Reader] = set()

    @property
    def readers(self) -> int:
        """The number of open pages."""
        return len(self._readers)

    def post(self, notice: Notice) -> None:
        """Post a notice. If its text has not changed, something else has."""
        with self._lock:
            self._latest = notice
            self._wake()

    def close(self) -> None:
        """Disconnect all readers. They still get what was posted before."""
        with self._lock:
            self._closed = True
            self._wake()

    async def read(self) -> AsyncIterator[Notice | None]:
        """Yield the latest notice now and after every change, and None if nothing changes for a while."""
        reader = _Reader()
        with self._lock:
            self._readers.add(reader)
        shown: Notice | None = None
        try:
            while True:
                reader.changed.clear()
                closed, notice = self._closed, self._latest
                if notice is not shown:
                    shown = notice
                    yield notice
                if closed:
                    return
                if not await reader.wait(KEEP_ALIVE_SECONDS):
                    yield None
                elif not self._closed and _is_same_stage(notice, self._latest):
                    await asyncio.sleep(PROGRESS_SECONDS)
        finally:
            with self._lock:
                self._readers.discard(reader)

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()


async def write_events(bulletin: Bulletin) -> AsyncIterator[str]:
    """Yield the notices as the text of server-sent events."""
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    async for notice in bulletin.read():
        yield ": nothing new\n\n" if notice is None else f"data: {notice.model_dump_json()}\n\n"


class _Reader:
    """A page's event in the event loop, which any thread may set."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self.changed.set)

    async def wait(self, seconds: float) -> bool:
        """Return whether something changed within so many seconds."""
        try:
            await asyncio.wait_for(self.changed.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _is_same_stage(one: Notice, other: Notice) -> bool:
    """Return whether two notices differ only in progress."""
    return (one.revision, one.stage) == (other.revision, other.stage) and one.progress != other.progress


class PageProgress:
    """Passes every stage on as a message.

    `show` may raise KeyboardInterrupt, which ends the work between two steps, as Ctrl-C would.
    """

    def __init__(self, show: Callable[[messages.Progress], None], other_progress: Progress) -> None:
        self._show = show
        self._other_progress = other_progress

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Step]:
        """Show a stage of `total` parts."""
        with self._other_progress.stage(name, total) as step_beside:
            finished = 0

            def step(done: int = 1) -> None:
                nonlocal finished
                finished += done
                step_beside(done)
                self._show(messages.Progress(name=name, done=finished, total=total))

            self._show(messages.Progress(name=name, done=0, total=total))
            yield step

    def say(self, message: str) -> None:
        """Show it outside the page."""
        self._other_progress.say(message)
