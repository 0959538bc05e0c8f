"""The time from an answer to the next suggestion, against one dense Cholesky factorisation of size 6(N-1).

    python benchmarks/engine.py --json [--frames 1000,3000] [--profile] [--plot docs/images/growth.png]

Both are timed in the same run. The world is the paper's raster over a textured ground (`ground.py`). The loop is that
of `smalti build` and `smalti annotate`, with homographies unless --family says otherwise: variance components and
camera priors are estimated, and every yes is tested against the others before it is accepted. `answered` pairs are
given at evenly spaced places. Then answers are timed, yes and no in turns: the best-ranked pair with that true answer,
or one like those given. `seconds` is the median time from `record` to the new state's `best`. `stages` says where the
time of one more answer goes. The final refinement on all landmarks (`refine_on_landmarks`) is timed separately.

Each size has a process of its own, in which BLAS has one thread, as in the product while people answer. With more
threads, they wait for each other, ten times longer if other programs use the cores too. The engine's own kernels use
all cores. `peak_mb` is the largest memory of the process, the world included, before the dense matrix is made. The
dense time is the best of three factorisations by LAPACK on all cores (in two halves above 2,000 frames), null if the
matrix is too large. `load` is the machine's load at the beginning: if other programs use the cores too, a ratio says
little.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from threadpoolctl import threadpool_limits

from ground import Ground
from smalti.active_loop import ActiveLoop
from smalti.engine.estimate import refine_on_landmarks
from smalti.geometry.homographies import FAMILIES, PROJECTIVE, family_named
from smalti.records import Verdict
from smalti_lab.experiments.worlds import OUTLINE
from stages import Stopwatch, print_stages

SIZES = (1000, 3000, 10_000, 100_000)
GROWTH_SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
FEWEST_FRAMES = 60
SEED = 1
TIMED, TIMED_OF_MANY = 7, 5
"""Answers of each kind; the second number above 10,000 frames."""

RANKED = 200
"""Suggestions among which the answers of either kind are searched."""

LARGEST_DENSE = 3000
"""Frames. The dense matrix takes 2.6 GB here, 29 GB at 10,000."""

LARGEST_POTRF = 12_000
"""Size up to which LAPACK factorises in one call. On two threads OpenBLAS 0.3.30 crashes at 17,994."""

Result = TypeVar("Result")
Matrix = NDArray[np.float64]


class Line(TypedDict):
    """The printed line of one size and kind of answer."""

    frames: int
    family: str
    answered: int
    answer: str
    seconds: float
    yardstick_seconds: float | None
    ratio: float | None
    peak_mb: float
    timed: list[float]
    stages: dict[str, float]
    blas_threads: int
    load: float
    refinement_seconds: float
    start_seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description="Time one answer of the engine.")
    parser.add_argument(
        "--frames", type=_sizes, action="extend", metavar="N[,N]", help="sizes (default: those of issue 6)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--profile", action="store_true", help="print where the time of one answer goes")
    parser.add_argument("--blas-threads", type=int, default=1, metavar="N", help="of the engine (1)")
    parser.add_argument("--family", default=PROJECTIVE.name, choices=FAMILIES, metavar="NAME", help="of the maps")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the growth (default sizes: 100 to 100,000)")
    options = parser.parse_args()
    lines: list[Line] = []
    failed = False
    in_own_process(time_answers, FEWEST_FRAMES, 1, options.family)  # compiles, which takes memory too
    for frames in options.frames or (GROWTH_SIZES if options.plot else SIZES):
        try:
            measured = in_own_process(measure, frames, options.blas_threads, options.family)
        except BrokenProcessPool:
            print(
                f"{frames} frames: the process died, see the system's log: out of memory, or a crash", file=sys.stderr
            )
            failed = True
            continue
        lines += measured
        if options.profile:
            print_stages(frames, {line["answer"]: line["stages"] for line in measured})
        else:
            for line in measured:
                print(json.dumps(line) if options.json else _in_words(line), flush=True)
    if options.plot:
        from growth import draw_growth  # drawing must not count in the measured memory  # noqa: PLC0415

        draw_growth(lines).savefig(options.plot, dpi=130)
    return int(failed)


def in_own_process(measurement: Callable[[int, int, str], Result], frames: int, number: int, family: str) -> Result:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measurement, frames, number, family).result()


def measure(frames: int, blas_threads: int, family: str) -> list[Line]:
    """Return a line for yes and a line for no."""
    load, _, _ = os.getloadavg()
    with threadpool_limits(limits=blas_threads, user_api="blas"):
        time_answers(FEWEST_FRAMES, 1, family)  # loads compiled code
        timed, stages, refinement, start = time_answers(frames, TIMED if frames <= 10_000 else TIMED_OF_MANY, family)
    peak = peak_mb()
    yardstick = dense_cholesky_seconds(6 * (frames - 1)) if frames <= LARGEST_DENSE else None
    lines = []
    for verdict in (Verdict.YES, Verdict.NO):
        median = statistics.median(timed[verdict])
        lines.append(
            Line(
                frames=frames,
                family=family,
                answered=replayed_at(frames),
                answer=str(verdict),
                seconds=round(median, 4),
                yardstick_seconds=None if yardstick is None else round(yardstick, 4),
                ratio=None if yardstick is None else round(median / yardstick, 4),
                peak_mb=round(peak, 1),
                timed=[round(seconds, 4) for seconds in timed[verdict]],
                stages={name: round(seconds, 4) for name, seconds in stages[verdict].items()},
                blas_threads=blas_threads,
                load=round(load, 1),
                refinement_seconds=round(refinement, 4),
                start_seconds=round(start, 4),
            )
        )
    return lines


def replayed_at(frames: int) -> int:
    """Return the number of pairs answered before answers are timed: 30 at 1,000 frames, 300 at most."""
    return min(max(10 * round(frames / 300), 6), 300)


def time_answers(
    frames: int, repeats: int, family: str
) -> tuple[dict[Verdict, list[float]], dict[Verdict, dict[str, float]], float, float]:
    """Return seconds and stages by kind of answer, and seconds of the refinement and of the start."""
    ground = Ground.of(frames, SEED)
    rng = np.random.default_rng(SEED)
    chain, answers = ground.chain, ground.replayed_answers(replayed_at(frames))
    begin = time.perf_counter()
    state = ActiveLoop.start(
        frames, OUTLINE, chain, external=ground.world.external, family=family_named(family)
    ).replay(answers)
    _ = state.best
    start = time.perf_counter() - begin

    timed: dict[Verdict, list[float]] = {Verdict.YES: [], Verdict.NO: []}
    stages: dict[Verdict, dict[str, float]] = {}
    for repeat in range(repeats + 1):
        for verdict in (Verdict.YES, Verdict.NO):
            ranked = [found.pair for found in state.suggest(RANKED)]
            known = {*state.chain, *(earlier.pair for earlier in state.answers)}
            answer = ground.answer_of(verdict, ranked, known, rng)
            if repeat == repeats:
                with Stopwatch() as stopwatch:
                    state = state.record(answer)
                    _ = state.best
                stages[verdict] = stopwatch.seconds
            else:
                begin = time.perf_counter()
                state = state.record(answer)
                _ = state.best
                timed[verdict].append(time.perf_counter() - begin)
    begin = time.perf_counter()
    refine_on_landmarks(state.estimate)
    return timed, stages, time.perf_counter() - begin, start


def peak_mb() -> float:
    """Return the largest resident memory of this process so far. ru_maxrss would be inherited from the parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("/proc/self/status has no VmHWM: memory can be measured on Linux only")


