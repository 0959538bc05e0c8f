"""Whether what a strategy states comes true: its probabilities of a yes, and its bound on the error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.experiments.runs import Row, Run

BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Stated probabilities of a yes beside the answers, in bins of equal width from 0 to 1."""

    brier: float  # mean squared difference of probability and answer, 0 or 1
    counts: NDArray[np.int64]  # (BINS,) of questions
    probabilities: NDArray[np.float64]  # (BINS,) mean of those stated, NaN where there is none
    shares: NDArray[np.float64]  # (BINS,) of yes among the answers, NaN where there is none


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
    """Return in how many of the states that have a bound the error is below it, as a share; NaN if none has."""
    covered = [row.relative_rmsd_px <= row.bound_px for row in rows if not np.isnan(row.bound_px)]
    return float(np.mean(covered)) if covered else float("nan")


def _rows(runs: Iterable[Run]) -> Iterable[Row]:
    return (row for run in runs for row in run.rows)
