"""What a lens bends: from what is seen to straight places, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline

OUTLINE = Outline(-0.5, -0.5, 119.5, 79.5)
LENSES = {"barrel": (0.15, 0.0), "pincushion": (-0.1, 0.0), "both": (0.08, 0.02), "moustache": (-0.1, 0.05)}
each_lens = pytest.mark.parametrize("lens", [Lens(OUTLINE, *some) for some in LENSES.values()], ids=LENSES)


def grid(count=9):
    along = np.linspace(0.0, 1.0, count)
    x, y = np.meshgrid(OUTLINE.left + along * OUTLINE.width, OUTLINE.top + along * OUTLINE.height)
    return np.column_stack([x.ravel(), y.ravel()])


@each_lens
def test_bending_undoes_straightening(lens):
    np.testing.assert_allclose(lens.distort(lens.undistort(grid())), grid(), atol=1e-8)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.floats(-0.1, 0.3), st.floats(0.0, 0.1), st.floats(-0.5, 119.5), st.floats(-0.5, 79.5))
def test_bending_undoes_straightening_through_any_lens_that_does_not_fold(k1, k2, x, y):
    lens = Lens(OUTLINE, k1, k2)
    assert not lens.folds
    np.testing.assert_allclose(lens.distort(lens.undistort(np.array([[x, y]]))), [[x, y]], atol=1e-7)


def test_a_straight_place_is_the_polynomial_of_what_is_seen():
    lens = Lens(OUTLINE, 0.1, 0.02)
    seen = OUTLINE.centre + np.array([30.0, -24.0])
    x = np.array([0.5, -0.4])
    expected = x * (1.0 + 0.1 * 0.41 + 0.02 * 0.41**2) * 60.0 + OUTLINE.centre
    np.testing.assert_allclose(lens.undistort(seen), expected, rtol=1e-13)


@each_lens
def test_the_centre_stays_where_it_is(lens):
    np.testing.assert_array_equal(lens.undistort(OUTLINE.centre), OUTLINE.centre)
    np.testing.assert_array_equal(lens.distort(OUTLINE.centre), OUTLINE.centre)


@each_lens
def test_slopes_are_the_derivatives_of_straightening(lens):
    points, step = grid(5), 1e-4
    columns = [
        (lens.undistort(points + axis) - lens.undistort(points - axis)) / (2 * step) for axis in step * np.eye(2)
    ]
    np.testing.assert_allclose(lens.slopes(points), np.stack(columns, axis=-1), atol=1e-8)


def test_beyond_the_fold_the_farthest_place_that_is_seen_stands_for_all():
    lens = Lens(OUTLINE, -0.25)
    farthest = np.sqrt(1.0 / 0.75) * lens.unit
    seen = lens.distort(OUTLINE.centre + np.array([[200.0, 0.0], [0.0, 5000.0]]))
    np.testing.assert_allclose(np.linalg.norm(seen - OUTLINE.centre, axis=1), farthest, rtol=1e-9)


def test_a_straight_lens_bends_nothing_and_leaves_no_record():
    lens = Lens(OUTLINE)
    assert lens.is_undistorted
    assert lens.record is None
    np.testing.assert_array_equal(lens.undistort(grid()), grid())
    np.testing.assert_array_equal(lens.distort(grid()), grid())


def test_the_record_s_formula_straightens_as_the_lens_does():
    lens = Lens(OUTLINE, 0.1, 0.02)
    told = lens.record
    x = (grid() - told["centre"]) / told["unit_px"]
    r2 = np.sum(x**2, axis=1, keepdims=True)
    by_hand = x * (1 + told["k1"] * r2 + told["k2"] * r2 * r2) * told["unit_px"] + told["centre"]
    np.testing.assert_allclose(by_hand, lens.undistort(grid()), rtol=1e-12)
