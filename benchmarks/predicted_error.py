"""The accuracy of the predicted error: now, and after the next 5, 10 and 20 answers.

    python benchmarks/predicted_error.py [--worlds raster:300,wander:600,circle:1000,caliterra:75] [--seeds 1,2,3]
        [--keep DIR]

Printed is the ratio of the real error to the predicted one, the median over seeds, by the number of answers at the time
of the prediction. Matches of real frames, which take long, are kept in the given folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from tqdm import tqdm

from claims import print_table
from smalti.active_loop import ActiveLoop
from smalti.loop_setup import StopRule
from smalti.suggestion.predicted_error import AHEAD
from smalti_lab.experiments.experiment import experiment_named
from smalti_lab.experiments.methods import SMALTI, Method

ASKED = (0, 5, 10, 20, 40)
"""Numbers of answers after which a prediction is made."""

Ratios = dict[tuple[int, int], float]
"""By the answers given, and how many more were predicted."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worlds", default="raster:300,wander:600,circle:1000", metavar="NAME:FRAMES,…")
    parser.add_argument("--seeds", default="1,2,3", metavar="S,S,…", help="one run a seed (1,2,3)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where matches are kept")
    options = parser.parse_args()
    lines = []
    for world in options.worlds.split(","):
        name, frames = world.split(":")
        runs = [
            predicted(name, int(frames), int(seed), options.keep)
            for seed in tqdm(options.seeds.split(","), desc=world, leave=False)
        ]
        for ahead in (0, *AHEAD):
            medians = [f"{np.median([run[asked, ahead] for run in runs]):.2f}" for asked in ASKED]
            lines.append([f"{name} {frames}", "now" if ahead == 0 else f"{ahead} answers on", *medians])
    print_table(["real error over predicted", "", *(f"after {asked}" for asked in ASKED)], lines)


def predicted(name: str, frames: int, seed: int, folder: Path | None) -> Ratios:
    """Return the ratio of the real error to the predicted one, of one run."""
    kind = experiment_named(name)
    experiment, method = kind.make(frames, seed, folder), Method(SMALTI, kind.usual_family(SMALTI))
    agent = experiment.agent(seed, chain_noise=1.0)
    budget = max(ASKED) + max(AHEAD)
    start = experiment.start(agent, experiment.external, method, StopRule(budget=budget))
    assert isinstance(start, ActiveLoop)
    finish = experiment.finish(start)
    errors: list[float] = []
    expected: Ratios = {}
    for state in (start, *start.run(agent)):
        asked = len(state.answers)
        errors.append(experiment.relative_rmsd(finish(state)))
        if asked in ASKED:
            expected |= {
                (asked, ahead): px for ahead, px in {0: state.prediction.error_px, **state.prediction.ahead_px}.items()
            }
    return {key: errors[min(sum(key), len(errors) - 1)] / px for key, px in expected.items()}


if __name__ == "__main__":
    main()
