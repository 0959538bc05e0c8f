"""Centre lines of vessels under strokes, against drawn vessels whose centre lines are known."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.registration.vessels import FLOOR_PX, trace_vessel
from tests.vessels import LINES, STRAIGHT, WAVE, draw, drawn_along, inside, off_line

each_line = pytest.mark.parametrize("line", LINES.values(), ids=LINES)
DRAWS = 6


@each_line
@pytest.mark.parametrize("depth", [30.0, -30.0], ids=["dark", "bright"])
def test_a_line_within_a_fifth_of_a_pixel_under_a_stroke_three_pixels_off(line, depth):
    rng = np.random.default_rng(1)
    found = trace_vessel(draw(line, rng, depth=depth), drawn_along(inside(line), rng))
    assert found.found, found.reason
    assert np.sqrt(np.mean(off_line(found.points, line) ** 2)) < 0.2


def test_its_deviation_is_that_of_many_noisy_pictures():
    # Noise and little contrast, so that the floor of the deviation does not hide what the noise does.
    normalised = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        found = trace_vessel(draw(WAVE, rng, noise=12.0, depth=25.0), drawn_along(inside(WAVE), rng))
        assert found.found, found.reason
        assert np.median(found.sigma_px) > 2 * FLOOR_PX
        normalised.append(off_line(found.points, WAVE) / found.sigma_px)
    assert 0.75 < np.sqrt(np.mean(np.concatenate(normalised) ** 2)) < 1.25


@pytest.mark.parametrize("texture", [0.0, 4.0, 10.0], ids=["noise", "faint texture", "texture"])
def test_nothing_where_there_is_no_vessel(texture):
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        found = trace_vessel(draw(None, rng, texture=texture), drawn_along(inside(WAVE), rng))
        assert not found.found
        assert "no clear vessel" in found.reason


def test_a_stroke_beside_the_vessel_finds_none():
    rng = np.random.default_rng(2)
    found = trace_vessel(draw(STRAIGHT, rng), drawn_along(inside(STRAIGHT) + np.array([0.0, 25.0]), rng))
    assert not found.found


def test_a_click_is_no_stroke():
    found = trace_vessel(draw(STRAIGHT, np.random.default_rng(3)), np.array([[100.0, 90.0], [108.0, 91.0]]))
    assert not found.found
    assert "too short" in found.reason


def test_the_rim_of_the_field_of_view_is_no_vessel():
    rng = np.random.default_rng(4)
    picture = draw(None, rng)
    x, y = np.meshgrid(np.arange(picture.shape[1]), np.arange(picture.shape[0]))
    mask = (x - 160.0) ** 2 + (y - 120.0) ** 2 < 110.0**2
    picture[~mask] = 5
    angle = np.linspace(-0.8, 0.8, 20)
    rim = np.column_stack([160 + 107 * np.cos(angle), 120 + 107 * np.sin(angle)])
    assert not trace_vessel(picture, rim, mask).found


@pytest.mark.parametrize("stroke", [np.zeros((0, 2)), [[5.0, 5.0]], [[5.0, 5.0], [5.0, 5.0]]])
def test_a_stroke_without_length_is_too_short(stroke):
    vessel = trace_vessel(np.full((60, 80), 90, np.uint8), np.array(stroke))
    assert not vessel.found
    assert "too short" in vessel.reason


def test_a_stroke_without_end_is_refused_before_it_fills_the_memory():
    stroke = np.tile([[-1e6, -1e6], [1e6, 1e6]], (2500, 1))
    vessel = trace_vessel(np.full((60, 80), 90, np.uint8), stroke)
    assert not vessel.found
    assert "too long" in vessel.reason


def test_under_a_stroke_nothing_may_be_visible():
    stroke = np.array([[10.0, 30.0], [60.0, 30.0]])
    vessel = trace_vessel(np.full((60, 80), 90, np.uint8), stroke, np.zeros((60, 80), bool))
    assert not vessel.found
    assert "visible" in vessel.reason
