"""The rectangle probability against integrals that take the other variable, and against closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import erfcx, ndtr
from scipy.stats import multivariate_normal

from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import rectangle_probability

WIDE = Outline(-0.5, -0.5, 99.5, 59.5)
SQUARE = Outline(0.0, 0.0, 100.0, 100.0)

deviations = st.floats(-3.0, 4.0).map(lambda exponent: 10.0**exponent)
correlations = st.floats(-0.999999, 0.999999)
coordinates = st.floats(-150.0, 250.0)


def packed(deviation_x: float, deviation_y: float, correlation: float) -> np.ndarray:
    return np.array([deviation_x**2, correlation * deviation_x * deviation_y, deviation_y**2])


def between(low: float, high: float) -> float:
    """Φ(high) - Φ(low), differences taken in the lower tail."""
    return float(ndtr(-low) - ndtr(-high)) if low > 0 else float(ndtr(high) - ndtr(low))


def exact_conditional(cov: np.ndarray) -> float:
    """√(1 - ρ²) of the covariance as given, without cancellation."""
    xx, xy, yy = (Fraction(float(entry)) for entry in cov)
    return math.sqrt(float((xx * yy - xy * xy) / (xx * yy)))


def integrated_over_the_longer_interval(mean: np.ndarray, cov: np.ndarray, outline: Outline) -> float:
    """Adaptive quadrature over the variable that our kernel does not integrate over."""
    sx, sy = math.sqrt(cov[0]), math.sqrt(cov[2])
    correlation, conditional = cov[1] / (sx * sy), exact_conditional(cov)
    a, b = (outline.left - mean[0]) / sx, (outline.right - mean[0]) / sx
    c, d = (outline.top - mean[1]) / sy, (outline.bottom - mean[1]) / sy
    if d - c >= b - a:
        a, b, c, d = c, d, a, b
    nearest = min(max(0.0, a), b)
    low, high = max(a, nearest - 12.0), min(b, nearest + 12.0)
    breaks = {low, high, *(float(t) for t in range(-12, 13) if low < t < high)}
    if abs(correlation) > 1e-290:  # the step of a smaller one lies beyond all numbers
        width = conditional / abs(correlation)
        for edge in (c / correlation, d / correlation):
            for offset in (-20, -8, -4, -2, -1, 0, 1, 2, 4, 8, 20):
                if low < edge + offset * width < high:
                    breaks.add(edge + offset * width)

    def density(u: float) -> float:
        v = correlation * u
        return math.exp(-0.5 * u * u) * between((c - v) / conditional, (d - v) / conditional)

    ordered = sorted(breaks)
    parts = [quad(density, p, q, epsabs=1e-15, epsrel=1e-13)[0] for p, q in pairwise(ordered)]
    return math.fsum(parts) / math.sqrt(2 * math.pi)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(coordinates, coordinates, deviations, deviations, correlations)
def test_equals_the_integral_over_the_other_variable(
    x: float, y: float, deviation_x: float, deviation_y: float, correlation: float
) -> None:
    mean, cov = np.array([x, y]), packed(deviation_x, deviation_y, correlation)
    expected = integrated_over_the_longer_interval(mean, cov, WIDE)
    assert rectangle_probability(mean, cov, WIDE) == pytest.approx(expected, rel=0, abs=1e-10)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(coordinates, coordinates, st.floats(5.0, 500.0), st.floats(5.0, 500.0), st.floats(-0.95, 0.95))
def test_equals_inclusion_exclusion_on_the_distribution_function_where_that_is_well_conditioned(
    x: float, y: float, deviation_x: float, deviation_y: float, correlation: float
) -> None:
    mean, cov = np.array([x, y]), packed(deviation_x, deviation_y, correlation)
    cdf = multivariate_normal(mean, [[cov[0], cov[1]], [cov[1], cov[2]]]).cdf
    expected = (
        cdf([WIDE.right, WIDE.bottom])
        - cdf([WIDE.left, WIDE.bottom])
        - cdf([WIDE.right, WIDE.top])
        + cdf([WIDE.left, WIDE.top])
    )
    assert rectangle_probability(mean, cov, WIDE) == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("digits", [4, 28, 52])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nearly_singular_covariance_equals_the_integral_over_the_other_variable(
    digits: int,
    sign: float,
) -> None:
    correlation = sign * (1.0 - 2.0**-digits)
    rng = np.random.default_rng(digits)
    corner = [WIDE.left, WIDE.top if sign > 0 else WIDE.bottom]
    for mean in (np.array(corner), *rng.uniform(-40.0, 140.0, size=(8, 2))):
        cov = packed(2.0 ** rng.integers(-2, 8), 2.0 ** rng.integers(-2, 8), correlation)
        expected = integrated_over_the_longer_interval(mean, cov, WIDE)
        assert rectangle_probability(mean, cov, WIDE) == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_correlation_of_almost_one_equals_one_variable_within_the_conditional_deviation(sign: float) -> None:
    correlation = sign * (1.0 - 1e-12)
    # y = ±x + r with r of deviation √(1-ρ²): the events differ only where x lies within r of an edge.
    error = 4.0 * math.sqrt(2e-12) * math.sqrt(2 / math.pi) / math.sqrt(2 * math.pi)
    rng = np.random.default_rng(2)
    for mean in rng.uniform(-2.0, 2.0, size=(50, 2)):
        box = Outline(-1.0, -1.5, 1.0, 1.5)
        low_y, high_y = sorted((sign * (box.top - mean[1]), sign * (box.bottom - mean[1])))
        low, high = max(box.left - mean[0], low_y), min(box.right - mean[0], high_y)
        expected = between(low, high) if high > low else 0.0
        found = rectangle_probability(mean, packed(1.0, 1.0, correlation), box)
        assert found == pytest.approx(expected, rel=0, abs=error)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_correlation_of_exactly_one_is_the_probability_of_one_variable(sign: float) -> None:
    box = Outline(-1.0, -3.0, 1.0, 3.0)
    cov = np.array([1.0, sign * 2.0, 4.0])
    mean = np.array([0.25, sign * 1.5])
    # y - mean = ±2 (x - mean), so y in [-3, 3] says that ±(x - mean) lies in [(-3 ∓ 1.5)/2, (3 ∓ 1.5)/2].
    expected = between(-1.25, 0.75)
    assert rectangle_probability(mean, cov, box) == pytest.approx(expected, rel=1e-13)


def test_perfectly_correlated_variables_that_cannot_both_be_inside_have_probability_zero() -> None:
    far = np.array([0.0, 10.0])
    assert rectangle_probability(far, np.array([1.0, 1.0, 1.0]), Outline(-1.0, -1.0, 1.0, 1.0)) == 0.0


@settings(derandomize=True, deadline=None)
@given(coordinates, coordinates, deviations, deviations)
def test_uncorrelated_variables_give_the_product_of_their_probabilities(
    x: float, y: float, deviation_x: float, deviation_y: float
) -> None:
    expected = between((WIDE.left - x) / deviation_x, (WIDE.right - x) / deviation_x) * between(
        (WIDE.top - y) / deviation_y, (WIDE.bottom - y) / deviation_y
    )
    found = rectangle_probability(np.array([x, y]), packed(deviation_x, deviation_y, 0.0), WIDE)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("mean", "expected"),
    [((0.0, 100.0), 1.0), ((100.0001, 50.0), 0.0), ((50.0, -0.0001), 0.0)],
)
def test_a_certain_point_is_inside_or_not(mean: tuple[float, float], expected: float) -> None:
    assert rectangle_probability(np.array(mean), np.zeros(3), SQUARE) == expected


@pytest.mark.parametrize(("x", "inside"), [(100.0, 1.0), (100.5, 0.0)])
def test_a_certain_x_leaves_the_probability_of_y(x: float, inside: float) -> None:
    found = rectangle_probability(np.array([x, 90.0]), np.array([0.0, 0.0, 400.0]), SQUARE)
    assert found == pytest.approx(inside * between(-4.5, 0.5), rel=1e-14)


@pytest.mark.parametrize(("y", "inside"), [(0.0, 1.0), (-0.5, 0.0)])
def test_a_certain_y_leaves_the_probability_of_x(y: float, inside: float) -> None:
    found = rectangle_probability(np.array([90.0, y]), np.array([400.0, 0.0, 0.0]), SQUARE)
    assert found == pytest.approx(inside * between(-4.5, 0.5), rel=1e-14)


@pytest.mark.parametrize("scale", [1e-3, 1e-12])
def test_probability_at_a_corner_tends_to_the_quadrant_probability_as_the_covariance_shrinks(
    scale: float,
) -> None:
    corner = np.array([SQUARE.left, SQUARE.top])
    for correlation in (-0.9, 0.0, 0.5, 0.99):
        quadrant = 0.25 + math.asin(correlation) / (2 * math.pi)
        found = rectangle_probability(corner, packed(scale, 2 * scale, correlation), SQUARE)
        assert found == pytest.approx(quadrant, rel=0, abs=1e-10)


def upper_tail_ratio(low: float) -> float:
    """P(u > low)·√(2π)·exp(low²/2): what remains of a tail once its exponential is taken out."""
    return float(erfcx(low / math.sqrt(2))) * math.sqrt(math.pi / 2)


@pytest.mark.parametrize("distance", [5.0, 30.0])
def test_far_tail_of_one_variable_keeps_relative_precision_without_correlation(distance: float) -> None:
    box = Outline(-40.0, distance, 40.0, distance + 200.0)
    expected = upper_tail_ratio(distance) * math.exp(-0.5 * distance**2) / math.sqrt(2 * math.pi)
    found = float(rectangle_probability(np.zeros(2), packed(1.0, 1.0, 0.0), box))
    assert found == pytest.approx(expected, rel=1e-10, abs=0)


@pytest.mark.parametrize(("distance", "correlation"), [(5.0, -0.9), (5.0, 0.5), (30.0, -0.9), (30.0, 0.9)])
def test_far_tail_of_one_variable_keeps_relative_precision_with_correlation(
    distance: float, correlation: float
) -> None:
    # The box takes in every x that matters, so the probability is that of y alone, whatever the correlation.
    box = Outline(-distance - 40.0, distance, distance + 40.0, distance + 200.0)
    expected = upper_tail_ratio(distance) * math.exp(-0.5 * distance**2) / math.sqrt(2 * math.pi)
    found = float(rectangle_probability(np.zeros(2), packed(1.0, 1.0, correlation), box))
    assert found == pytest.approx(expected, rel=1e-6, abs=0)


@settings(derandomize=True, deadline=None)
@given(coordinates, coordinates, deviations, deviations, correlations)
def test_swapping_x_and_y_changes_nothing(
    x: float, y: float, deviation_x: float, deviation_y: float, correlation: float
) -> None:
    cov = packed(deviation_x, deviation_y, correlation)
    swapped = Outline(WIDE.top, WIDE.left, WIDE.bottom, WIDE.right)
    found = rectangle_probability(np.array([y, x]), cov[::-1].copy(), swapped)
    assert found == pytest.approx(rectangle_probability(np.array([x, y]), cov, WIDE), rel=0, abs=1e-13)


@settings(derandomize=True, deadline=None)
@given(coordinates, coordinates, deviations, deviations, correlations)
def test_mirroring_x_changes_nothing(
    x: float, y: float, deviation_x: float, deviation_y: float, correlation: float
) -> None:
    mirrored = Outline(-WIDE.right, WIDE.top, -WIDE.left, WIDE.bottom)
    found = rectangle_probability(np.array([-x, y]), packed(deviation_x, deviation_y, -correlation), mirrored)
    expected = rectangle_probability(np.array([x, y]), packed(deviation_x, deviation_y, correlation), WIDE)
    assert found == pytest.approx(expected, rel=0, abs=1e-13)


@settings(derandomize=True, deadline=None)
@given(coordinates, coordinates, deviations, deviations, correlations, st.floats(1.0, 98.0))
def test_two_halves_of_a_rectangle_add_up_to_the_whole(
    x: float, y: float, deviation_x: float, deviation_y: float, correlation: float, cut: float
) -> None:
    mean, cov = np.array([x, y]), packed(deviation_x, deviation_y, correlation)
    left = Outline(WIDE.left, WIDE.top, cut, WIDE.bottom)
    right = Outline(cut, WIDE.top, WIDE.right, WIDE.bottom)
    parts = rectangle_probability(mean, cov, left) + rectangle_probability(mean, cov, right)
    assert parts == pytest.approx(rectangle_probability(mean, cov, WIDE), rel=0, abs=1e-12)


def test_leading_axes_are_kept() -> None:
    mean = np.random.default_rng(0).uniform(0, 100, size=(3, 4, 2))
    cov = np.broadcast_to(packed(20.0, 30.0, 0.4), (3, 4, 3))
    together = rectangle_probability(mean, cov, SQUARE)
    assert together.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        assert together[i, j] == rectangle_probability(mean[i, j], cov[i, j], SQUARE)
