"""How many answers strategies need for the same error, as the tables of docs/strategy.md.

    smalti experiment raster circle --queries 100 --seeds 1,2,3,4,5,6,7,8,9,10 --strategies paper,smalti --out studies
    python benchmarks/strategy.py studies/raster studies/circle [--against paper] [--strategy smalti]
    python benchmarks/strategy.py studies/raster --batches studies/raster-in-eights

The error to reach is, for every seed, 1.5 times that of the first strategy of the study after its last answer. With
--batches, a study in which the same strategy asks several questions at a time is compared with the first one.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from claims import print_table
from smalti_lab.experiments.study_summary import last_above


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("studies", nargs="+", type=Path, metavar="DIR", help="folders of studies")
    parser.add_argument("--against", default="paper", metavar="NAME", help="the strategy to compare with (paper)")
    parser.add_argument("--strategy", default="smalti", metavar="NAME", help="the strategy to be judged (smalti)")
    parser.add_argument("--batches", type=Path, metavar="DIR", help="a study of the same runs with --batch")
    options = parser.parse_args()
    if options.batches is not None:
        print_batches(options.studies[0], options.batches, options.strategy)
        return
    studies = [json.loads((folder / "summary.json").read_text()) for folder in options.studies]
    names = (options.against, options.strategy)
    print_effort(studies, *names)
    print_area(studies, *names)
    print_calibration(studies, names)
    print_bounds(studies, names)


def print_effort(studies: list[dict[str, Any]], against: str, judged: str) -> None:
    """Print the mean number of answers to reach the error, and the ratio.

    A run that never reached it counts as one more than all its answers.
    """
    lines, ratios = [], []
    for study in studies:
        base, own = (study["strategies"][name]["answers_to_reach"] for name in (against, judged))
        ratios.append(own["mean"] / base["mean"])
        lines.append([title(study), counted(base), counted(own), f"{ratios[-1]:.2f}"])
    lines.append(["mean of the ratios", "", "", f"{np.mean(ratios):.2f}"])
    print_table(["answers to reach the error (runs that never do)", f"`{against}`", f"`{judged}`", "ratio"], lines)


def print_area(studies: list[dict[str, Any]], against: str, judged: str) -> None:
    lines = []
    for study in studies:
        base, own = (study["strategies"][name]["area_under_log"] for name in (against, judged))
        lines.append([title(study), f"{base:.3f}", f"{own:.3f}", f"{own - base:+.3f}"])
    print_table(["mean of log10 of the error in px", f"`{against}`", f"`{judged}`", "difference"], lines)


def print_calibration(studies: list[dict[str, Any]], names: Iterable[str]) -> None:
    lines = []
    for study in studies:
        for name in names:
            found = study["strategies"][name]["probability"]
            if found is not None:
                bins = [
                    f"{b['stated']:.2f} → {b['yes']:.2f} ({b['questions']})" if b["questions"] else ""
                    for b in found["bins"]
                ]
                lines.append([title(study), f"`{name}`", f"{found['brier']:.3f}", *bins])
    edges = [f"{n / 10:.1f}-{(n + 1) / 10:.1f}" for n in range(10)]
    print_table(["stated → share of yes (questions)", "strategy", "Brier", *edges], lines)


def print_bounds(studies: list[dict[str, Any]], names: Iterable[str]) -> None:
    lines = []
    for study in studies:
        for name in names:
            found = study["strategies"][name]["error_below_bound"]
            if found["share"] is not None:
                lines.append([title(study), f"`{name}`", f"{found['share']:.0%}", f"{found['share_at_the_end']:.0%}"])
    print_table(["error below the stated 90 % bound", "strategy", "all states", "after the last answer"], lines)


def print_batches(single: Path, batches: Path, judged: str) -> None:
    """Print how many more answers are needed if several questions are asked at a time."""
    first, second = (json.loads((folder / "summary.json").read_text()) for folder in (single, batches))
    levels = {int(seed): px for seed, px in first["level_to_reach_px"].items() if int(seed) in second["seeds"]}
    means = [
        float(np.mean([needed(folder, judged, *of_seed) for of_seed in levels.items()])) for folder in (single, batches)
    ]
    row = [title(first), f"{means[0]:.1f}", f"{means[1]:.1f}", f"{means[1] / means[0]:.2f}"]
    print_table(["answers to reach the error", "one by one", f"{second['batch']} at a time", "ratio"], [row])


def needed(folder: Path, strategy: str, seed: int, level_px: float) -> int:
    """Return the number of answers of a run from which on the error stays at most this large."""
    with (folder / "curves.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["strategy"] == strategy and int(row["seed"]) == seed]
    return last_above(np.array([float(row["relative_rmsd_px"]) for row in rows]), level_px) + 1


def title(study: dict[str, Any]) -> str:
    """Name a study by its unusual settings."""
    parts = [f"{study['experiment']} {study['frames']}"]
    if study["looks"] != "own":
        parts.append(f"looks {study['looks']}")
    if study["chain_noise"] != 1.0:
        parts.append(f"chain {study['chain_noise']:g} ×")
    if study["batch"] > 1:
        parts.append(f"batches of {study['batch']}")
    return ", ".join(parts)


def counted(found: dict[str, Any]) -> str:
    never = f" ({found['not_reached']})" if found["not_reached"] else ""
    return f"{found['mean']:.1f}{never}"


if __name__ == "__main__":
    main()
