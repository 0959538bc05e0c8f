"""The results of a study in numbers: `summary.json`, calibration, and the number of answers until an error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti import __version__
from smalti_lab.experiments.runs import Row, Run
from smalti_lab.experiments.study import StudySettings

SUMMARISED_QUERIES = (0, 1, 2, 3, 5, 10, 20, 30, 50)


def summarise(settings: StudySettings, runs: list[Run]) -> dict[str, Any]:
    """Return the settings and, for each strategy, its errors and its questions."""
    by_strategy = {name: [run for run in runs if run.settings.strategy == name] for name in settings.strategies}
    levels = levels_by_seed(by_strategy[settings.strategies[0]])
    return {
        "smalti": __version__,
        "experiment": settings.experiment,
        "frames": settings.frames,
        "queries": settings.queries,
        "seeds": list(settings.seeds),
        "family": {name: settings.family_of(name) for name in settings.strategies},
        "appearance": settings.appearance,
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
            # A run that ended early keeps its last error.
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
    """Return a number for JSON; NaN becomes None."""
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


BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Stated probabilities of a yes against the answers, in bins of equal width from 0 to 1."""

    brier: float  # mean squared difference of probability and answer, 0 or 1
    counts: NDArray[np.int64]  # (BINS,) of questions
    probabilities: NDArray[np.float64]  # (BINS,) mean of those stated, NaN for an empty bin
    shares: NDArray[np.float64]  # (BINS,) of yes among the answers, NaN for an empty bin


def calibrate(runs: Iterable[Run]) -> Calibration | None:
    """Compare all stated probabilities with the answers, yes or no; None if none was stated."""
    stated = [row for row in _rows(runs) if row.answer in ("yes", "no") and not np.isnan(row.probability)]
    if not stated:
        return None
    probability = np.array([row.probability for row in stated])
    yes = np.array([row.answer == "yes" for row in stated], dtype=np.float64)
    number = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(number, minlength=BINS)
    some = np.where(counts > 0, counts, np.nan)
    return Calibration(
        brier=float(np.mean((probability - yes) ** 2)),
        counts=counts,
        probabilities=np.bincount(number, probability, BINS) / some,
        shares=np.bincount(number, yes, BINS) / some,
    )


def covered_share(rows: Iterable[Row]) -> float:
    """Return the share of states with a bound whose error is below it; NaN if none has a bound."""
    covered = [row.relative_rmsd_px <= row.bound_px for row in rows if not np.isnan(row.bound_px)]
    return float(np.mean(covered)) if covered else float("nan")


def _rows(runs: Iterable[Run]) -> Iterable[Row]:
    return (row for run in runs for row in run.rows)


GOOD_ENOUGH = 1.5
"""Factor on the final error of the first strategy: the error that all strategies are to reach."""


def errors_by_query(run: Run) -> NDArray[np.float64]:
    """Return the relative error after every query (queries + 1,), px. A run that ended early keeps its last."""
    measured = [row.relative_rmsd_px for row in run.rows]
    return np.array(measured + measured[-1:] * (run.settings.queries + 1 - len(measured)))


def area_under_log(run: Run) -> float:
    """Return the mean over the answers of log10 of the error in px."""
    return float(np.log10(errors_by_query(run)[1:]).mean())


def levels_by_seed(runs: Sequence[Run]) -> dict[int, float]:
    """Return the error to reach, px, for each seed of these runs of one strategy."""
    return {run.settings.seed: GOOD_ENOUGH * run.rows[-1].relative_rmsd_px for run in runs}


def answers_to_reach(run: Run, level_px: float) -> int:
    """Return the number of answers from which on the error stays at most `level_px`; one more than all if never."""
    return last_above(errors_by_query(run), level_px) + 1


def last_above(errors_px: NDArray[np.float64], level_px: float) -> int:
    """Return after how many answers the error (queries + 1,) is above the level for the last time; -1 if never."""
    return int(np.flatnonzero(errors_px > level_px).max(initial=-1))
