"""What a suggestion costs: from an answer to the next question, `smalti` against `paper`, in turns in one run.

    python benchmarks/suggestion.py [--frames 1000] [--answers 30]

Worlds of `smalti experiment`. Once as there (every yes is believed, `paper` asks by the linear mosaic), once as in
`smalti build` (every yes is tested against the others, so that both ask by the refined one).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from smalti.belief import LARGEST_CHI2
from smalti.experiments.worlds import OUTLINE, World, circle, raster
from smalti.loop import ActiveLoop
from smalti.suggestion.strategies import strategy_named

STRATEGIES = ("paper", "smalti")
FIRST_LEFT_OUT = 3
"""Answers, while kernels are loaded."""


def main() -> None:
    """Print a row a world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1000, metavar="N", help="length of the sequences (1000)")
    parser.add_argument("--answers", type=int, default=30, metavar="A", help="answers of each strategy (30)")
    options = parser.parse_args()
    print("| world | yeses | `paper`, ms | `smalti`, ms | ratio |\n| --- | --- | --- | --- | --- |")
    for world in (raster(options.frames), circle(options.frames)):
        for tested in (False, True):
            paper, own = measure(world, tested, options.answers)
            words = "tested" if tested else "believed"
            print(f"| {world.name} | {words} | {1e3 * paper:.0f} | {1e3 * own:.0f} | {own / paper:.1f} |", flush=True)


def measure(world: World, tested: bool, answers: int) -> list[float]:
    """Return the median seconds of an answer of each strategy."""
    agent = world.agent(1)
    states = {
        name: ActiveLoop.start(
            world.frames,
            OUTLINE,
            world.chain(agent),
            external=world.external,
            strategy=strategy_named(name),
            largest_chi2=LARGEST_CHI2 if tested else None,
        )
        for name in STRATEGIES
    }
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
