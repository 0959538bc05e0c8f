"""A replay as files: `replay.csv` and `replay.png`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from smalti.interchange.atomic_files import replacing, write_text
from smalti_lab.replaying import AS_ASKED, Replay

COLUMNS = ("order", "answers", "i", "j", "verdict", "predicted_error_px", "difference_px")
SMALLEST_DRAWN_PX = 0.1
AS_ASKED_COLOUR = "#888888"


def write_replay(replay: Replay, folder: Path) -> list[Path]:
    """Write a table of every step and a picture of the curves into an existing folder."""
    table, picture = folder / "replay.csv", folder / "replay.png"
    write_text(table, as_csv(replay))
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = _draw(replay)
        with replacing(picture) as file:
            figure.savefig(file, format="png", dpi=150)
    return [table, picture]


def as_csv(replay: Replay) -> str:
    """Return one line a step, with all digits. Frames have source numbers."""
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
    figure.suptitle(f"the same {count} answers in other orders; the final mosaic is not ground truth")
    return figure


def _draw_curves(ax: Axes, replay: Replay, measure: str, title: str) -> None:
    for order in replay.orders:
        values = np.array([getattr(step, measure) for step in order.steps])
        # The final mosaic has the difference 0 to itself, which a logarithmic axis cannot show.
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
