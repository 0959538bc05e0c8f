"""The time of a suggestion, from an answer to the next question: `smalti` against `paper`, in turns in one run.

    python benchmarks/suggestion.py [--frames 1000] [--answers 30]

The worlds are those of `smalti experiment`. `paper` is the paper's loop, which computes all pairs; `smalti` is that of
a build.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from smalti_lab.experiments.methods import Loop, Method
from smalti_lab.experiments.worlds import World, circle, raster

STRATEGIES = ("paper", "smalti")
FIRST_LEFT_OUT = 3
"""Answers, while kernels are loaded."""


def main() -> None:
    """Print a row for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1000, metavar="N", help="length of the sequences (1000)")
    parser.add_argument("--answers", type=int, default=30, metavar="A", help="answers of each strategy (30)")
    options = parser.parse_args()
    print("| world | `paper`, ms | `smalti`, ms | ratio |\n| --- | --- | --- | --- |")
    for world in (raster(options.frames), circle(options.frames)):
        paper, own = measure(world, options.answers)
        print(f"| {world.name} | {1e3 * paper:.0f} | {1e3 * own:.0f} | {own / paper:.1f} |", flush=True)


def measure(world: World, answers: int) -> list[float]:
    """Return the median seconds of an answer of each strategy."""
    agent = world.agent(1)
    states: dict[str, Loop] = {name: world.start(agent, world.external, Method(name)) for name in STRATEGIES}
    seconds: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for _ in range(FIRST_LEFT_OUT + answers):
        for name, state in states.items():
            best = state.best
            if best is None:
                raise SystemExit(f"{world.name}: {name} has nothing left to ask, give fewer answers")
            answer = agent.answer(best.pair)
            begin = time.perf_counter()
            states[name] = state.record(answer)
            _ = states[name].best
            seconds[name].append(time.perf_counter() - begin)
    return [float(np.median(seconds[name][FIRST_LEFT_OUT:])) for name in STRATEGIES]


if __name__ == "__main__":
    main()
