"""`smalti replay`: the same answers in the order of other strategies, as `replay.csv` and `replay.png`."""

from __future__ import annotations

import argparse
import csv
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from smalti.interchange.atomic_files import replacing, write_text
from smalti_lab.replaying import AS_ASKED, Replay

if TYPE_CHECKING:
    from smalti_lab.replaying import Order, Replay, Step

SHOWN_AFTER = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 5))
"""Answers, as far as there are so many."""

FACTOR, NEAR_PX = 1.5, 2.0
"""Of the predicted error after all answers; of the final mosaic: from there on, more answers change little."""

CLOSING_WORDS = """\
There is no ground truth: the final mosaic is the one after all answers, as they were given. The difference to it is the
RMS distance between where the two put what overlapping frames share; whoever asks, the mosaic is that of homographies.
The predicted error is each method's own. No strategy could ask what was never answered: on its own it might have chosen
other pairs."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "replay",
        help="compare strategies on a project's own answers",
        description="Ask the answered questions of a project again, in the order in which each strategy would have "
        "asked them, and show how soon the mosaic gets to where it ended. The project stays as it is.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="a project's folder")
    parser.add_argument(
        "--strategies",
        metavar="NAME,NAME,…",
        help="as for smalti experiment: smalti, or any of the paper's (paper,smalti)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write replay.csv and replay.png")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars")
    parser.set_defaults(run=run, resumes=False)


def run(options: argparse.Namespace) -> None:
    """Replay, print the table, and write the files."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.progress import Bars, Silence  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415
    from smalti_lab.experiments.run_store import make_folder  # noqa: PLC0415
    from smalti_lab.replaying import DEFAULT_STRATEGIES, replay  # noqa: PLC0415

    strategies = DEFAULT_STRATEGIES
    if options.strategies is not None:
        strategies = tuple(name.strip() for name in options.strategies.split(","))
    with Project.open(options.project) as project:
        if options.out is not None:
            make_folder(options.out)
        replayed = replay(project, strategies, progress=Silence() if options.quiet else Bars())
    print(as_table(replayed))
    if options.out is not None:
        for path in write_replay(replayed, options.out):
            print(path)


def as_table(replayed: Replay) -> str:
    """Return the errors of every order after some of the answers, and how many answers were needed."""
    orders, given = replayed.orders, replayed.as_asked.steps[1:]
    verdicts = Counter(str(step.verdict) for step in given)
    end_px = replayed.as_asked.steps[-1].predicted_error_px
    lines = [
        f"{len(given)} answers: " + ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("yes", "no", "unsure")),
        "",
        _row("", [order.name for order in orders]),
        *_rows("difference to the final mosaic, px", orders, lambda step: step.difference_px),
        _needed(f"stays within {NEAR_PX:g} px after", [order.answers_until_alike(NEAR_PX) for order in orders]),
        "",
        *_rows("predicted error, px", orders, lambda step: step.predicted_error_px),
        _needed(
            f"stays within {FACTOR:g} × the last after",
            [order.answers_until_predicted(FACTOR * end_px) for order in orders],
        ),
        "",
    ]
    for order in orders:
        if len(order.steps) <= len(given):
            lines.append(f"{order.name} has no more to ask after {len(order.steps) - 1} of the {len(given)} answers.")
    return "\n".join([*lines, CLOSING_WORDS])


def _rows(title: str, orders: tuple[Order, ...], measure: Callable[[Step], float]) -> list[str]:
    longest = max(len(order.steps) for order in orders)
    shown = sorted({0, *(count for count in SHOWN_AFTER if count < longest), longest - 1})
    rows = [title]
    for count in shown:
        cells = [f"{measure(order.steps[count]):.2f}" if count < len(order.steps) else "-" for order in orders]
        rows.append(_row(f"  after {count}", cells))
    return rows


def _needed(title: str, answers: list[int | None]) -> str:
    return _row(f"  {title}", ["never" if count is None else str(count) for count in answers])


def _row(title: str, cells: list[str]) -> str:
    return f"{title:<34}" + "".join(f"{cell:>15}" for cell in cells)


COLUMNS = ("order", "answers", "i", "j", "verdict", "predicted_error_px", "difference_px")
SMALLEST_DRAWN_PX = 0.1
AS_ASKED_COLOUR = "#888888"


def write_replay(replay: Replay, folder: Path) -> list[Path]:
    """Write a table of every step and a picture of the curves into a folder that is there."""
    table, picture = folder / "replay.csv", folder / "replay.png"
    write_text(table, as_csv(replay))
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = _draw(replay)
        with replacing(picture) as file:
            figure.savefig(file, format="png", dpi=150)
    return [table, picture]


def as_csv(replay: Replay) -> str:
    """Return one line a step; numbers with all their digits, frames by their numbers in the source."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for order in replay.orders:
        for count, step in enumerate(order.steps):
            i, j = ("", "") if step.pair is None else (step.pair.i, step.pair.j)
            measured = repr(step.predicted_error_px), repr(step.difference_px)
            writer.writerow((order.name, count, i, j, step.verdict or "", *measured))
    return text.getvalue()


def _draw(replay: Replay) -> Figure:
    figure = Figure(figsize=(9.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_curves(left, replay, "difference_px", "difference to the final mosaic")
    _draw_curves(right, replay, "predicted_error_px", "predicted error")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    count = len(replay.as_asked.steps) - 1
    figure.suptitle(f"the same {count} answers in other orders; the final mosaic, after all of them, is not the truth")
    return figure


def _draw_curves(ax: Axes, replay: Replay, measure: str, title: str) -> None:
    for order in replay.orders:
        values = np.array([getattr(step, measure) for step in order.steps])
        # A logarithm has no place for 0, which the end is from itself.
        values = np.maximum(values, SMALLEST_DRAWN_PX)
        if order.name == AS_ASKED:
            ax.plot(values, color=AS_ASKED_COLOUR, lw=3.0, alpha=0.6, label=order.name)
        else:
            ax.plot(values, lw=1.6, marker=".", markevery=[-1], label=order.name)
    ax.set(yscale="log", xlabel="answers", ylabel=f"px, {SMALLEST_DRAWN_PX:g} at least", title=title)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3, which="major")
