"""From an answer to the next suggestion, against one dense Cholesky factorisation of size 6(N-1) in the same run.

    python benchmarks/engine.py --frames 1000 --json

The world is the paper's raster scan, the strategy the paper's, the answers are noisy truth. `seconds` is the median
over several answers of the time to take an answer in and to suggest the next pair; the refinement, which only display
needs, is timed apart. `peak_mb` is the largest memory of the process before the yardstick is made.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time

import numpy as np
from scipy.linalg import lapack

from smalti.experiments.worlds import OUTLINE, raster
from smalti.loop import ActiveLoop

ANSWERED = 30
TIMED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description="Time one answer of the engine.")
    parser.add_argument("--frames", type=int, default=1000, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    result = measure(options.frames)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:>20}  {value}")


def measure(frames: int) -> dict[str, object]:
    world = raster(frames)
    agent = world.agent(seed=1)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(agent), external=world.external)
    seconds: list[float] = []
    refinement: list[float] = []
    suggestion = state.suggest()[0]
    while len(seconds) < TIMED:
        answer = agent.answer(suggestion.pair)
        begin = time.perf_counter()
        state = state.record(answer)
        suggestion = state.suggest()[0]
        elapsed = time.perf_counter() - begin
        if len(state.answers) > ANSWERED and answer.landmarks is not None:
            seconds.append(elapsed)
            begin = time.perf_counter()
            _ = state.refined
            refinement.append(time.perf_counter() - begin)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yardstick = dense_cholesky_seconds(6 * (frames - 1))
    median = statistics.median(seconds)
    return {
        "frames": frames,
        "answered": ANSWERED,
        "answer": "yes",
        "seconds": round(median, 4),
        "yardstick_seconds": round(yardstick, 4),
        "ratio": round(median / yardstick, 4),
        "peak_mb": round(peak_mb, 1),
        "refinement_seconds": round(statistics.median(refinement), 4),
    }


def dense_cholesky_seconds(size: int) -> float:
    """Return the best of three factorisations by LAPACK on all cores."""
    times = []
    for _ in range(3):
        matrix = np.full((size, size), 0.5, order="F")
        matrix[np.diag_indices(size)] = size
        begin = time.perf_counter()
        _, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
        times.append(time.perf_counter() - begin)
        if failed:
            raise SystemExit("the yardstick's matrix is not positive definite")
    return min(times)


if __name__ == "__main__":
    main()
