"""What a study says about the claims of the paper's section 7.1, as the tables of docs/experiments.md.

smalti experiment raster circle --out studies
python benchmarks/claims.py studies/raster studies/circle
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from smalti.paper.paper_loop import PaperLoop
from smalti.paper.paper_strategy import position_probability_bounds
from smalti_lab.comparison_strategies import arc_lengths
from smalti_lab.experiments.experiment import experiment_named
from smalti_lab.experiments.methods import Method

Rows = list[dict[str, str]]
Runs = dict[tuple[str, str], Rows]  # by strategy and seed
SHOWN = (0, 1, 2, 5, 10, 20, 30, 50)


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        runs = read(folder / "curves.csv")
        name = next(iter(runs.values()))[0]["experiment"]
        frames = int(next(iter(runs.values()))[0]["frames"])
        print(f"## {name}, {frames} frames\n")
        print_errors(runs, "relative_rmsd_px")
        print_errors(runs, "shape_rmsd_px")
        print_prediction(runs)
        print_reasons(name, frames, list(dict.fromkeys(seed for _, seed in runs)))
        print_questions(runs, frames)


def read(path: Path) -> Runs:
    runs: Runs = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            runs[row["strategy"], row["seed"]].append(row)
    return dict(runs)


def print_errors(runs: Runs, measure: str) -> None:
    strategies = list(dict.fromkeys(strategy for strategy, _ in runs))
    queries = [q for q in SHOWN if q < max(map(len, runs.values()))]
    print_table(
        [f"{measure}, mean (range) after", *map(str, queries)],
        ([name, *(spread(values(runs, name, measure, q)) for q in queries)] for name in strategies),
    )


def print_prediction(runs: Runs) -> None:
    queries = [q for q in SHOWN if q < max(map(len, runs.values()))]
    predicted = [np.mean(values(runs, "paper", "predicted_rmsd_px", q)) for q in queries]
    real = [np.mean(values(runs, "paper", "relative_rmsd_px", q)) for q in queries]
    print_table(
        ["`paper`, predicted / real (means) after", *map(str, queries)],
        [["ratio", *(f"{p / r:.2f}" for p, r in zip(predicted, real, strict=True))]],
    )


def print_reasons(name: str, frames: int, seeds: list[str]) -> None:
    """Print the chain's statement on the pairs that would close the loop: overlapping, over half the sequence apart."""
    lines = []
    for seed in map(int, seeds):
        experiment = experiment_named(name).make(frames, seed, None)
        pairs = experiment.overlapping
        i, j = pairs[pairs[:, 1] - pairs[:, 0] > frames / 2].T
        agent = experiment.agent(seed, chain_noise=1.0)
        start = experiment.start(agent, experiment.external, Method("paper"))
        assert isinstance(start, PaperLoop)
        _, upper = position_probability_bounds(start.view.centres)
        probability = np.maximum(0.0, 1.0 - arc_lengths(start.adjustment)[i, j])
        lines.append(
            [str(seed), f"{upper[i, j].max():.3f}", f"{probability.max():.3f}", f"{np.mean(probability > 0):.0%}"]
        )
    print_table(
        [
            *("seed", "largest Υ of a pair that closes the loop", "largest 1 - l (Sawhney's probability)"),
            "closing pairs with 1 - l > 0",
        ],
        lines,
    )


def print_questions(runs: Runs, frames: int) -> None:
    """Print one line for each run: its questions, how far apart their frames are, and the answers."""
    lines = []
    for (strategy, seed), rows in runs.items():
        asked = rows[1:]
        gap = [int(row["j"]) - int(row["i"]) for row in asked]
        yes = [row["answer"] == "yes" for row in asked]
        closing = [n + 1 for n, (g, y) in enumerate(zip(gap, yes, strict=True)) if y and g > frames / 2]
        opposite = sum(0.4 * frames < g < 0.6 * frames for g, y in zip(gap, yes, strict=True) if not y)
        first = f"({asked[0]['i']}, {asked[0]['j']}) {asked[0]['answer']}" if asked else "none"
        error = [float(row["relative_rmsd_px"]) for row in rows]
        lines.append(
            [
                strategy,
                seed,
                first,
                f"{error[0]:.1f} → {error[1]:.1f}" if len(error) > 1 else f"{error[0]:.1f}",
                str(sum(yes)),
                str(len(yes) - sum(yes)),
                str(opposite),
                str(closing[0]) if closing else "never",
                f"{np.median(gap):.0f}" if gap else "",
                f"{error[-1]:.2f}",
            ]
        )
    print_table(
        [
            *("strategy", "seed", "first question", "error by it, px", "yes", "no", "no, a half apart"),
            *("first yes over half the sequence", "median gap", "error at the end, px"),
        ],
        lines,
    )


def values(runs: Runs, strategy: str, measure: str, query: int) -> list[float]:
    """Return the values of every seed. A run that ended early keeps its last error."""
    mine = [rows for (name, _), rows in runs.items() if name == strategy]
    return [float(rows[min(query, len(rows) - 1)][measure]) for rows in mine]


def spread(numbers: list[float]) -> str:
    digits = 0 if np.mean(numbers) >= 100 else 1 if np.mean(numbers) >= 10 else 2
    return f"{np.mean(numbers):.{digits}f} ({min(numbers):.{digits}f}-{max(numbers):.{digits}f})"


def print_table(header: list[str], lines: Iterable[list[str]]) -> None:
    print("| " + " | ".join(header) + " |")
    print("| --- " * len(header) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


if __name__ == "__main__":
    main()
