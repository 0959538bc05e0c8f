"""How many answers an error took."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smalti.experiments.runs import Run

GOOD_ENOUGH = 1.5
"""Times the error that the first strategy ends with: what all strategies are to reach."""


def errors_by_query(run: Run) -> NDArray[np.float64]:
    """Return the relative error after every query (queries + 1,), px; a run that ended early keeps its last."""
    measured = [row.relative_rmsd_px for row in run.rows]
    return np.array(measured + measured[-1:] * (run.settings.queries + 1 - len(measured)))


def area_under_log(run: Run) -> float:
    """Return the mean over the answers of log10 of the error in px."""
    return float(np.log10(errors_by_query(run)[1:]).mean())


def levels_by_seed(runs: Sequence[Run]) -> dict[int, float]:
    """Return the error to reach, px, for each seed of these runs of one strategy."""
    return {run.settings.seed: GOOD_ENOUGH * run.rows[-1].relative_rmsd_px for run in runs}


def answers_to_reach(run: Run, level_px: float) -> int:
    """Return after how many answers the error is at most so large, and stays so; one more than there were if never."""
    return last_above(errors_by_query(run), level_px) + 1


def last_above(errors_px: NDArray[np.float64], level_px: float) -> int:
    """Return after how many answers the error (queries + 1,) is larger than that for the last time, -1 if never."""
    return int(np.flatnonzero(errors_px > level_px).max(initial=-1))
