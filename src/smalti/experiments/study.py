"""Many runs side by side, kept as they finish, so that an interrupted study goes on where it stopped."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import numpy as np

from smalti import __version__
from smalti.errors import OutputError, UsageError
from smalti.experiments.runs import Row, Run, RunSettings, perform
from smalti.experiments.worlds import world_named
from smalti.geometry.family import family_named
from smalti.suggestion.strategies import strategy_named

UNFINISHED = ".unfinished"
"""The folder, in that of the study, that holds finished runs until all are."""

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class StudySettings:
    """An experiment, and the strategies and seeds to run it with."""

    experiment: str
    frames: int = 1000
    queries: int = 50
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    strategies: tuple[str, ...] = ("paper", "external-only", "position-only", "elibol", "sawhney")
    family: str = "affine"

    def __post_init__(self) -> None:
        world_named(self.experiment, self.frames)
        family_named(self.family)
        for name in self.strategies:
            strategy_named(name)
        for what, values in (("strategies", self.strategies), ("seeds", self.seeds)):
            if not values:
                raise UsageError(f"no {what} given: name at least one")
            if len(set(values)) < len(values):
                raise UsageError(f"{what} are given twice: {', '.join(map(str, values))}")
        if self.queries < 1:
            raise UsageError(f"{self.queries} queries are too few, give at least 1")
        if min(self.seeds) < 0:
            raise UsageError(f"seed {min(self.seeds)}: seeds are not negative")

    @property
    def pictured(self) -> RunSettings:
        """The run whose matrices are shown: the paper's strategy if there, at the first seed."""
        strategy = "paper" if "paper" in self.strategies else self.strategies[0]
        return self._run(strategy, self.seeds[0])

    @property
    def runs(self) -> list[RunSettings]:
        """All runs, by strategy and seed."""
        return [self._run(strategy, seed) for strategy in self.strategies for seed in self.seeds]

    def _run(self, strategy: str, seed: int) -> RunSettings:
        return RunSettings(self.experiment, self.frames, self.queries, self.family, strategy, seed)


def conduct(settings: StudySettings, folder: Path, *, workers: int, on_progress: Callable[[int], object]) -> list[Run]:
    """Perform all runs in `workers` processes and return them in their order.

    Every finished run is kept below `folder` at once; runs that an interrupted study left there are not repeated.
    Each worker uses one thread, so that results do not depend on how many there are. `on_progress` is told of every
    answer.
    """
    kept = make_folder(folder / UNFINISHED)
    done: dict[RunSettings, Run] = {}
    for run in settings.runs:
        found = _load(kept, run, run == settings.pictured)
        if found is not None:
            done[run] = found
            on_progress(settings.queries)
    missing = [run for run in settings.runs if run not in done]
    with _workers(workers) as (pool, answers):
        waiting: set[Future[Run]] = {pool.submit(_work, run, run == settings.pictured) for run in missing}
        while waiting:
            finished, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            while not answers.empty():
                answers.get()
                on_progress(1)
            for future in finished:
                result = future.result()
                _keep(kept, result)
                done[result.settings] = result
                # A strategy that has nothing left to ask ends before its queries are used up.
                if result.rows[-1].query < settings.queries:
                    on_progress(settings.queries - result.rows[-1].query)
    return [done[run] for run in settings.runs]


def make_folder(folder: Path) -> Path:
    """Make a folder to write to, or say in one line why it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}), choose another folder") from None
    return folder


@contextlib.contextmanager
def _workers(count: int) -> Iterator[tuple[ProcessPoolExecutor, SimpleQueue[None]]]:
    context = multiprocessing.get_context("spawn")
    answers: SimpleQueue[None] = context.SimpleQueue()
    before = {name: os.environ.get(name) for name in THREAD_LIMITS}
    os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_prepare_worker, initargs=(answers,))
    try:
        yield pool, answers
        pool.shutdown()
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


def _work(run: RunSettings, pictured: bool) -> Run:
    assert _answers is not None
    return perform(run, pictured, lambda: _answers.put(None))


def _path(kept: Path, run: RunSettings) -> Path:
    parts = (run.experiment, run.frames, run.queries, run.family, run.strategy, run.seed, __version__)
    return kept / ("_".join(map(str, parts)) + ".npz")


def _keep(kept: Path, run: Run) -> None:
    path = _path(kept, run.settings)
    words = {
        "rows": [asdict(row) for row in run.rows],
        "stopped": run.stopped,
        "smallest_area": run.smallest_area,
    }
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez(
            file,
            allow_pickle=False,
            words=np.array(json.dumps(words)),
            initial_centres=run.initial_centres,
            final_centres=run.final_centres,
            **{f"picture {name}": picture for name, picture in run.pictures.items()},
        )
    partial.replace(path)


def _load(kept: Path, run: RunSettings, pictured: bool) -> Run | None:
    """Return a run that was kept, unless its pictures are wanted and it has none."""
    path = _path(kept, run)
    if not path.exists():
        return None
    with np.load(path) as arrays:
        words = json.loads(str(arrays["words"]))
        pictures = {name.removeprefix("picture "): arrays[name] for name in arrays.files if name.startswith("picture ")}
        if pictured and not pictures:
            return None
        return Run(
            settings=run,
            rows=[Row(**row) for row in words["rows"]],
            stopped=words["stopped"],
            smallest_area=words["smallest_area"],
            initial_centres=arrays["initial_centres"],
            final_centres=arrays["final_centres"],
            pictures=pictures,
        )
