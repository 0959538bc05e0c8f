"""Many runs in worker processes. They are stored as they finish, so that an interrupted study can go on."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from smalti.errors import SmaltiError, UsageError
from smalti_lab.experiments.experiment import experiment_named
from smalti_lab.experiments.methods import SMALTI, Method
from smalti_lab.experiments.run_store import UNFINISHED, keep, load, make_folder
from smalti_lab.experiments.runs import Run, RunSettings, appearance_named, perform

MOST_FRAMES, MOST_QUERIES = 100_000, 10**9
"""More would not fit into memory, or never end."""


@dataclass(frozen=True, slots=True)
class StudySettings:
    """An experiment, and the strategies and seeds to run it with."""

    experiment: str
    frames: int
    queries: int = 50
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    strategies: tuple[str, ...] = ("paper", "external-only", "position-only", "elibol", "sawhney")
    family: str | None = None  # of the maps; None: the default of the experiment and the method
    appearance: str = "own"
    chain_noise: float = 1.0
    batch: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.chain_noise < math.inf:
            raise UsageError(f"--chain-noise {self.chain_noise}: give a positive number")
        if self.frames > MOST_FRAMES:
            raise UsageError(f"--frames {self.frames}: give at most {MOST_FRAMES}")
        experiment_named(self.experiment).check(self.frames, self.chain_noise)
        appearance_named(self.appearance)
        for name in self.strategies:
            Method(name, self.family_of(name))
        for what, values in (("strategies", self.strategies), ("seeds", self.seeds)):
            if not values:
                raise UsageError(f"no {what} given: name at least one")
            if len(set(values)) < len(values):
                raise UsageError(f"{what} are given twice: {', '.join(map(str, values))}")
        if self.queries < 1:
            raise UsageError(f"{self.queries} queries are too few, give at least 1")
        if self.queries > MOST_QUERIES:
            raise UsageError(f"--queries {self.queries}: give at most {MOST_QUERIES}")
        if min(self.seeds) < 0:
            raise UsageError(f"seed {min(self.seeds)}: seeds are not negative")
        if max(self.seeds) >= 2**63:
            raise UsageError(f"seed {max(self.seeds)}: give a number below 2^63")
        if self.batch < 1:
            raise UsageError(f"a batch of {self.batch} questions: give at least 1")

    @property
    def pictured(self) -> RunSettings:
        """The run with more figures: the paper's strategy if present, at the first seed."""
        strategy = "paper" if "paper" in self.strategies else self.strategies[0]
        return self._run(strategy, self.seeds[0])

    @property
    def runs(self) -> list[RunSettings]:
        """All runs, by strategy and seed."""
        return [self._run(strategy, seed) for strategy in self.strategies for seed in self.seeds]

    @property
    def has_pictures(self) -> bool:
        """Tell whether there are matrices of all pairs to show. Only the paper's method has them."""
        return self.pictured.strategy != SMALTI

    def family_of(self, strategy: str) -> str:
        """Return the family of maps of a method."""
        return self.family or experiment_named(self.experiment).usual_family(strategy)

    def _run(self, strategy: str, seed: int) -> RunSettings:
        return RunSettings(
            self.experiment,
            self.frames,
            self.queries,
            self.family_of(strategy),
            strategy,
            seed,
            self.appearance,
            self.chain_noise,
            self.batch,
        )


def conduct(settings: StudySettings, folder: Path, *, workers: int, on_progress: Callable[[int], object]) -> list[Run]:
    """Perform all runs of one study; see `conduct_all`."""
    return conduct_all({folder: settings}, workers=workers, on_progress=on_progress)[folder]


def conduct_all(
    studies: Mapping[Path, StudySettings], *, workers: int, on_progress: Callable[[int], object]
) -> dict[Path, list[Run]]:
    """Perform all runs of several studies, given by their folders, and return them in order.

    One pool of `workers` processes performs all of them. Every finished run is stored below its study's folder at once.
    Runs that an interrupted study left there are not repeated. Each worker uses one thread, so that results do not
    depend on the number of workers. `on_progress` is called after every answer.
    """
    done: dict[_Task, Run] = {}
    tasks: list[_Task] = []
    for folder, settings in studies.items():
        make_folder(folder / UNFINISHED)
        pictured = settings.pictured if settings.has_pictures else None
        tasks += [_Task(folder, run, run == pictured) for run in settings.runs]
    for task in tasks:
        found = load(task.folder, task.run, task.pictured)
        if found is not None:
            done[task] = found
            on_progress(task.run.queries)
    for folder, settings in studies.items():
        if any(task.folder == folder and task not in done for task in tasks):
            # Made once here, so that the workers find the slow results stored.
            experiment_named(settings.experiment).make(settings.frames, settings.seeds[0], folder)
    with worker_pool(workers) as hired:
        _perform(tasks, done, hired, on_progress)
    return {folder: [done[task] for task in tasks if task.folder == folder] for folder in studies}


@dataclass(frozen=True, slots=True)
class _Task:
    """A run to perform, and the folder of its study."""

    folder: Path
    run: RunSettings
    pictured: bool


def _perform(
    tasks: Sequence[_Task], done: dict[_Task, Run], workers: Workers, on_progress: Callable[[int], object]
) -> None:
    """Add the missing runs to those that are done."""
    missing = [task for task in tasks if task not in done]
    running: dict[Future[Run], _Task] = {}
    while missing or running:
        while missing and len(running) < workers.count:
            # The longest run first, so that no long run is left alone at the end.
            task = max(missing, key=lambda task: expected_seconds(task.run, done.values()))
            missing.remove(task)
            running[workers.start(task.run, task.pictured, task.folder)] = task
        finished, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        if answered := workers.count_answers():
            on_progress(answered)
        for future in finished:
            task, result = running.pop(future), future.result()
            keep(task.folder, result)
            done[task] = result
            # A strategy without further questions ends before its queries are used up.
            if unused := task.run.queries - result.rows[-1].query:
                on_progress(unused)


def expected_seconds(run: RunSettings, finished: Iterable[Run]) -> float:
    """Return the expected time of a run, from runs that differ in the seed only; inf if there is none yet."""
    kind = replace(run, seed=0)
    same_kind = [other for other in finished if replace(other.settings, seed=0) == kind]
    if not same_kind:
        return math.inf
    return sum(row.seconds for other in same_kind for row in other.rows) / len(same_kind)


THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Workers:
    """Worker processes, started when they are first needed."""

    count: int
    _pool: ProcessPoolExecutor
    _answers: SimpleQueue[None]

    def start(self, run: RunSettings, pictured: bool, folder: Path) -> Future[Run]:
        """Start a run. `folder` holds what its experiment stores."""
        return self._pool.submit(_work, run, pictured, folder)

    def count_answers(self) -> int:
        """Return the number of answers since the last call."""
        count = 0
        while not self._answers.empty():
            self._answers.get()
            count += 1
        return count


@contextlib.contextmanager
def worker_pool(count: int) -> Iterator[Workers]:
    """Lend this many workers. They end at once if anything goes wrong."""
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
            "another program ended a worker, perhaps because memory ran out: start again with fewer jobs, "
            "finished runs are kept"
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
    """Leave interrupts to the parent, and remember where to report answers."""
    global _answers  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _answers = answers


def _work(run: RunSettings, pictured: bool, folder: Path) -> Run:
    assert _answers is not None
    return perform(run, pictured, lambda: _answers.put(None), folder)
