"""Processes that perform runs, one thread each, and tell of every answer."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from smalti.errors import SmaltiError
from smalti.experiments.runs import Run, RunSettings, perform

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Workers:
    """Some processes, started when they are first needed."""

    count: int
    _pool: ProcessPoolExecutor
    _answers: SimpleQueue[None]

    def start(self, run: RunSettings, pictured: bool, folder: Path) -> Future[Run]:
        """Have a run performed; in the folder is what its experiment keeps."""
        return self._pool.submit(_work, run, pictured, folder)

    def count_answers(self) -> int:
        """Return how many answers there were since this was last asked."""
        count = 0
        while not self._answers.empty():
            self._answers.get()
            count += 1
        return count


@contextlib.contextmanager
def hire(count: int) -> Iterator[Workers]:
    """Lend that many workers; should anything go wrong, they end at once."""
    context = multiprocessing.get_context("spawn")
    answers: SimpleQueue[None] = context.SimpleQueue()
    before = {name: os.environ.get(name) for name in THREAD_LIMITS}
    os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_prepare_worker, initargs=(answers,))
    try:
        yield Workers(count, pool, answers)
        pool.shutdown()
    except BrokenProcessPool:
        raise SmaltiError(
            "a worker was ended from outside, perhaps for want of memory: start again with fewer jobs, "
            "the runs that are finished are kept"
        ) from None
    except BaseException:
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_answers: SimpleQueue[None] | None = None


def _prepare_worker(answers: SimpleQueue[None]) -> None:
    """Let the parent alone handle an interrupt, and remember where to report answers."""
    global _answers  # noqa: PLW0603 - a worker process is one for life
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _answers = answers


def _work(run: RunSettings, pictured: bool, folder: Path) -> Run:
    assert _answers is not None
    return perform(run, pictured, lambda: _answers.put(None), folder)