def dense_cholesky_seconds(size: int) -> float:
    """Return the best time of LAPACK on all cores: of three runs, more within five seconds, fewer in a minute."""
    times: list[float] = []
    # If other programs use the cores too, threads wait for each other. More attempts find a quiet moment.
    while sum(times) < 5.0 or (len(times) < 3 and sum(times) < 60.0):
        half = size if size <= LARGEST_POTRF else size // 2
        first, second = (np.full((n, n), 0.5, order="F") for n in (half, size - half))
        below = np.full((size - half, half), 0.5, order="F")
        for square in (first, second):
            square[np.diag_indices(len(square))] = size
        begin = time.perf_counter()
        factorise_halves(first, below, second)
        times.append(time.perf_counter() - begin)
    return min(times)


def factorise_halves(first: Matrix, below: Matrix, second: Matrix) -> None:
    """Factorise [[first, belowᵀ], [below, second]] in place. `second` may be empty."""
    _, failed = lapack.dpotrf(first, lower=1, overwrite_a=1)
    if second.size and not failed:
        blas.dtrsm(1.0, first, below, side=1, lower=1, trans_a=1, overwrite_b=1)
        blas.dsyrk(-1.0, below, beta=1.0, c=second, lower=1, overwrite_c=1)
        _, failed = lapack.dpotrf(second, lower=1, overwrite_a=1)
    if failed:
        raise SystemExit("the yardstick's matrix is not positive definite")


def _sizes(text: str) -> list[int]:
    sizes = [int(part.replace("_", "")) for part in text.split(",")]
    if min(sizes) < FEWEST_FRAMES:
        raise argparse.ArgumentTypeError(f"{min(sizes)} frames are too few, give at least {FEWEST_FRAMES}")
    return sizes


def _in_words(line: Line) -> str:
    ratio = "no yardstick" if line["ratio"] is None else f"{line['ratio']:.3f} of the yardstick"
    return (
        f"{line['frames']:>7} frames, {line['answered']} answered, {line['answer']:>3}: "
        f"{line['seconds']:.4f} s, {ratio}, {line['peak_mb']:.0f} MB"
    )


if __name__ == "__main__":
    raise SystemExit(main())
