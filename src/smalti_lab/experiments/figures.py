"""The figures of a study, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from smalti.records import Points
from smalti_lab.experiments.runs import Run
from smalti_lab.experiments.study import StudySettings
from smalti_lab.experiments.study_summary import BINS, calibrate
from smalti_lab.synthetic.truth import fit_similarity

__all__ = ["COLOURS", "OTHER_COLOUR", "draw_figures"]

LARGEST_PICTURE = 150

COLOURS = {
    "smalti": "#101820",
    "paper": "#d1495b",
    "external-only": "#30638e",
    "position-only": "#edae49",
    "elibol": "#00798c",
    "sawhney": "#7b5ea7",
    "xia": "#6b705c",
}
OTHER_COLOUR = "#888888"


def draw_figures(settings: StudySettings, runs: list[Run], folder: Path) -> None:
    """Draw all figures into `folder`. Pictures of all pairs exist only if the paper's method is compared."""
    pictured = next(run for run in runs if run.settings == settings.pictured)
    with mpl.rc_context(
        {"font.size": 9, "svg.hashsalt": "smalti", "axes.spines.top": False, "axes.spines.right": False}
    ):
        _save(draw_errors(settings, runs), folder, "rmsd")
        _save(draw_prediction(settings, runs), folder, "prediction")
        _save(draw_reliability(settings, runs), folder, "reliability")
        _save(_trajectories(settings, runs), folder, "trajectories")
        if pictured.pictures:
            _save(_overlap(pictured), folder, "overlap")
            _save(_external(pictured), folder, "external")
            _save(_evolution(pictured), folder, "evolution")


def _save(figure: Figure, folder: Path, name: str) -> None:
    figure.savefig(folder / f"{name}.png", dpi=150)
    figure.set_layout_engine("none")  # the layout is final: computing it again takes as long as drawing
    figure.savefig(folder / f"{name}.svg", dpi=150, metadata={"Date": None})


