"""The variation of a figure over five seeds: the paper's strategy on the raster of 300, over many seeds.

python benchmarks/seeds.py --seeds 40
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np

from smalti_lab.experiments.study import StudySettings, conduct


def main() -> None:
    parser = argparse.ArgumentParser(description="Repeat the raster of 300 over many seeds.")
    parser.add_argument("--seeds", type=int, default=40, metavar="S")
    options = parser.parse_args()
    settings = StudySettings(
        "raster", frames=300, queries=20, seeds=tuple(range(1, options.seeds + 1)), strategies=("paper",)
    )
    with tempfile.TemporaryDirectory() as folder:
        runs = conduct(settings, Path(folder), workers=os.cpu_count() or 1, on_progress=lambda _: None)
    error = np.array([[row.relative_rmsd_px for row in run.rows] for run in runs])
    predicted = np.array([[row.predicted_rmsd_px for row in run.rows] for run in runs])
    refused = sum(row.answer != "yes" for run in runs for row in run.rows[1:])
    print(f"{len(runs)} seeds, {refused} of {len(runs) * settings.queries} questions not answered yes")
    print(f"first answer at least halves the error: {np.mean(error[:, 1] <= 0.5 * error[:, 0]):.1%} of the seeds")
    print(f"smallest frame after the last answer: {min(run.smallest_area for run in runs):.2f} of its area")
    print("| after | mean | median | range | predicted / real, of the means | mean of seeds 1-5 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for query in (0, 1, 5, 10, 20):
        e, p = error[:, query], predicted[:, query]
        measured = f"{e.mean():.2f} | {np.median(e):.2f} | {e.min():.2f}-{e.max():.2f}"
        print(f"| {query} | {measured} | {p.mean() / e.mean():.2f} | {e[:5].mean():.2f} |")


if __name__ == "__main__":
    main()
