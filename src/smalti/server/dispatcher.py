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
"""For work, and again for the session, to end when the program does."""


class NotReadyError(SmaltiError):
    """There is no session: it is being prepared, or could not be, or the program ends."""


class ConflictError(SmaltiError):
    """Somebody else was faster; carries what they said."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.explanation)
        self.conflict = conflict


class Dispatcher:
    """Takes what is asked to the thread that does it, and tells every open page what has changed."""

    def __init__(self, name: str, source: str, queue: Queue, *, edition: str, beside: Progress | None = None) -> None:
        """`edition` names this run of the program; `beside` shows progress outside the page too."""
        self.edition = edition
        self.bulletin = Bulletin(Notice(revision=0, stage=Stage.PREPARING, progress=None))
        self._waiting = State(revision=0, stage=Stage.PREPARING, name=name, source=source, queue=queue)
        self._session: Session | None = None
        self._stage = Stage.PREPARING
        self._progress: messages.Progress | None = None
        self._failure: str | None = None
        self._shown = PageProgress(self._advance, Silence() if beside is None else beside)
        self._threads = Threads()
        self.has_finished = False  # whether a mosaic was made

    @property
    def is_open(self) -> bool:
        """Whether there is a session to ask."""
        return self._session is not None

    @property
    def folder(self) -> Path | None:
        """The folder of the project, None where there is no session."""
        return None if self._session is None else self._session.project.folder

    def open(self, opening: Opening) -> Future[None]:
        """Begin to open the session, which takes long; what goes wrong is shown, and is the future's.

        `opening` is given where to show its progress, and what to call whenever the session has changed.
        """
        return self._threads.engine.submit(lambda: self._open(opening))

    async def state(self) -> State:
        """Return the state, also where there is no session yet."""
        if self._session is None:
            return self.tell(self._waiting)
        return self.tell(await self.ask(lambda session: session.state()))

    def tell(self, state: State) -> State:
        """Return the session's state with what the program is doing just now."""
        progress = state.progress if self._progress is None else self._progress
        return state.model_copy(update={"stage": self._stage, "progress": progress, "failure": self._failure})

    async def ask(self, do: Callable[[Session], T]) -> T:
        """Have something done by the engine, where one thing is done after the other."""
        session = self._ready()
        return await self._await(self._threads.engine.submit(lambda: do(session)))

    async def change(self, do: Callable[[Session], T]) -> T:
        """Have something changed, unless somebody else changed it first."""

        def attempt(session: Session) -> T:
            try:
                return do(session)
            except ChangedMeanwhileError as error:
                conflict = session.conflict(error)
                raise ConflictError(conflict.model_copy(update={"state": self.tell(conflict.state)})) from None

        return await self.ask(attempt)

    async def consult(self, do: Callable[[Session], T]) -> T:
        """Have an opinion formed, which an answer need not wait for."""
        session = self._ready()
        return await self._await(self._threads.opinions.submit(lambda: do(session)))

    async def fetch(self, do: Callable[[Session], T]) -> T:
        """Have a picture made, without waiting for the engine."""
        session = self._ready()
        return await self._await(self._threads.pictures.submit(lambda: do(session)))

    async def export(self, do: Callable[[Session], T]) -> T:
        """Have a file made."""
        session = self._ready()
        return await self._await(self._threads.aside.submit(lambda: do(session)))

    async def finish(self) -> State:
        """Begin to finish and render the mosaic, unless that is being done."""
        session = self._ready()
        if self._stage is not Stage.FINISHING:
            self._enter(Stage.FINISHING)
            self._threads.aside.submit(lambda: self._finish(session))
        return await self.state()

    async def leave(self) -> None:
        """Send the pages away, and after a moment whoever still waits for something."""
        self.bulletin.close()
        await self._threads.leave()

    def close(self, patience_seconds: float = PATIENCE_SECONDS) -> bool:
        """End the work and let go of the session; say whether both ended in time."""
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
        revision, prediction = (0, None) if session is None else (session.revision, session.prediction)
        notice = Notice(revision=revision, stage=self._stage, progress=self._progress, prediction=prediction)
        self.bulletin.post(notice)


ENDING = "the program is ending; start it again"


def _describe(error: Exception) -> str:
    if isinstance(error, SmaltiError):
        return str(error)
    return f"something is wrong in Smalti itself: {type(error).__name__}: {error}"


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
