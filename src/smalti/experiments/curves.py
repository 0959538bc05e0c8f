"""The figures of a study that follow its questions: errors, their prediction, the answers that were expected."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from smalti.experiments.calibration import BINS, calibrate
from smalti.experiments.colours import COLOURS, OTHER_COLOUR
from smalti.experiments.runs import Run
from smalti.experiments.study import StudySettings

MEASURES = {
    "relative_rmsd_px": "relative RMSD (the paper's)",
    "shape_rmsd_px": "shape RMSD (after the best similarity)",
}


def draw_errors(settings: StudySettings, runs: list[Run]) -> Figure:
    """Draw the errors that the truth tells of, a line a strategy."""
    known = [name for name in MEASURES if np.isfinite(getattr(runs[0].rows[0], name))]
    figure = Figure(figsize=(1.0 + 4.25 * len(known), 4.2), layout="constrained")
    axes = figure.subplots(1, len(known), squeeze=False)[0]
    for ax, measure in zip(axes, known, strict=True):
        for strategy in settings.strategies:
            values = _by_seed(settings, runs, strategy, measure)
            queries = np.arange(values.shape[1])
            colour = COLOURS.get(strategy, OTHER_COLOUR)
            ax.plot(queries, values.mean(axis=0), color=colour, label=strategy, lw=1.8)
            ax.fill_between(queries, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.12, lw=0)
        ax.set(yscale="log", xlabel="questions asked", ylabel="px", title=MEASURES[measure])
        ax.grid(alpha=0.3, which="major")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(f"{settings.experiment}, {settings.frames} frames: mean and range over {len(settings.seeds)} seeds")
    return figure


def draw_prediction(settings: StudySettings, runs: list[Run]) -> Figure:
    """Draw the error of the pictured strategy, what was predicted of it, and the bound if one was stated."""
    figure = Figure(figsize=(5.2, 4.0), layout="constrained")
    ax = figure.subplots()
    strategy = settings.pictured.strategy
    colour = COLOURS.get(strategy, OTHER_COLOUR)
    for measure, style, label in (
        ("relative_rmsd_px", "-", "real"),
        ("predicted_rmsd_px", "--", "predicted, without ground truth"),
        ("bound_px", ":", "below this nine times of ten, as stated"),
    ):
        values = _by_seed(settings, runs, strategy, measure)
        if np.isfinite(values).all():
            ax.plot(values.mean(axis=0), style, color=colour, label=label, lw=1.8)
    ax.set(
        yscale="log", xlabel="questions asked", ylabel="relative RMSD, px", title=f"{strategy}: error, mean over seeds"
    )
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return figure


def draw_reliability(settings: StudySettings, runs: list[Run]) -> Figure:
    """Draw the share of yes against the probability that was stated, above how often it was."""
    figure = Figure(figsize=(4.8, 5.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot([0, 1], [0, 1], color="#bbbbbb", lw=1.0)
    found = {name: calibrate(run for run in runs if run.settings.strategy == name) for name in settings.strategies}
    stated = {name: calibration for name, calibration in found.items() if calibration is not None}
    width = 0.8 / BINS / max(len(stated), 1)
    for number, (name, calibration) in enumerate(stated.items()):
        colour = COLOURS.get(name, OTHER_COLOUR)
        some = calibration.counts > 0
        label = f"{name} (Brier {calibration.brier:.3f})"
        above.plot(calibration.probabilities[some], calibration.shares[some], "o-", color=colour, label=label, ms=4)
        below.bar(np.arange(BINS) / BINS + 0.1 / BINS + (number + 0.5) * width, calibration.counts, width, color=colour)
    above.set(xlim=(0, 1), ylim=(-0.02, 1.02), ylabel="share of yes", title="stated probability of a yes, and answers")
    above.grid(alpha=0.3)
    if stated:
        above.legend(frameon=False)
    else:
        above.text(0.5, 0.4, "no strategy states one", ha="center")
    below.set(xlabel="stated probability", ylabel="questions")
    return figure


def _by_seed(settings: StudySettings, runs: list[Run], strategy: str, measure: str) -> NDArray[np.float64]:
    """(seeds, queries + 1); a run that ended early keeps the error it ended with."""
    values = np.empty((len(settings.seeds), settings.queries + 1))
    mine = [run for run in runs if run.settings.strategy == strategy]
    for row, run in zip(values, mine, strict=True):
        measured = [float(getattr(r, measure)) for r in run.rows]
        row[: len(measured)] = measured
        row[len(measured) :] = measured[-1]
    return values
