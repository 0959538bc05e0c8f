"""A study as files: `curves.csv`, `summary.json`, and figures."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smalti import __version__
from smalti.errors import OutputError
from smalti.experiments.figures import draw_figures
from smalti.experiments.runs import Run
from smalti.experiments.shelf import clear
from smalti.experiments.study import StudySettings

COLUMNS = (
    "experiment",
    "frames",
    "strategy",
    "seed",
    "query",
    "i",
    "j",
    "answer",
    "relative_rmsd_px",
    "shape_rmsd_px",
    "predicted_rmsd_px",
    "seconds",
)

SUMMARISED_QUERIES = (0, 1, 2, 3, 5, 10, 20, 30, 50)


def write_reports(studies: Mapping[Path, StudySettings], runs: Mapping[Path, list[Run]]) -> list[Path]:
    """Write the results of every study into its folder; only when all are there, forget the runs that were kept."""
    written = [path for folder, settings in studies.items() for path in _write_report(settings, runs[folder], folder)]
    for folder in studies:
        clear(folder)
    return written


def _write_report(settings: StudySettings, runs: list[Run], folder: Path) -> list[Path]:
    """Write everything beside its place, then move it there: no file is ever half-written."""
    partial = folder / ".partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        (partial / "curves.csv").write_text(curves_csv(runs), encoding="utf-8")
        (partial / "summary.json").write_text(json.dumps(summarise(settings, runs), indent=2) + "\n", encoding="utf-8")
        draw_figures(settings, runs, partial)
        written = []
        for path in sorted(partial.iterdir()):
            path.replace(folder / path.name)
            written.append(folder / path.name)
        partial.rmdir()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}), choose another folder") from None
    return written


def curves_csv(runs: list[Run]) -> str:
    """Return one line a query; numbers with all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in runs:
        s = run.settings
        for row in run.rows:
            writer.writerow(
                (
                    s.experiment,
                    s.frames,
                    s.strategy,
                    s.seed,
                    row.query,
                    "" if row.i is None else row.i,
                    "" if row.j is None else row.j,
                    row.answer,
                    repr(row.relative_rmsd_px),
                    repr(row.shape_rmsd_px),
                    repr(row.predicted_rmsd_px),
                    f"{row.seconds:.4f}",
                )
            )
    return text.getvalue()


def summarise(settings: StudySettings, runs: list[Run]) -> dict[str, Any]:
    """Return the settings and, for each strategy, what became of the error and of the questions."""
    return {
        "smalti": __version__,
        "experiment": settings.experiment,
        "frames": settings.frames,
        "queries": settings.queries,
        "seeds": list(settings.seeds),
        "family": settings.family,
        "strategies": {
            name: _summarise_strategy(settings, [run for run in runs if run.settings.strategy == name])
            for name in settings.strategies
        },
    }


def _summarise_strategy(settings: StudySettings, runs: list[Run]) -> dict[str, Any]:
    queries = sorted({q for q in SUMMARISED_QUERIES if q < settings.queries} | {settings.queries})
    summary: dict[str, Any] = {}
    for measure in ("relative_rmsd_px", "shape_rmsd_px", "predicted_rmsd_px"):
        summary[measure] = {}
        for query in queries:
            # A run that ended early keeps the error it ended with.
            values = [float(getattr(run.rows[min(query, len(run.rows) - 1)], measure)) for run in runs]
            summary[measure][str(query)] = {
                "mean": float(np.mean(values)),
                "min": min(values),
                "max": max(values),
            }
    summary["seeds"] = {str(run.settings.seed): _summarise_run(run) for run in runs}
    seconds = [row.seconds for run in runs for row in run.rows[1:]]
    summary["seconds_per_query_median"] = float(np.median(seconds)) if seconds else None
    return summary


def _summarise_run(run: Run) -> dict[str, Any]:
    verdicts = [row.answer for row in run.rows[1:]]
    return {
        "yes": verdicts.count("yes"),
        "no": verdicts.count("no"),
        "unsure": verdicts.count("unsure"),
        "first_yes": verdicts.index("yes") + 1 if "yes" in verdicts else None,
        "stopped": run.stopped,
        "smallest_frame_area": run.smallest_area,
    }
