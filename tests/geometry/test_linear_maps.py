from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from smalti.geometry.linear_maps import IDENTITY, apply, compose, homogeneous, invert, square

LAWS = settings(derandomize=True, deadline=None, max_examples=50)

# Entries this far from the identity keep the determinant above 0.2, so that inverting loses few digits.
_entry = st.floats(-0.4, 0.4)
_shift = st.floats(-1e4, 1e4)
PRECISION = 1e-9  # of shifts of 1e4 px, in pixels


@st.composite
def maps(draw):
    a, b, c, d = (draw(_entry) for _ in range(4))
    return np.array([[1 + a, b, draw(_shift)], [c, 1 + d, draw(_shift)]])


points = st.lists(st.tuples(_shift, _shift), min_size=1, max_size=5).map(np.array)


@LAWS
@given(maps(), maps(), maps())
def test_compose_is_associative(d_from_c, c_from_b, b_from_a):
    left = compose(compose(d_from_c, c_from_b), b_from_a)
    right = compose(d_from_c, compose(c_from_b, b_from_a))
    np.testing.assert_allclose(left, right, rtol=0, atol=PRECISION)


@LAWS
@given(maps())
def test_the_identity_changes_nothing_on_either_side(b_from_a):
    np.testing.assert_array_equal(compose(IDENTITY, b_from_a), b_from_a)
    np.testing.assert_array_equal(compose(b_from_a, IDENTITY), b_from_a)


@LAWS
@given(maps())
def test_invert_undoes_from_both_sides(b_from_a):
    np.testing.assert_allclose(compose(invert(b_from_a), b_from_a), IDENTITY, rtol=0, atol=PRECISION)
    np.testing.assert_allclose(compose(b_from_a, invert(b_from_a)), IDENTITY, rtol=0, atol=PRECISION)


@LAWS
@given(maps(), maps(), points)
def test_applying_a_composition_is_applying_one_after_the_other(c_from_b, b_from_a, points_a):
    at_once = apply(compose(c_from_b, b_from_a), points_a)
    in_turn = apply(c_from_b, apply(b_from_a, points_a))
    np.testing.assert_allclose(at_once, in_turn, rtol=0, atol=PRECISION)


@LAWS
@given(maps(), points)
def test_apply_is_the_matrix_product_in_homogeneous_coordinates(b_from_a, points_a):
    expected = (square(b_from_a) @ homogeneous(points_a).T).T
    np.testing.assert_allclose(homogeneous(apply(b_from_a, points_a)), expected, rtol=0, atol=PRECISION)


@LAWS
@given(maps(), maps())
def test_square_turns_compose_into_the_matrix_product(c_from_b, b_from_a):
    expected = square(c_from_b) @ square(b_from_a)
    np.testing.assert_allclose(square(compose(c_from_b, b_from_a)), expected, rtol=0, atol=PRECISION)


def test_stacks_are_mapped_one_by_one():
    rng = np.random.default_rng(1)
    outer, inner = (np.eye(2, 3) + rng.normal(0.0, 0.1, size=(4, 2, 3)) for _ in range(2))
    points_a = rng.normal(size=(4, 5, 2))
    for n in range(4):
        np.testing.assert_allclose(compose(outer, inner)[n], compose(outer[n], inner[n]), rtol=1e-14)
        np.testing.assert_allclose(invert(outer)[n], invert(outer[n]), rtol=1e-13)
        np.testing.assert_allclose(apply(outer, points_a)[n], apply(outer[n], points_a[n]), rtol=1e-13)


def test_one_map_composes_with_a_stack_on_either_side():
    rng = np.random.default_rng(2)
    stack = np.eye(2, 3) + rng.normal(0.0, 0.1, size=(4, 2, 3))
    one = np.eye(2, 3) + rng.normal(0.0, 0.1, size=(2, 3))
    for n in range(4):
        np.testing.assert_allclose(compose(one, stack)[n], compose(one, stack[n]), rtol=1e-13)
        np.testing.assert_allclose(compose(stack, one)[n], compose(stack[n], one), rtol=1e-13)


def test_compose_leaves_its_arguments_alone():
    outer, inner = np.full((2, 3), 2.0), np.full((2, 3), 3.0)
    compose(outer, inner)
    assert (outer == 2.0).all()
    assert (inner == 3.0).all()
