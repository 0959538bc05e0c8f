"""Figures along the questions show what there is, and nothing that is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti_lab.experiments.figures import draw_errors, draw_prediction, draw_reliability
from smalti_lab.experiments.runs import Row, Run
from smalti_lab.experiments.study import StudySettings

SETTINGS = StudySettings("raster", frames=24, queries=2, seeds=(1, 2), strategies=("paper", "xia"))


def runs(*, shape: float = math.nan, bound: float = math.nan) -> list[Run]:
    """Of `paper`, which states a probability of 0.7 every time, and of `xia`, which states none."""
    found = []
    for settings in SETTINGS.runs:
        stated = 0.7 if settings.strategy == "paper" else math.nan
        first = Row(0, None, None, "", 9.0, 9.0, shape, 9.0, math.nan, bound, 0.1)
        rest = [Row(n, 0, n + 5, "yes", 3.0, 3.0, shape, 3.0, stated, bound, 0.1) for n in (1, 2)]
        found.append(Run(settings, [first, *rest], "budget", 1.0, *np.zeros((3, 24, 2)), {}))
    return found


def labels(ax) -> list[str]:
    return [line.get_label() for line in ax.get_lines()]


@pytest.mark.parametrize(("shape", "panels"), [(math.nan, 1), (5.0, 2)])
def test_an_error_that_the_truth_does_not_tell_has_no_panel(shape, panels):
    assert len(draw_errors(SETTINGS, runs(shape=shape)).axes) == panels


@pytest.mark.parametrize(("bound", "lines"), [(math.nan, 2), (5.0, 3)])
def test_a_bound_is_drawn_where_one_is_stated(bound, lines):
    assert len(draw_prediction(SETTINGS, runs(bound=bound)).axes[0].get_lines()) == lines


def test_reliability_has_a_line_and_counts_for_each_strategy_that_states_probabilities():
    above, below = draw_reliability(SETTINGS, runs()).axes
    assert labels(above)[1:] == ["paper (Brier 0.090)"]  # the first is the diagonal
    assert above.get_lines()[1].get_xydata().tolist() == [[pytest.approx(0.7), 1.0]]
    assert [bar.get_height() for bar in below.patches] == [0, 0, 0, 0, 0, 0, 0, 4, 0, 0]


def test_reliability_says_so_where_nothing_is_stated():
    only_xia = StudySettings("raster", frames=24, queries=2, seeds=(1, 2), strategies=("xia",))
    above, _ = draw_reliability(only_xia, runs()).axes
    assert [text.get_text() for text in above.texts] == ["no strategy states one"]
