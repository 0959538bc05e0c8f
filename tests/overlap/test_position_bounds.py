"""The paper's bounds, and the quick estimate that lies between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import erf

from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import rectangle_probability
from smalti.overlap.position_bounds import probability_bounds, quick_probability

outlines = st.builds(
    lambda left, top, width, height: Outline(left, top, left + width, top + height),
    st.floats(-50.0, 50.0),
    st.floats(-50.0, 50.0),
    st.floats(5.0, 400.0),
    st.floats(5.0, 400.0),
)


@dataclass(frozen=True)
class Cases:
    """Normal distributions, many at once: a call of a compiled kernel costs more than a case in it."""

    mean: np.ndarray  # (n, 2)
    cov: np.ndarray  # (n, 3)

    @classmethod
    def of(cls, fractions: np.ndarray) -> Cases:
        """Spread (n, 5) numbers between 0 and 1 over means, deviations (1e-2 to 1e4) and correlations."""
        deviations = 10.0 ** (6.0 * fractions[:, 2:4] - 2.0)
        correlation = 0.9999 * (2.0 * fractions[:, 4] - 1.0)
        xy = correlation * deviations[:, 0] * deviations[:, 1]
        cov = np.column_stack([deviations[:, 0] ** 2, xy, deviations[:, 1] ** 2])
        return cls(1500.0 * fractions[:, :2] - 600.0, cov)

    @property
    def spread(self) -> np.ndarray:
        """√det Σ."""
        return np.sqrt(np.maximum(self.cov[:, 0] * self.cov[:, 2] - self.cov[:, 1] ** 2, 0.0))


cases = arrays(np.float64, (20, 5), elements=st.floats(0.0, 1.0)).map(Cases.of)


def in_square_by_eigenvectors(mean: np.ndarray, cov: np.ndarray, outline: Outline, half_side: float) -> float:
    """Eqs. position_overlap_product and function_f_overlap, with numpy's eigenvectors."""
    values, vectors = np.linalg.eigh([[cov[0], cov[1]], [cov[1], cov[2]]])
    product = 1.0
    for value, vector in zip(values, vectors.T, strict=True):
        x = float((outline.centre - mean) @ vector)
        root = math.sqrt(2 * value)
        product *= 0.5 * float(erf((x + half_side) / root) - erf((x - half_side) / root))
    return product


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cases, outlines)
def test_bounds_bracket_the_probability(cases: Cases, outline: Outline) -> None:
    lower, upper = probability_bounds(cases.mean, cases.cov, outline)
    exact = rectangle_probability(cases.mean, cases.cov, outline)
    assert (lower <= exact + 1e-12).all()
    assert (exact <= upper + 1e-12).all()


@settings(derandomize=True, deadline=None, max_examples=40)
@given(cases, outlines)
def test_bounds_equal_the_papers_formula(cases: Cases, outline: Outline) -> None:
    inner = min(outline.width, outline.height) / (2 * math.sqrt(2))
    outer = math.hypot(outline.width, outline.height) / 2
    found = probability_bounds(cases.mean, cases.cov, outline)
    for bound, half_side in zip(found, (inner, outer), strict=True):
        each = zip(cases.mean, cases.cov, strict=True)
        expected = [in_square_by_eigenvectors(mean, cov, outline, half_side) for mean, cov in each]
        np.testing.assert_allclose(bound, expected, rtol=1e-6, atol=1e-7)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cases, outlines)
def test_probability_times_spread_never_exceeds_the_outlines_constant(cases: Cases, outline: Outline) -> None:
    constant = 2 * (outline.width**2 + outline.height**2) / 4 / math.pi
    exact = rectangle_probability(cases.mean, cases.cov, outline)
    assert (exact * cases.spread <= constant * (1 + 1e-9)).all()


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cases, outlines)
def test_upper_bound_times_spread_never_exceeds_the_outlines_constant(cases: Cases, outline: Outline) -> None:
    constant = 2 * (outline.width**2 + outline.height**2) / 4 / math.pi
    _, upper = probability_bounds(cases.mean, cases.cov, outline)
    assert (upper * cases.spread <= constant * (1 + 1e-9)).all()


