"""What all requests share: the session once it is open, and the threads that work for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from smalti.annotation import messages
from smalti.annotation.messages import Conflict, Notice, Queue, Stage, State
from smalti.errors import ChangedMeanwhileError, SmaltiError
from smalti.progress import Progress, Silence
from smalti.server.events import Bulletin, PageProgress

if TYPE_CHECKING:
    from concurrent.futures import Future

    from smalti.annotation.session import Session

    Opening = Callable[[Progress, Callable[[], None]], Session]

T = TypeVar("T")
logger = logging.getLogger("uvicorn.error")

PATIENCE_SECONDS = 0.4
"""Time for work to end when the program ends, and again for the session."""


class NotReadyError(SmaltiError):
    """There is no session: it is being prepared, its preparation failed, or the program ends."""


class ConflictError(SmaltiError):
    """Somebody else was faster. It carries their change."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.explanation)
        self.conflict = conflict


class Dispatcher:
    """Passes requests to the right thread, and tells every open page what has changed."""

    def __init__(
        self, name: str, source: str, queue: Queue, *, edition: str, other_progress: Progress | None = None
    ) -> None:
        """`edition` names this run of the program. `other_progress` shows progress outside the page too."""
        self.edition = edition
        self.bulletin = Bulletin(Notice(revision=0, stage=Stage.PREPARING, progress=None))
        self._waiting = State(revision=0, stage=Stage.PREPARING, name=name, source=source, queue=queue)
        self._session: Session | None = None
        self._stage = Stage.PREPARING
        self._progress: messages.Progress | None = None
        self._failure: str | None = None
        self._shown = PageProgress(self._advance, Silence() if other_progress is None else other_progress)
        self._threads = Threads()
        self.has_finished = False  # whether a mosaic was made

    @property
    def is_open(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    @property
    def folder(self) -> Path | None:
        """The folder of the project; None without a session."""
        return None if self._session is None else self._session.project.folder

    def open(self, opening: Opening) -> Future[None]:
        """Begin to open the session, which takes long. An error is shown, and is in the future.

        `opening` is called with the progress to use, and with a function to call whenever the session has changed.
        """
        return self._threads.engine.submit(lambda: self._open(opening))

    async def state(self) -> State:
        """Return the state, with or without a session."""
        if self._session is None:
            return self.with_stage(self._waiting)
        return self.with_stage(await self.ask(lambda session: session.state()))

    def with_stage(self, state: State) -> State:
        """Return the session's state with the current stage of the program."""
        progress = state.progress if self._progress is None else self._progress
        return state.model_copy(update={"stage": self._stage, "progress": progress, "failure": self._failure})

    async def ask(self, do: Callable[[Session], T]) -> T:
        """Run something in the engine's thread, one thing after the other."""
        session = self._ready()
        return await self._await(self._threads.engine.submit(lambda: do(session)))

    async def change(self, do: Callable[[Session], T]) -> T:
        """Run a change, unless somebody else changed the same first."""

        def attempt(session: Session) -> T:
            try:
                return do(session)
            except ChangedMeanwhileError as error:
                conflict = session.conflict(error)
                raise ConflictError(conflict.model_copy(update={"state": self.with_stage(conflict.state)})) from None

        return await self.ask(attempt)

    async def consult(self, do: Callable[[Session], T]) -> T:
        """Ask the matcher, in a thread that no answer waits for."""
        session = self._ready()
        return await self._await(self._threads.opinions.submit(lambda: do(session)))

    async def fetch(self, do: Callable[[Session], T]) -> T:
        """Make a picture, without waiting for the engine."""
        session = self._ready()
        return await self._await(self._threads.pictures.submit(lambda: do(session)))

    async def export(self, do: Callable[[Session], T]) -> T:
        """Make a file."""
        session = self._ready()
        return await self._await(self._threads.background.submit(lambda: do(session)))

    async def finish(self) -> State:
        """Begin to finish and render the mosaic, unless this is already running."""
        session = self._ready()
        if self._stage is not Stage.FINISHING:
            self._enter(Stage.FINISHING)
            self._threads.background.submit(lambda: self._finish(session))
        return await self.state()

    def release(self, page: str) -> None:
        """Let others have the question of a page that is closed."""
        if self._session is not None:
            self._session.leave(page)

    async def leave(self) -> None:
        """Disconnect the pages, and after a short time all waiting requests."""
        self.bulletin.close()
        await self._threads.leave()

    def close(self, patience_seconds: float = PATIENCE_SECONDS) -> bool:
        """End the work and close the session. Return whether both ended in time."""
        self.bulletin.close()
        return self._threads.close(lambda: None if self._session is None else self._session.close(), patience_seconds)

    def _open(self, opening: Opening) -> None:
        try:
            self._session = opening(self._shown, self._post_anew)
        except KeyboardInterrupt:
            return  # the program ends
        except Exception as error:
            self._enter(Stage.FAILED, failure=_describe(error))
            raise
        self._enter(Stage.ASKING)

    def _finish(self, session: Session) -> None:
        failure = None
        try:
            session.finish(self._shown)
        except KeyboardInterrupt:
            return  # the program ends
        except Exception as error:
            failure = _describe(error)
            if not isinstance(error, SmaltiError):
                logger.exception("the mosaic could not be finished")
        self._enter(Stage.ASKING, failure=failure)
        self.has_finished = failure is None

    async def _await(self, future: Future[T]) -> T:
        try:
            return await self._threads.wait_for(future)
        except asyncio.CancelledError:
            if self._threads.are_ending:
                raise NotReadyError(ENDING) from None
            raise

    def _ready(self) -> Session:
        if self._threads.are_ending:
            raise NotReadyError(ENDING)
        if self._session is None:
            raise NotReadyError(self._failure or "the sequence is being prepared; wait until it is done")
        return self._session

    def _enter(self, stage: Stage, failure: str | None = None) -> None:
        self._stage, self._progress, self._failure = stage, None, failure
        self._post_anew()

    def _advance(self, progress: messages.Progress) -> None:
        if self._threads.are_ending:
            raise KeyboardInterrupt
        self._progress = progress
        self._post_anew()

    def _post_anew(self) -> None:
        session = self._session
        notice = Notice(revision=0, stage=self._stage, progress=self._progress)
        if session is not None:
            now = {"revision": session.revision, "prediction": session.prediction, "working": session.is_working}
            notice = notice.model_copy(update=now)
        self.bulletin.post(notice)


ENDING = "the program is ending; start it again"


def _describe(error: Exception) -> str:
    if isinstance(error, SmaltiError):
        return str(error)
    return f"Smalti has an internal error: {type(error).__name__}: {error}"


GRACE_SECONDS = 0.3
"""Time for waiting requests when the program ends."""


class Worker:
    """One thread that does one thing after the other."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.pending: set[Future[Any]] = set()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run something after everything submitted before it."""
        future = self._pool.submit(work)
        self.pending.add(future)
        future.add_done_callback(self.pending.discard)
        return future

    def stop(self) -> None:
        """Start nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Threads:
    """The engine's thread; one each for matching and pictures, which no answer waits for; one for long work."""

    def __init__(self) -> None:
        self.engine = Worker("engine")
        self.opinions = Worker("opinions")
        self.pictures = Worker("pictures")
        self.background = Worker("background")
        self.are_ending = False
        self._awaited: set[asyncio.Future[Any]] = set()

    async def wait_for(self, future: Future[T]) -> T:
        """Return the result of work. It is cancelled if the program ends first."""
        waiting = asyncio.wrap_future(future)
        self._awaited.add(waiting)
        try:
            return await waiting
        finally:
            self._awaited.discard(waiting)

    async def leave(self) -> None:
        """Accept nothing more, and wait a short time for the running work."""
        self.are_ending = True
        if self._awaited:
            _, late = await asyncio.wait(set(self._awaited), timeout=GRACE_SECONDS)
            for waiting in late:
                waiting.cancel()

    def close(self, last: Callable[[], None], patience_seconds: float) -> bool:
        """End all work and do a last thing. Return False if that takes too long and a thread is still running."""
        self.are_ending = True
        workers = (self.engine, self.opinions, self.pictures, self.background)
        for worker in workers:
            worker.stop()
        if wait([future for worker in workers for future in list(worker.pending)], patience_seconds).not_done:
            return False
        ending = threading.Thread(target=last, name="closing", daemon=True)
        ending.start()
        ending.join(patience_seconds)
        return not ending.is_alive()
