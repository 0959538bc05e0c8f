"""`smalti experiment`: the paper's synthetic experiments."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from smalti.errors import UsageError

# Named here too, so that help needs not import the engine; a test keeps them the same.
EXPERIMENTS = ("raster", "circle")
STRATEGIES = ("paper", "external-only", "position-only", "elibol", "sawhney", "xia", "area")
DEFAULT_STRATEGIES = STRATEGIES[:5]
FAMILIES = ("translation", "similarity", "affine")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "experiment",
        help="run the paper's synthetic experiments",
        description="Run one of the paper's synthetic experiments with several strategies and seeds, and write "
        "curves.csv, summary.json and figures.",
    )
    parser.add_argument("experiment", metavar="{" + ",".join(EXPERIMENTS) + "}", help="which world")
    parser.add_argument("--frames", type=int, default=1000, metavar="N", help="length of the sequence (1000)")
    parser.add_argument("--queries", type=int, default=50, metavar="Q", help="questions a run (50)")
    parser.add_argument("--seeds", default="1,2,3,4,5", metavar="S,S,…", help="one run a seed (1,2,3,4,5)")
    parser.add_argument(
        "--strategies",
        default=",".join(DEFAULT_STRATEGIES),
        metavar="NAME,NAME,…",
        help=f"of {', '.join(STRATEGIES)} (the first five)",
    )
    parser.add_argument("--family", default="affine", metavar="NAME", help=f"maps of {', '.join(FAMILIES)} (affine)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the results go")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="J", help="runs side by side (all cores)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar, no closing words")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Conduct the study and say where its results are."""
    # Imported here: help and usage errors do not wait for the engine.
    from tqdm import tqdm  # noqa: PLC0415

    from smalti.experiments.report import summarise, write_report  # noqa: PLC0415
    from smalti.experiments.study import StudySettings, conduct, make_folder  # noqa: PLC0415

    settings = StudySettings(
        experiment=options.experiment,
        frames=options.frames,
        queries=options.queries,
        seeds=_whole_numbers(options.seeds),
        strategies=tuple(name.strip() for name in options.strategies.split(",")),
        family=options.family,
    )
    if options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: give at least 1")
    folder = make_folder(options.out)
    total = len(settings.runs) * settings.queries
    first = "starting (compiles for half a minute on first use)"
    with tqdm(total=total, unit="question", desc=first, disable=options.quiet, dynamic_ncols=True) as bar:

        def show(questions: int) -> None:
            bar.set_description("asking", refresh=False)
            bar.update(questions)

        runs = conduct(settings, folder, workers=min(options.jobs, len(settings.runs)), on_progress=show)
    written = write_report(settings, runs, folder)
    if not options.quiet:
        print(_closing_words(summarise(settings, runs)))
        print(f"{len(written)} files in {folder}: curves.csv, summary.json and the figures, rmsd.png first")


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--seeds {text}: give whole numbers with commas between them") from None


def _closing_words(summary: dict[str, Any]) -> str:
    """Return the mean error of every strategy as a table."""
    errors = {name: strategy["relative_rmsd_px"] for name, strategy in summary["strategies"].items()}
    lines = [f"{'relative RMSD, px':<18}" + "".join(f"{name:>15}" for name in errors)]
    for query in next(iter(errors.values())):
        cells = "".join(f"{of_strategy[query]['mean']:>15.2f}" for of_strategy in errors.values())
        lines.append(f"after {query:<12}{cells}")
    return "\n".join(lines)