def test_bounds_times_spread_tend_to_the_papers_constants_with_the_square_of_a() -> None:
    outline = Outline(0.0, 0.0, 80.0, 60.0)
    mean, cov = np.array([150.0, -70.0]), np.array([4e12, 1e12, 3e12])
    spread = math.sqrt(cov[0] * cov[2] - cov[1] ** 2)
    lower, upper = probability_bounds(mean, cov, outline)
    assert lower * spread == pytest.approx(2 * outline.inner_half_side**2 / math.pi, rel=1e-6)
    assert upper * spread == pytest.approx(2 * outline.outer_half_side**2 / math.pi, rel=1e-6)


def test_probability_times_spread_tends_to_the_area_over_two_pi() -> None:
    outline = Outline(0.0, 0.0, 80.0, 60.0)
    mean, cov = np.array([150.0, -70.0]), np.array([4e12, 1e12, 3e12])
    spread = math.sqrt(cov[0] * cov[2] - cov[1] ** 2)
    found = rectangle_probability(mean, cov, outline) * spread
    assert found == pytest.approx(outline.area / (2 * math.pi), rel=1e-6)


def test_certain_centre_inside_the_inner_square_has_both_bounds_one() -> None:
    outline = Outline(0.0, 0.0, 100.0, 100.0)
    lower, upper = probability_bounds(np.array([60.0, 45.0]), np.zeros(3), outline)
    assert (lower, upper) == (1.0, 1.0)


def test_certain_centre_outside_the_outer_square_has_both_bounds_zero() -> None:
    outline = Outline(0.0, 0.0, 100.0, 100.0)
    lower, upper = probability_bounds(np.array([125.0, 50.0]), np.zeros(3), outline)
    assert (lower, upper) == (0.0, 0.0)


def test_nearly_singular_covariance_keeps_the_bounds_around_the_probability() -> None:
    outline = Outline(0.0, 0.0, 100.0, 60.0)
    mean = np.random.default_rng(1).uniform(-60.0, 160.0, size=(200, 2))
    for digits in range(20, 53, 4):
        cov = np.tile(400.0 * np.array([1.0, 1.0 - 2.0**-digits, 1.0]), (200, 1))
        lower, upper = probability_bounds(mean, cov, outline)
        exact = rectangle_probability(mean, cov, outline)
        assert (lower - 1e-12 <= exact).all()
        assert (exact <= upper + 1e-12).all()


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cases, outlines)
def test_quick_probability_lies_between_the_bounds(cases: Cases, outline: Outline) -> None:
    lower, upper = probability_bounds(cases.mean, cases.cov, outline)
    quick = quick_probability(cases.mean, cases.cov, outline)
    assert (lower <= quick * (1 + 1e-12)).all()
    assert (quick <= upper * (1 + 1e-12)).all()


@settings(derandomize=True, deadline=None, max_examples=100)
@given(cases, st.floats(5.0, 400.0))
def test_quick_probability_of_a_square_frame_errs_by_at_most_the_density_over_the_parts_that_stand_out(
    cases: Cases, side: float
) -> None:
    # A square turned about its centre leaves at most (3 - 2√2) of its area uncovered, at 45°.
    outline = Outline(0.0, 0.0, side, side)
    distance = (3 - 2 * math.sqrt(2)) * side**2 / (2 * math.pi * cases.spread)
    quick = quick_probability(cases.mean, cases.cov, outline)
    exact = rectangle_probability(cases.mean, cases.cov, outline)
    assert (np.abs(quick - exact) <= distance + 1e-12).all()


@settings(derandomize=True, deadline=None, max_examples=40)
@given(cases)
def test_quick_probability_is_exact_for_a_square_frame_and_uncorrelated_coordinates(cases: Cases) -> None:
    outline = Outline(0.0, 0.0, 100.0, 100.0)
    cov = cases.cov * np.array([1.0, 0.0, 1.0])
    exact = rectangle_probability(cases.mean, cov, outline)
    np.testing.assert_allclose(quick_probability(cases.mean, cov, outline), exact, rtol=0, atol=1e-12)