def _trajectories(settings: StudySettings, runs: list[Run]) -> Figure:
    first_seed = [run for run in runs if run.settings.seed == settings.seeds[0]]
    truth = first_seed[0].true_centres
    panels: list[tuple[str, Points, str]] = [
        ("ground truth (GPS for real frames)", truth, "#333333"),
        ("chain alone", first_seed[0].initial_centres, "#999999"),
    ]
    for run in first_seed:
        asked, colour = run.rows[-1].query, COLOURS.get(run.settings.strategy, OTHER_COLOUR)
        panels.append((f"{run.settings.strategy}, {asked} asked", run.final_centres, colour))
    wide = bool(np.ptp(truth[:, 0]) > 4 * np.ptp(truth[:, 1]))
    columns = 1 if wide else min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(9.5, 1.1 * rows) if wide else (2.6 * columns, 2.7 * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for ax, (title, centres, colour) in zip(axes, panels, strict=False):
        placed = fit_similarity(centres, truth)
        ax.plot(placed[:, 0], placed[:, 1], ".", ms=1.5, color=colour)
        ax.set_title(title, fontsize=8, loc="left")
        _leave_room(ax, placed, truth, wide)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    stretched = ", y stretched" if wide else ""
    figure.suptitle(
        f"frame centres, turned and scaled onto the truth{stretched} (seed {settings.seeds[0]})", fontsize=9
    )
    return figure


def _leave_room(ax: Axes, placed: Points, truth: Points, wide: bool) -> None:
    """Keep the aspect ratio if there is space. Otherwise stretch y, and say so."""
    ax.tick_params(labelsize=6)
    if not wide:
        ax.set_aspect("equal", adjustable="datalim")
        return
    ax.set_xlim(truth[:, 0].min() - 300, truth[:, 0].max() + 300)
    span = max(100.0, float(np.abs(placed[:, 1] - truth[:, 1].mean()).max()) * 1.1)
    ax.set_ylim(truth[:, 1].mean() + span, truth[:, 1].mean() - span)


def _overlap(run: Run) -> Figure:
    names = (("lower", "lower bound Λ"), ("exact", "exact P"), ("upper", "upper bound Υ"))
    figure = Figure(figsize=(10, 3.5), layout="constrained")
    axes = figure.subplots(1, 3)
    image = None
    for ax, (name, title) in zip(axes, names, strict=True):
        image = ax.imshow(run.pictures[name], vmin=0, vmax=1, cmap="magma", interpolation="none")
        ax.set(title=title, xlabel="frame")
    axes[0].set_ylabel("frame")
    if image is not None:
        figure.colorbar(image, ax=list(axes), shrink=0.8, label="probability")
    figure.suptitle("overlap by position, before the first question")
    return figure


def _external(run: Run) -> Figure:
    figure = Figure(figsize=(4.6, 3.8), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(run.pictures["external"], vmin=0, vmax=1, cmap="magma", interpolation="none")
    ax.set(xlabel="frame", ylabel="frame", title="overlap by the external model, at the start")
    figure.colorbar(image, ax=ax, shrink=0.8, label="probability")
    return figure


def _evolution(run: Run) -> Figure:
    queries = sorted(int(name.split("-")[1]) for name in run.pictures if name.startswith("reward-"))
    figure = Figure(figsize=(2.4 * len(queries), 5.2), layout="constrained")
    axes = figure.subplots(2, len(queries), squeeze=False)
    spreads = [_pooled(run.pictures[f"informativeness-{query}"]) for query in queries]
    last = len(run.initial_centres) - 0.5
    place = (-0.5, last, last, -0.5)
    scale = LogNorm(*_positive_range(spreads))
    image = None
    for column, query in enumerate(queries):
        top, bottom = axes[0, column], axes[1, column]
        shown = np.maximum(spreads[column], scale.vmin or 1e-9)
        image = top.imshow(shown, norm=scale, cmap="viridis", interpolation="none", extent=place)
        reward = _pooled(run.pictures[f"reward-{query}"])
        relative = reward / max(float(reward.max()), 1e-30)
        bottom.imshow(relative, vmin=0, vmax=1, cmap="magma", interpolation="none", extent=place)
        top.set_title(f"after {query}")
        for ax in (top, bottom):
            ax.tick_params(labelsize=6)
    axes[0, 0].set_ylabel("informativeness U")
    axes[1, 0].set_ylabel("expected reward\n(each scaled to its maximum)")
    if image is not None:
        figure.colorbar(image, ax=list(axes[0]), shrink=0.8, label="px²")
    figure.suptitle(f"{run.settings.strategy}, seed {run.settings.seed}: informativeness and expected reward")
    return figure


def _pooled(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest value of each block, so that a single bright pair stays visible."""
    size = -(-len(matrix) // LARGEST_PICTURE)
    padded = np.pad(matrix, (0, -len(matrix) % size))
    blocks = padded.reshape(len(padded) // size, size, len(padded) // size, size)
    largest: NDArray[np.float32] = blocks.max(axis=(1, 3))
    return largest


def _positive_range(matrices: Iterable[NDArray[np.float32]]) -> tuple[float, float]:
    positive = np.concatenate([matrix[matrix > 0] for matrix in matrices])
    return float(np.percentile(positive, 1)), float(positive.max())


MEASURES = {
    "relative_rmsd_px": "relative RMSD (the paper's)",
    "shape_rmsd_px": "shape RMSD (after the best similarity)",
}


def draw_errors(settings: StudySettings, runs: list[Run]) -> Figure:
    """Draw the errors against the truth, one line for each strategy."""
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
    """Draw the error of the pictured strategy, its prediction, and the bound if one was stated."""
    figure = Figure(figsize=(5.2, 4.0), layout="constrained")
    ax = figure.subplots()
    strategy = settings.pictured.strategy
    colour = COLOURS.get(strategy, OTHER_COLOUR)
    for measure, style, label in (
        ("relative_rmsd_px", "-", "real"),
        ("predicted_rmsd_px", "--", "predicted, without ground truth"),
        ("bound_px", ":", "stated bound with 90 % probability"),
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
    """Draw the share of yes against the stated probability, above a histogram of the probabilities."""
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
    """(seeds, queries + 1). A run that ended early keeps its last error."""
    values = np.empty((len(settings.seeds), settings.queries + 1))
    mine = [run for run in runs if run.settings.strategy == strategy]
    for row, run in zip(values, mine, strict=True):
        measured = [float(getattr(r, measure)) for r in run.rows]
        row[: len(measured)] = measured
        row[len(measured) :] = measured[-1]
    return values
