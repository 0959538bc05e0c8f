"""What a study says of probabilities, bounds and effort, on runs made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from smalti_lab.experiments.runs import Row, Run, RunSettings
from smalti_lab.experiments.study import StudySettings
from smalti_lab.experiments.study_summary import (
    answers_to_reach,
    area_under_log,
    calibrate,
    covered_share,
    levels_by_seed,
    summarise,
)


def run_of(
    errors: Sequence[float],
    *,
    queries: int,
    strategy: str = "paper",
    seed: int = 1,
    answers: Sequence[str] = (),
    probabilities: Sequence[float] = (),
    bounds: Sequence[float] = (),
) -> Run:
    rows = [
        Row(
            query=n,
            i=None,
            j=None,
            answer=answers[n - 1] if n and answers else "",
            relative_rmsd_px=error,
            own_rmsd_px=error,
            shape_rmsd_px=math.nan,
            predicted_rmsd_px=error,
            probability=probabilities[n - 1] if n and probabilities else math.nan,
            bound_px=bounds[n] if bounds else math.nan,
            seconds=0.0,
        )
        for n, error in enumerate(errors)
    ]
    settings = RunSettings("raster", 24, queries, "affine", strategy, seed)
    return Run(settings, rows, "budget", 1.0, *np.zeros((3, 24, 2)), {})


def test_brier_score_is_the_mean_squared_miss_of_the_stated_probabilities():
    run = run_of([1] * 5, queries=4, answers=["yes", "no", "unsure", "yes"], probabilities=[0.8, 0.3, 0.9, math.nan])
    found = calibrate([run])
    assert found is not None
    assert found.brier == pytest.approx((0.2**2 + 0.3**2) / 2)


def test_bins_count_questions_and_have_their_mean_probability_and_share_of_yes():
    run = run_of([1] * 5, queries=4, answers=["yes", "no", "yes", "yes"], probabilities=[0.12, 0.16, 1.0, 0.95])
    found = calibrate([run])
    assert found is not None
    assert found.counts.tolist() == [0, 2, 0, 0, 0, 0, 0, 0, 0, 2]
    assert found.probabilities[[1, 9]] == pytest.approx([0.14, 0.975])
    assert found.shares[[1, 9]] == pytest.approx([0.5, 1.0])
    assert np.isnan(found.shares[0])


def test_strategies_that_state_no_probability_have_no_calibration():
    assert calibrate([run_of([1, 1], queries=1, answers=["yes"])]) is None


def test_covered_are_the_states_whose_error_is_at_most_the_bound():
    run = run_of([4.0, 3.0, 2.0, 1.0], queries=3, bounds=[math.nan, 3.0, 1.5, 1.5])
    assert covered_share(run.rows) == pytest.approx(2 / 3)
    assert math.isnan(covered_share(run.rows[:1]))


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([9, 5, 2, 2], 2),
        ([9, 2, 5, 2], 3),  # it must stay there
        ([9, 3, 3, 3], 1),  # the level itself will do
        ([2, 2, 2, 2], 0),
        ([9, 9, 9, 9], 4),
        ([9, 2], 1),  # a run that ended early keeps its error
        ([9, 9], 4),
    ],
)
def test_answers_to_reach_an_error_and_stay_there(errors, expected):
    assert answers_to_reach(run_of(errors, queries=3), 3.0) == expected


def test_area_under_log_is_the_mean_over_the_answers():
    assert area_under_log(run_of([1000, 100, 10], queries=3)) == pytest.approx((2 + 1 + 1) / 3)


def test_level_is_half_as_much_again_as_the_last_error_of_the_seed():
    runs = [run_of([9, 2], queries=1, seed=1), run_of([9, 4], queries=1, seed=2)]
    assert levels_by_seed(runs) == {1: 3.0, 2: 6.0}


def test_all_strategies_are_measured_by_the_level_of_the_first():
    settings = StudySettings("raster", frames=24, queries=3, seeds=(1, 2), strategies=("xia", "paper"))
    runs = [
        run_of([9, 5, 3, 2], queries=3, strategy="xia", seed=1, answers=["yes"] * 3),
        run_of([9, 5, 5, 4], queries=3, strategy="xia", seed=2, answers=["yes"] * 3),
        run_of([9, 3, 2, 1], queries=3, strategy="paper", seed=1, answers=["yes"] * 3),
        run_of([9, 9, 8, 7], queries=3, strategy="paper", seed=2, answers=["yes"] * 3),
    ]
    summary = summarise(settings, runs)
    assert summary["level_to_reach_px"] == {"1": 3.0, "2": 6.0}
    found = {name: of["answers_to_reach"] for name, of in summary["strategies"].items()}
    assert found["xia"] == {"mean": 1.5, "not_reached": 0, "seeds": {"1": 2, "2": 1}}
    assert found["paper"] == {"mean": 2.5, "not_reached": 1, "seeds": {"1": 1, "2": 4}}


def test_summary_has_null_where_nothing_is_known():
    settings = StudySettings("raster", frames=24, queries=1, seeds=(1,), strategies=("xia",))
    summary = summarise(settings, [run_of([2, 1], queries=1, strategy="xia", answers=["yes"])])
    found = summary["strategies"]["xia"]
    assert found["shape_rmsd_px"]["1"] == {"mean": None, "min": None, "max": None}
    assert found["probability"] is None
    assert found["error_below_bound"] == {"share": None, "share_at_the_end": None}
