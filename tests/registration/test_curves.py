"""Lines of a vessel in two frames matched: what they determine, and that they claim no more."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.engine.links import fit_link
from smalti.geometry.homographies import SIMILARITY, apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Landmarks, Pair
from smalti.registration.curves import match_vessels
from smalti.registration.vessels import Vessel, resample, trace_vessel
from tests.vessels import ARC, LINES, SIZE, STRAIGHT, WAVE, draw, drawn_along, inside

PAIR = Pair(0, 1)
OUTLINE = Outline.of_pixels(*SIZE)
TURN = 0.08
TRUTH = np.array([[np.cos(TURN), -np.sin(TURN), 22.0], [np.sin(TURN), np.cos(TURN), -20.0], [0.0, 0.0, 1.0]])
DRAWS = 6


@cache
def matched(name, seed, noise=10.0, expected_off=(12.0, -9.0)):
    """The vessel of both frames as a person draws it, matched from an expectation that is off."""
    rng = np.random.default_rng(seed)
    line_j = LINES[name]
    line_i = apply_map(TRUTH, line_j)
    in_i = trace_vessel(draw(line_i, rng, noise), drawn_along(inside(line_i, 0.25, 0.72), rng))
    in_j = trace_vessel(draw(line_j, rng, noise), drawn_along(inside(line_j, 0.22, 0.7), rng))
    assert in_i.found
    assert in_j.found
    expected = TRUTH.copy()
    expected[:2, 2] += expected_off
    found = match_vessels(in_i, in_j, expected, 25.0)
    assert found.found, found.reason
    return found


def landmarks(found):
    return Landmarks(PAIR, found.points_i, found.points_j, found.sigma_px, found.along)


def errors(found):
    """How far the landmarks of j truly lie from those of i: across and along."""
    off = apply_map(TRUTH, found.points_j) - found.points_i
    along = np.sum(off * found.along, axis=1)
    return off[:, 1] * found.along[:, 0] - off[:, 0] * found.along[:, 1], along


@pytest.mark.parametrize("name", LINES)
def test_landmarks_err_across_as_they_say(name):
    normalised = [errors(matched(name, seed))[0] / matched(name, seed).sigma_px for seed in range(DRAWS)]
    # The floor of the deviation and what the bends may add make them a little modest.
    assert 0.4 < np.sqrt(np.mean(np.concatenate(normalised) ** 2)) < 1.3


def test_a_straight_vessel_leaves_the_position_along_it_free():
    link = fit_link(landmarks(matched("straight", 0)), OUTLINE)
    direction = matched("straight", 0).along.mean(axis=0)
    free = np.zeros(8)
    free[[2, 5]] = np.linalg.solve(link.i_from_j[:2, :2], direction)
    across = np.zeros(8)
    across[[2, 5]] = np.linalg.solve(link.i_from_j[:2, :2], direction[::-1] * (-1.0, 1.0))
    # The landmarks' directions scatter by the noise of the line: nothing else is known.
    assert np.linalg.norm(link.root @ free) < 0.05 * np.linalg.norm(link.root @ across)


def test_a_bent_vessel_determines_the_map():
    normalised = []
    for seed in range(DRAWS):
        link = fit_link(landmarks(matched("wave", seed)), OUTLINE, family=SIMILARITY)
        rows = link.root @ SIMILARITY.by_entry.T
        to_unit = np.vstack([OUTLINE.unit_from_pixels, [0.0, 0.0, 1.0]])
        between = np.linalg.inv(link.i_from_j) @ to_unit @ TRUTH @ np.linalg.inv(to_unit)
        error = np.linalg.lstsq(SIMILARITY.by_entry.T, (between - np.eye(3)).ravel()[:8], rcond=None)[0]
        normalised.append(np.sum((rows @ error) ** 2) / 4)
        middle = np.array([[160.0, 120.0]])
        in_pixels = np.linalg.inv(to_unit) @ link.i_from_j @ to_unit
        assert np.linalg.norm(apply_map(in_pixels, middle) - apply_map(TRUTH, middle)) < 3.0
    assert 0.2 < np.mean(normalised) < 2.0


def test_two_straight_vessels_in_different_directions_determine_the_position():
    one, other = matched("straight", 1), matched("arc", 1)
    both = Landmarks(
        PAIR,
        np.vstack([one.points_i, other.points_i]),
        np.vstack([one.points_j, other.points_j]),
        np.concatenate([one.sigma_px, other.sigma_px]),
        np.vstack([one.along, other.along]),
    )
    link = fit_link(both, OUTLINE, family=SIMILARITY)
    to_unit = np.vstack([OUTLINE.unit_from_pixels, [0.0, 0.0, 1.0]])
    in_pixels = np.linalg.inv(to_unit) @ link.i_from_j @ to_unit
    points = np.array([[100.0, 90.0], [200.0, 110.0]])
    assert np.linalg.norm(apply_map(in_pixels, points) - apply_map(TRUTH, points), axis=1).max() < 1.5


def test_the_ends_of_the_strokes_are_no_information():
    found = matched("straight", 2)
    # The strokes cover stretches that are shifted by several pixels: the expectation decides, not the ends.
    _, along = errors(found)
    expected_off = np.array([12.0, -9.0]) @ found.along.mean(axis=0)
    assert abs(np.mean(along) + expected_off) < 4.0


def test_without_expectation_the_strokes_say_how_the_frames_are_turned():
    rng = np.random.default_rng(5)
    turned = np.array([[0.0, -1.0, 280.0], [1.0, 0.0, -40.0], [0.0, 0.0, 1.0]])
    line_i = apply_map(turned, WAVE)
    in_i = trace_vessel(draw(line_i, rng), drawn_along(inside(line_i, 0.25, 0.6), rng))
    in_j = trace_vessel(draw(WAVE, rng), drawn_along(inside(WAVE, 0.25, 0.6), rng))
    found = match_vessels(in_i, in_j, np.eye(3), None)
    assert found.found, found.reason
    off = apply_map(turned, found.points_j) - found.points_i
    assert np.linalg.norm(off, axis=1).max() < 5.0


def test_two_different_vessels_are_refused():
    rng = np.random.default_rng(6)
    in_i = trace_vessel(draw(WAVE, rng), drawn_along(inside(WAVE), rng))
    in_j = trace_vessel(draw(ARC, rng), drawn_along(inside(ARC), rng))
    found = match_vessels(in_i, in_j, np.eye(3), 20.0)
    assert not found.found
    assert "same vessel" in found.reason or "same stretch" in found.reason


def test_landmarks_lie_where_they_are_seen_through_a_lens():
    lens = Lens(OUTLINE, 0.06)
    straight = resample(inside(STRAIGHT, 0.25, 0.75))
    seen = [Vessel(True, lens.distort(line), np.full(len(line), 0.2), 15.0, "") for line in (straight, straight)]
    found = match_vessels(seen[0], seen[1], np.eye(3), 10.0, lens)
    off = lens.undistort(found.points_i) - lens.undistort(found.points_j)
    np.testing.assert_allclose(off, 0.0, atol=0.05)
    # Without the lens the line is straight again, and so are the directions.
    straightened = fit_link(landmarks(found), OUTLINE, lens).along
    np.testing.assert_allclose(straightened, np.broadcast_to(straightened[0], straightened.shape), atol=0.01)
