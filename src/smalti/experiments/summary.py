"""What a study found, in numbers: `summary.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from smalti import __version__
from smalti.experiments.calibration import BINS, Calibration, calibrate, covered_share
from smalti.experiments.effort import answers_to_reach, area_under_log, levels_by_seed
from smalti.experiments.runs import Run
from smalti.experiments.study import StudySettings

SUMMARISED_QUERIES = (0, 1, 2, 3, 5, 10, 20, 30, 50)


def summarise(settings: StudySettings, runs: list[Run]) -> dict[str, Any]:
    """Return the settings and, for each strategy, what became of the error and of the questions."""
    by_strategy = {name: [run for run in runs if run.settings.strategy == name] for name in settings.strategies}
    levels = levels_by_seed(by_strategy[settings.strategies[0]])
    return {
        "smalti": __version__,
        "experiment": settings.experiment,
        "frames": settings.frames,
        "queries": settings.queries,
        "seeds": list(settings.seeds),
        "family": {name: settings.family_of(name) for name in settings.strategies},
        "looks": settings.looks,
        "chain_noise": settings.chain_noise,
        "batch": settings.batch,
        "level_to_reach_px": {str(seed): level for seed, level in levels.items()},
        "strategies": {name: _summarise_strategy(settings, mine, levels) for name, mine in by_strategy.items()},
    }


def _summarise_strategy(settings: StudySettings, runs: list[Run], levels: Mapping[int, float]) -> dict[str, Any]:
    queries = sorted({q for q in SUMMARISED_QUERIES if q < settings.queries} | {settings.queries})
    summary: dict[str, Any] = {}
    for measure in ("relative_rmsd_px", "own_rmsd_px", "shape_rmsd_px", "predicted_rmsd_px"):
        summary[measure] = {}
        for query in queries:
            # A run that ended early keeps the error it ended with.
            values = [float(getattr(run.rows[min(query, len(run.rows) - 1)], measure)) for run in runs]
            summary[measure][str(query)] = {
                "mean": _or_none(float(np.mean(values))),
                "min": _or_none(min(values)),
                "max": _or_none(max(values)),
            }
    reached = {run.settings.seed: answers_to_reach(run, levels[run.settings.seed]) for run in runs}
    summary["answers_to_reach"] = {
        "mean": float(np.mean(list(reached.values()))),
        "not_reached": sum(answers > settings.queries for answers in reached.values()),
        "seeds": {str(seed): answers for seed, answers in reached.items()},
    }
    summary["area_under_log"] = float(np.mean([area_under_log(run) for run in runs]))
    summary["probability"] = _summarise_calibration(calibrate(runs))
    summary["error_below_bound"] = {
        "share": _or_none(covered_share(row for run in runs for row in run.rows)),
        "share_at_the_end": _or_none(covered_share(run.rows[-1] for run in runs)),
    }
    summary["seeds"] = {str(run.settings.seed): _summarise_run(run) for run in runs}
    seconds = [row.seconds for run in runs for row in run.rows[1:]]
    summary["seconds_per_query_median"] = float(np.median(seconds)) if seconds else None
    return summary


def _summarise_calibration(found: Calibration | None) -> dict[str, Any] | None:
    if found is None:
        return None
    bins = [
        {"from": n / BINS, "to": (n + 1) / BINS, "questions": int(count), "stated": _or_none(p), "yes": _or_none(yes)}
        for n, (count, p, yes) in enumerate(zip(found.counts, found.probabilities, found.shares, strict=True))
    ]
    return {"brier": found.brier, "bins": bins}


def _or_none(number: float) -> float | None:
    """Return a number that JSON knows: NaN is none."""
    return None if math.isnan(number) else float(number)


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
