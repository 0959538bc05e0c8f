"""A study as files: `curves.csv`, `summary.json`, and figures."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

from smalti.errors import OutputError
from smalti_lab.experiments.figures import draw_figures
from smalti_lab.experiments.run_store import clear
from smalti_lab.experiments.runs import Run
from smalti_lab.experiments.study import StudySettings
from smalti_lab.experiments.study_summary import summarise

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
    "own_rmsd_px",
    "shape_rmsd_px",
    "predicted_rmsd_px",
    "probability",
    "bound_px",
    "seconds",
)


def write_reports(studies: Mapping[Path, StudySettings], runs: Mapping[Path, list[Run]]) -> list[Path]:
    """Write the results of every study into its folder. When all are written, remove the stored runs."""
    written = [path for folder, settings in studies.items() for path in _write_report(settings, runs[folder], folder)]
    for folder in studies:
        clear(folder)
    return written


def _write_report(settings: StudySettings, runs: list[Run], folder: Path) -> list[Path]:
    """Write everything under temporary names, then move it to its place, so that no file is ever half-written."""
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
    """Return one line a query, with all digits."""
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
                    repr(row.own_rmsd_px),
                    _written(row.shape_rmsd_px),
                    repr(row.predicted_rmsd_px),
                    _written(row.probability),
                    _written(row.bound_px),
                    f"{row.seconds:.4f}",
                )
            )
    return text.getvalue()


def _written(number: float) -> str:
    """Return a number with all digits, or nothing for NaN."""
    return "" if math.isnan(number) else repr(number)
