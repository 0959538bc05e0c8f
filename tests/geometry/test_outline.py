from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.errors import UsageError
from smalti.geometry.linear_maps import apply
from smalti.geometry.outline import Outline

LAWS = settings(derandomize=True, deadline=None, max_examples=50)
UNIT_SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])

outlines = st.builds(
    lambda left, top, width, height: Outline(left, top, left + width, top + height),
    st.floats(-100, 100),
    st.floats(-100, 100),
    st.floats(1, 1000),
    st.floats(1, 1000),
)
angles = st.floats(0, 2 * np.pi)


def turned(points: np.ndarray, angle: float) -> np.ndarray:
    cos, sin = np.cos(angle), np.sin(angle)
    return points @ np.array([[cos, sin], [-sin, cos]])


def test_an_image_reaches_half_a_pixel_beyond_its_pixels_centres():
    assert Outline.of_pixels(640, 480) == Outline(-0.5, -0.5, 639.5, 479.5)


def test_sizes_of_a_known_outline():
    outline = Outline(1.0, 2.0, 7.0, 10.0)
    assert (outline.width, outline.height, outline.area) == (6.0, 8.0, 48.0)
    np.testing.assert_array_equal(outline.centre, [4.0, 6.0])


def test_corners_go_clockwise_on_the_screen_from_the_top_left():
    expected = [[1.0, 2.0], [7.0, 2.0], [7.0, 10.0], [1.0, 10.0]]
    np.testing.assert_array_equal(Outline(1.0, 2.0, 7.0, 10.0).corners, expected)


@LAWS
@given(outlines, angles)
def test_the_inner_square_fits_at_every_angle(outline, angle):
    square = outline.centre + turned(UNIT_SQUARE * outline.inner_half_side, angle)
    assert outline.contains(square, tolerance=1e-9).all()


@LAWS
@given(outlines)
def test_no_larger_square_fits_at_45_degrees(outline):
    square = outline.centre + turned(UNIT_SQUARE * outline.inner_half_side * 1.001, np.pi / 4)
    assert not outline.contains(square).all()


@LAWS
@given(outlines, angles)
def test_the_outer_square_contains_the_frame_at_every_angle(outline, angle):
    corners = turned(outline.corners - outline.centre, angle)
    assert (np.abs(corners) <= outline.outer_half_side * (1 + 1e-12)).all()


@LAWS
@given(outlines)
def test_no_smaller_square_contains_the_frame_on_its_diagonal(outline):
    diagonal = np.arctan2(outline.height, outline.width)
    corners = turned(outline.corners - outline.centre, -diagonal)
    assert (np.abs(corners) > outline.outer_half_side * 0.999).any()


@LAWS
@given(outlines)
def test_units_have_their_origin_at_the_centre(outline):
    np.testing.assert_allclose(apply(outline.unit_from_pixels, outline.centre[None]), 0.0, atol=1e-12)


@LAWS
@given(outlines)
def test_one_unit_is_unit_pixels_long(outline):
    ends = outline.centre + np.array([[0.0, 0.0], [outline.unit, 0.0], [0.0, outline.unit]])
    expected = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    np.testing.assert_allclose(apply(outline.unit_from_pixels, ends), expected, atol=1e-9)


def test_the_edge_belongs_to_the_frame():
    outline = Outline(0.0, 0.0, 10.0, 5.0)
    assert outline.contains(outline.corners).all()


def test_points_beyond_any_side_are_outside():
    outline = Outline(0.0, 0.0, 10.0, 5.0)
    beyond = np.array([[-0.1, 2.0], [10.1, 2.0], [5.0, -0.1], [5.0, 5.1]])
    assert not outline.contains(beyond).any()


def test_the_tolerance_widens_every_side():
    outline = Outline(0.0, 0.0, 10.0, 5.0)
    beyond = np.array([[-0.1, 2.0], [10.1, 2.0], [5.0, -0.1], [5.0, 5.1]])
    assert outline.contains(beyond, tolerance=0.11).all()


@pytest.mark.parametrize(
    "sides",
    [(0, 0, 0, 5), (0, 5, 5, 0)],
    ids=["thin", "upside"],
)
def test_an_outline_without_area_is_refused(sides):
    with pytest.raises(UsageError, match="area"):
        Outline(*map(float, sides))


@pytest.mark.parametrize(("side", "value"), [(0, np.nan), (1, np.inf), (2, np.inf), (3, np.nan)])
def test_an_outline_that_is_not_finite_is_refused(side, value):
    sides = [0.0, 0.0, 10.0, 5.0]
    sides[side] = value
    with pytest.raises(UsageError, match="finite"):
        Outline(*sides)
