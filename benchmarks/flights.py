"""`smalti` against `paper` on the real sets that have landmarks to judge by, with the real matcher.

    python benchmarks/flights.py [--sets brighton,copr,…] [--queries 60] [--seeds 1,2,3]

As `smalti experiment caliterra`, on other sets of SMALTI_DATA: all pairs are matched once, a seed resamples the
landmarks of every pair and learns its own words. The error to reach is 1.5 times that of the paper's last answer.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from claims import print_table
from smalti.experiments.caliterra import Caliterra
from smalti.experiments.effort import GOOD_ENOUGH, last_above
from smalti.experiments.matches import keep_matches, load_matches
from smalti.experiments.matching import match_all
from smalti.geometry.family import AFFINE
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.loop import ActiveLoop, StopRule
from smalti.suggestion.strategies import strategy_named

SETS = ("brighton", "dendritic_cols0-2", "copr", "obriens", "caliterra")
STRATEGIES = ("paper", "smalti")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), metavar="NAME,…", help="folders of SMALTI_DATA")
    parser.add_argument("--queries", type=int, default=60, metavar="Q", help="questions a run (60)")
    parser.add_argument("--seeds", default="1,2,3", metavar="S,S,…", help="one run a seed (1,2,3)")
    parser.add_argument("--keep", type=Path, default=Path("studies/flights"), help="folder that keeps the matches")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    options.keep.mkdir(parents=True, exist_ok=True)
    rows, ratios = [], []
    for name in options.sets.split(","):
        found = [compare(name, seed, options.queries, options.keep) for seed in seeds]
        answers, log, calmed = (np.mean(some, axis=0) for some in zip(*found, strict=True))
        ratios.append(answers[1] / answers[0])
        means = [*(f"{mean:.1f}" for mean in answers), f"{ratios[-1]:.2f}", *(f"{mean:.3f}" for mean in log)]
        rows.append([name, *means, f"{calmed:.1%}"])
        print(f"{name}: {answers[0]:.1f} and {answers[1]:.1f} answers", flush=True)
    rows.append(["mean of the ratios", "", "", f"{np.mean(ratios):.2f}", "", "", ""])
    columns = [*STRATEGIES, "ratio", "mean log10 px, paper", "smalti", "turning put down to noise"]
    print_table(["answers to reach the error", *columns], rows)


def compare(name: str, seed: int, queries: int, keep: Path) -> tuple[list[int], list[float], float]:
    """Return the answers that each strategy needs, the mean of log10 of its error, and how calm the camera is."""
    experiment = load(name, seed, keep)
    errors, states = zip(*(run(experiment, strategy, seed, queries) for strategy in STRATEGIES), strict=True)
    level = GOOD_ENOUGH * errors[0][-1]
    needed = [last_above(error, level) + 1 for error in errors]
    camera = states[-1].camera
    calmed = float("nan") if camera is None else camera.calmed_by(1.0, 1.0)
    return needed, [float(np.log10(error[1:]).mean()) for error in errors], calmed


def load(name: str, seed: int, keep: Path) -> Caliterra:
    """Return a set as the experiment knows them; where its frames lie is not needed."""
    folder = Path(os.environ.get("SMALTI_DATA", "../shared/data")) / name
    frames = len(list((folder / "frames").iterdir()))
    matches = load_matches(keep, name, frames)
    if matches is None:
        matches = match_all(folder / "frames", frames)
        keep_matches(keep, name, matches)
    return Caliterra(matches, read_landmarks(folder / "landmarks.csv"), np.zeros((frames, 2)), seed)


def run(experiment: Caliterra, strategy: str, seed: int, queries: int) -> tuple[NDArray[np.float64], ActiveLoop]:
    """Return the error after every answer (queries + 1,), and the first state; a run that ends early keeps its last."""
    agent = experiment.agent(seed, chain_noise=1.0)
    state = experiment.start(agent, experiment.external, strategy_named(strategy), AFFINE, StopRule(budget=queries))
    states = [state, *state.run(agent)]
    errors = [experiment.relative_rmsd(each.refined.mosaic_from_frame) for each in states]
    return np.array(errors + errors[-1:] * (queries + 1 - len(errors))), state


if __name__ == "__main__":
    main()
