"""`smalti replay`: the same answers in the order of other strategies, as `replay.csv` and `replay.png`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smalti_lab.replaying import Order, Replay, Step

SHOWN_AFTER = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 5))
"""Numbers of answers in the table, up to the number there are."""

FACTOR, NEAR_PX = 1.5, 2.0
"""Factor on the predicted error after all answers; distance to the final mosaic. Below both, answers change little."""

CLOSING_WORDS = """\
There is no ground truth. The final mosaic is the one after all answers, in the order in which they were given. The
difference is the RMS distance between the two mosaics, measured where linked frames overlap. All mosaics here use
homographies. Each method predicts its own error. A strategy can only ask pairs that were answered. Alone, it might have
chosen other pairs."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "replay",
        help="compare strategies on a project's own answers",
        description="Ask the answered questions of a project again, in the order that each strategy would choose. "
        "Show after how many answers the mosaic is close to the final one. The project does not change.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="project folder")
    parser.add_argument(
        "--strategies",
        metavar="NAME,NAME,…",
        help="names as in smalti experiment (paper,smalti)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for replay.csv and replay.png")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress bars")
    parser.set_defaults(run=run, resumes=False)


def run(options: argparse.Namespace) -> None:
    """Replay, print the table, and write the files."""
    # Imported here, so that help and usage errors do not wait for the engine.
    from smalti.progress import Bars, Silence  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415
    from smalti_lab.experiments.run_store import check_matplotlib, make_folder  # noqa: PLC0415
    from smalti_lab.replaying import DEFAULT_STRATEGIES, replay  # noqa: PLC0415

    strategies = DEFAULT_STRATEGIES
    if options.strategies is not None:
        strategies = tuple(name.strip() for name in options.strategies.split(","))
    with Project.open(options.project) as project:
        if options.out is not None:
            check_matplotlib()
            make_folder(options.out)
        replayed = replay(project, strategies, progress=Silence() if options.quiet else Bars())
    print(as_table(replayed))
    if options.out is not None:
        from smalti_lab.replay_files import write_replay  # noqa: PLC0415

        for path in write_replay(replayed, options.out):
            print(path)


def as_table(replayed: Replay) -> str:
    """Return the errors of every order after some of the answers, and the number of answers needed."""
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
            lines.append(
                f"{order.name} has no useful question left after {len(order.steps) - 1} of the {len(given)} answers."
            )
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
