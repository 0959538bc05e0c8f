from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.errors import UsageError
from smalti.geometry.outline import Outline

LAWS = settings(derandomize=True, deadline=None, max_examples=50)

outlines = st.builds(
    lambda left, top, width, height: Outline(left, top, left + width, top + height),
    st.floats(-100, 100),
    st.floats(-100, 100),
    st.floats(1, 1000),
    st.floats(1, 1000),
)
factors = st.floats(0.1, 10.0)


def sides_of(outline):
    return [outline.left, outline.top, outline.right, outline.bottom]


def test_a_known_outline_grows_by_half_on_every_side():
    assert Outline(1.0, 2.0, 7.0, 10.0).scaled(1.5) == Outline(-0.5, 0.0, 8.5, 12.0)


@LAWS
@given(outlines, factors)
def test_the_centre_stays(outline, factor):
    np.testing.assert_allclose(outline.scaled(factor).centre, outline.centre, rtol=0, atol=1e-9)


@LAWS
@given(outlines, factors)
def test_width_and_height_grow_by_the_factor(outline, factor):
    scaled = outline.scaled(factor)
    np.testing.assert_allclose(scaled.width, factor * outline.width, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scaled.height, factor * outline.height, rtol=1e-9, atol=1e-9)


@LAWS
@given(outlines)
def test_a_factor_of_one_changes_nothing(outline):
    np.testing.assert_allclose(sides_of(outline.scaled(1.0)), sides_of(outline), rtol=0, atol=1e-9)


@LAWS
@given(outlines, factors, factors)
def test_factors_multiply(outline, first, second):
    np.testing.assert_allclose(
        sides_of(outline.scaled(first).scaled(second)), sides_of(outline.scaled(first * second)), rtol=1e-9, atol=1e-8
    )


@LAWS
@given(outlines, factors)
def test_the_larger_contains_the_smaller(outline, factor):
    assert outline.scaled(1.01 * factor).contains(outline.scaled(factor).corners).all()


@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_a_factor_that_leaves_no_area_is_refused(factor):
    with pytest.raises(UsageError, match="area"):
        Outline(1.0, 2.0, 7.0, 10.0).scaled(factor)
