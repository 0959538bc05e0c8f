"""The mean of a normal variable within bounds, by integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from smalti.overlap.normal_probability import mean_between


def between(mean, deviation, bound):
    return float(mean_between(np.array([mean]), np.array([deviation]), np.array([bound]))[0])


@pytest.mark.parametrize(("mean", "deviation", "bound"), [(-2.0, 1.0, 1.5), (5.0, 40.0, 2.0), (0.9, 0.01, 1.0)])
def test_it_is_that_of_the_density_within_the_bounds(mean, deviation, bound):
    def density(x):
        return np.exp(-0.5 * ((x - mean) / deviation) ** 2)

    likely = np.clip([mean], -bound, bound)
    total, _ = quad(density, -bound, bound, points=likely)
    moment, _ = quad(lambda x: x * density(x), -bound, bound, points=likely)
    assert between(mean, deviation, bound) == pytest.approx(moment / total, rel=1e-6)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_what_lies_far_beyond_a_bound_is_at_it(side):
    assert between(side * 50.0, 1.0, 3.0) == side * 3.0


def test_what_is_certain_stays_where_it_is():
    assert between(0.7, 0.0, 1.0) == pytest.approx(0.7, rel=1e-9)
