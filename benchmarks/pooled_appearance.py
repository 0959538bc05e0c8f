"""The value of pooling: signatures of single frames against sums over all neighbours.

    python benchmarks/pooled_appearance.py [--seeds 1,2,4]

The pairs are farther apart in time than a stay at one place. Printed is how many overlapping pairs look more alike than
all but one in a hundred of the others; and how often, of one pair of either kind, the first looks more alike (AUC). On
wander (600 frames) and, if SMALTI_DATA has it, caliterra with visual words of each seed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from claims import print_table
from smalti.active_loop import ActiveLoop
from smalti.errors import SmaltiError
from smalti.overlap.external_model import ExternalModel
from smalti_lab.experiments.experiment import Experiment, experiment_named
from smalti_lab.experiments.methods import SMALTI, Method

SETS = {"wander": 12, "caliterra": 6}
"""With the number of frames from which on a pair is far apart."""

FALSE_ONES = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,4", metavar="S,S,…", help="one row each (1,2,4)")
    seeds = [int(seed) for seed in parser.parse_args().seeds.split(",")]
    rows = []
    for name, far in SETS.items():
        kind = experiment_named(name)
        try:
            kind.check(kind.usual_frames, 1.0)
        except SmaltiError as error:
            print(error)
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows += [row_of(name, seed, kind.make(kind.usual_frames, seed, Path(folder)), far) for seed in seeds]
    print_table(["", "AUC alone", "around", f"found at {FALSE_ONES:.0%} false ones, alone", "around"], rows)


def row_of(name: str, seed: int, experiment: Experiment, far: int) -> list[str]:
    agent = experiment.agent(seed, chain_noise=1.0)
    state = experiment.start(agent, experiment.external, Method(SMALTI))
    assert isinstance(state, ActiveLoop)
    i, j = np.triu_indices(experiment.frames, far)
    matrix = np.zeros((experiment.frames, experiment.frames), dtype=np.bool_)
    matrix[tuple(experiment.overlapping.T)] = True
    found = [judge(model, i, j, matrix[i, j]) for model in (experiment.external, state.setup.pooled)]
    return [f"{name}, seed {seed}", *(f"{auc:.3f}" for auc, _ in found), *(f"{recall:.0%}" for _, recall in found)]


def judge(
    model: ExternalModel, i: NDArray[np.int64], j: NDArray[np.int64], overlap: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return AUC and recall of a model on pairs, some of which overlap."""
    said = model.probabilities()[i, j]
    count = int(overlap.sum())
    rank = np.argsort(np.argsort(said))
    auc = (rank[overlap].sum() - count * (count - 1) / 2) / (count * (len(said) - count))
    return float(auc), float(np.mean(said[overlap] > np.quantile(said[~overlap], 1.0 - FALSE_ONES)))


if __name__ == "__main__":
    main()
