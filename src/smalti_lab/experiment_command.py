"""`smalti experiment`: strategies compared on synthetic worlds and on a real sequence."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from smalti.errors import UsageError

# The names are repeated here so that help does not import the engine. A test keeps them the same.
EXPERIMENTS = ("raster", "circle", "wander", "caliterra")
STRATEGIES = ("smalti", "paper", "external-only", "position-only", "elibol", "sawhney", "xia")
DEFAULT_STRATEGIES = STRATEGIES[1:6]
FAMILIES = ("translation", "rigid", "similarity", "affine", "projective")
APPEARANCES = ("own", "none", "uninformative", "adversarial", "overconfident")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "experiment",
        help="compare strategies on synthetic worlds and on a real sequence",
        description="Compare strategies with several seeds. Most experiments are synthetic; raster and circle are from "
        "the paper. caliterra has real frames, in the folder SMALTI_DATA. The results are curves.csv, summary.json and "
        "figures. `smalti experiment raster circle --out DIR` repeats the study of the paper.",
    )
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help=f"one or more of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--frames", type=int, metavar="N", help="number of frames (1000; wander 600, caliterra 75)")
    parser.add_argument("--queries", type=int, default=50, metavar="Q", help="questions per run (50)")
    parser.add_argument("--seeds", default="1,2,3,4,5", metavar="S,S,…", help="one run for each seed (1,2,3,4,5)")
    parser.add_argument(
        "--strategies",
        default=",".join(DEFAULT_STRATEGIES),
        metavar="NAME,NAME,…",
        help=f"names from {', '.join(STRATEGIES)}; all but smalti use the engine of the paper; the first one sets "
        f"the error that the others must reach ({','.join(DEFAULT_STRATEGIES)})",
    )
    parser.add_argument(
        "--family",
        metavar="NAME",
        help=f"how a frame may move and deform: {', '.join(FAMILIES)}; rigid and projective only with smalti "
        "(affine; projective for smalti on real frames)",
    )
    parser.add_argument(
        "--appearance",
        default="own",
        metavar="KIND",
        help=f"appearance model that the strategies use: {', '.join(APPEARANCES)} (own)",
    )
    parser.add_argument(
        "--chain-noise",
        type=float,
        default=1.0,
        metavar="F",
        help="real noise of the chain, divided by the noise that it states (1)",
    )
    parser.add_argument("--batch", type=int, default=1, metavar="K", help="questions per choice (1)")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the results; each of several experiments gets a folder in it",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="J", help="number of runs at the same time (all cores)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress bar and no summary")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Conduct the studies and print where their results are."""
    # Imported here, so that help and usage errors do not wait for the engine.
    from tqdm import tqdm  # noqa: PLC0415

    from smalti_lab.experiments.experiment import experiment_named  # noqa: PLC0415
    from smalti_lab.experiments.run_store import check_matplotlib, make_folder  # noqa: PLC0415

    check_matplotlib()
    from smalti_lab.experiments.study import StudySettings, conduct_all  # noqa: PLC0415
    from smalti_lab.experiments.study_report import write_reports  # noqa: PLC0415
    from smalti_lab.experiments.study_summary import summarise  # noqa: PLC0415

    names: list[str] = options.experiments
    if len(set(names)) < len(names):
        raise UsageError(f"experiments are given twice: {', '.join(names)}")
    studies = {
        options.out if len(names) == 1 else options.out / name: StudySettings(
            experiment=name,
            frames=experiment_named(name).usual_frames if options.frames is None else options.frames,
            queries=options.queries,
            seeds=_whole_numbers(options.seeds),
            strategies=tuple(strategy.strip() for strategy in options.strategies.split(",")),
            family=options.family,
            appearance=options.appearance,
            chain_noise=options.chain_noise,
            batch=options.batch,
        )
        for name in names
    }
    if options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: give at least 1")
    for folder in studies:
        make_folder(folder)
    count = sum(len(settings.runs) for settings in studies.values())
    first = "starting (the first use compiles for half a minute; caliterra first matches all pairs, for minutes)"
    with tqdm(
        total=count * options.queries, unit="question", desc=first, disable=options.quiet, dynamic_ncols=True
    ) as bar:

        def show(questions: int) -> None:
            bar.set_description("asking", refresh=False)
            bar.update(questions)

        runs = conduct_all(studies, workers=min(options.jobs, count), on_progress=show)
    written = write_reports(studies, runs)
    if not options.quiet:
        for folder, settings in studies.items():
            print(f"{settings.experiment}\n{_closing_words(summarise(settings, runs[folder]))}\n")
        where = ", ".join(map(str, studies))
        print(f"{len(written)} files in {where}: curves.csv, summary.json and figures; look at rmsd.png first")


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
