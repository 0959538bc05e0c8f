"""Is what is promised for a yes kept: the predicted error after it, over what was promised before it.

    python benchmarks/promises.py [--frames 80] [--answers 12]

Synthetic walks and rasters. One row an answer: geometric mean of kept over promised with its standard error, after how
many answers the predicted error rose by more than 3 %, and the predicted over the true error.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from smalti.active_loop import ActiveLoop
from smalti.annotation.precompute import error_after_yes_px
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import OUTLINE, raster

WALKS, RASTERS = range(1, 9), range(1, 7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=80)
    parser.add_argument("--answers", type=int, default=12)
    options = parser.parse_args()
    worlds = [(wander(options.frames, seed), seed) for seed in WALKS]
    worlds += [(raster(options.frames), seed) for seed in RASTERS]
    courses = [follow(world, seed, options.answers) for world, seed in worlds]
    print("answer  kept/promised  rose  predicted/true")
    for n in range(options.answers):
        kept = np.array([course[n] for course in courses if len(course) > n])
        mean, error = np.mean(np.log(kept[:, 0])), np.std(np.log(kept[:, 0])) / np.sqrt(len(kept))
        rose = f"{int(np.sum(kept[:, 1] > 1.03))} of {len(kept)}"
        print(f"{n + 1:6}  {np.exp(mean):6.3f} ± {error:.3f}  {rose}  {np.exp(np.mean(np.log(kept[:, 2]))):.2f}")


def follow(world: Any, seed: int, answers: int) -> list[tuple[float, float, float]]:
    """Return, for every yes: error over promise, error over that before, predicted over true error."""
    agent, rows = world.agent(seed), []
    state = ActiveLoop.start(world.frames, OUTLINE, world.chain(agent), external=world.external)
    for _ in range(answers):
        if state.best is None:
            break
        before, promised_px = state, error_after_yes_px(state, state.best.pair)
        state = state.record(agent.answer(state.best.pair))
        if state.answers[-1].landmarks is not None:
            now_px = state.predicted_error_px
            rows.append((now_px / promised_px, now_px / before.predicted_error_px, now_px / world.relative_rmsd(state)))
    return rows


if __name__ == "__main__":
    main()
