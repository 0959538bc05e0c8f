"""The homographies of all frames: exact worlds, noise, wrong landmarks, and frames that hang on little."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.adjustment import perspective
from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import fit_link
from smalti.adjustment.perspective import anneal_perspective, fit_perspective, residual_px
from smalti.adjustment.refinement import refine
from smalti.geometry.affine import square
from smalti.geometry.homography import project
from smalti.geometry.outline import Outline
from smalti.records import Landmarks, Pair

OUTLINE = Outline.of_pixels(640, 480)
UNIT_FROM_PIXELS = square(OUTLINE.unit_from_pixels)
PIXELS_FROM_UNIT = np.linalg.inv(UNIT_FROM_PIXELS)
NO_PRIOR = 1e9
each_seed = pytest.mark.parametrize("seed", range(3))


def tilted_frames(rng, rows=3, columns=4, strength=0.03):
    """Homographies (N, 3, 3) of a camera that goes to and fro and tilts; the first one is the identity."""
    maps = []
    for row in range(rows):
        for column in range(columns) if row % 2 == 0 else reversed(range(columns)):
            tilted = np.eye(3)
            tilted[:2, :2] += rng.normal(0.0, 0.03, (2, 2))
            tilted[:2, 2] = np.array([150.0 * column, 130.0 * row]) / OUTLINE.unit
            tilted[2, :2] = rng.normal(0.0, strength, 2)
            maps.append(tilted)
    frames = PIXELS_FROM_UNIT @ np.linalg.inv(maps[0]) @ np.array(maps) @ UNIT_FROM_PIXELS
    return frames / frames[:, 2:, 2:]


def measure(rng, truth, pair, sigma, count=30):
    """Landmarks of two frames where both see the scene; exact if sigma is 0."""
    points = rng.uniform(OUTLINE.corners[0], OUTLINE.corners[2], (3000, 2))
    there = project(np.linalg.inv(truth[pair.i]) @ truth[pair.j], points)
    seen = np.flatnonzero(OUTLINE.contains(there))[:count]
    return Landmarks(pair, there[seen] + sigma * rng.normal(size=(len(seen), 2)), points[seen], sigma or 1.0)


def neighbours(truth, reach=0.65):
    """The pairs whose centres are less than `reach` of a frame's width apart in the mosaic."""
    centres = project(truth, OUTLINE.centre[None])[:, 0]
    near = np.linalg.norm(centres[:, None] - centres[None], axis=2) < reach * OUTLINE.width
    return [Pair(int(i), int(j)) for i, j in np.argwhere(np.triu(near, 1))]


@cache
def world(seed, sigma=0.0):
    """Truth (N, 3, 3), landmarks, and the affine mosaic that fits them best."""
    rng = np.random.default_rng(seed)
    truth = tilted_frames(rng)
    landmarks = [measure(rng, truth, pair, sigma) for pair in neighbours(truth)]
    return truth, landmarks, affine_start(len(truth), landmarks)


def affine_start(frames, landmarks):
    return refine(Adjustment(frames, OUTLINE, [fit_link(record) for record in landmarks])).mosaic_from_frame


def largest_error(found, truth):
    """How far a corner is from its place, at most, in pixels of the reference frame."""
    return float(np.linalg.norm(project(found, OUTLINE.corners) - project(truth, OUTLINE.corners), axis=2).max())


def in_units(maps):
    units = UNIT_FROM_PIXELS @ maps @ PIXELS_FROM_UNIT
    return units / units[:, 2:, 2:]


def problem_of(landmarks, reference=0):
    return perspective._Problem(perspective._Rows.of(landmarks, OUTLINE, 80), reference, OUTLINE.unit)


@each_seed
def test_an_exact_world_is_recovered_from_the_affine_mosaic(seed):
    truth, landmarks, start = world(seed)
    sigma = np.full(len(truth), NO_PRIOR)
    found, _, converged = problem_of(landmarks).solve(in_units(square(start)), sigma)
    assert largest_error(square(start), truth) > 10.0
    assert converged
    assert largest_error(PIXELS_FROM_UNIT @ found @ UNIT_FROM_PIXELS, truth) < 1e-6


@each_seed
def test_what_is_expected_of_cameras_costs_an_exact_world_little(seed):
    truth, landmarks, start = world(seed)
    fit = fit_perspective(start, OUTLINE, landmarks, 0)
    assert fit.converged
    assert largest_error(fit.mosaic_from_frame, truth) < 0.5


@each_seed
@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_the_scale_is_the_noise_of_a_coordinate(seed, sigma):
    _, landmarks, start = world(seed, sigma)
    fit = fit_perspective(start, OUTLINE, landmarks, 0)
    # 12 frames of 8 parameters over 1,000 landmarks take up a few percent of it.
    assert fit.scale_px == pytest.approx(sigma, rel=0.1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("side", ["diagonal", "crossed", "gradient"])
def test_the_normal_equations_are_those_of_finite_differences(seed, side, monkeypatch):
    truth, landmarks, _ = world(seed, 1.0)
    rng = np.random.default_rng(seed)
    # Anywhere but at the solution, and with perspective, so that no term is hidden.
    maps = in_units(truth) + rng.normal(0.0, 0.003, truth.shape)
    maps /= maps[:, 2:, 2:]
    problem, scale, sigma = problem_of(landmarks), 5.0, np.full(len(maps), NO_PRIOR)
    recorded = {}

    def record(self, diagonal, crossed, gradient):
        recorded.update(diagonal=diagonal, crossed=crossed, gradient=gradient)
        return np.zeros((len(diagonal), 8))

    monkeypatch.setattr(perspective._Problem, "_solve", record)
    residual = problem.residuals(maps)
    problem.step(maps, residual, sigma, scale, 0.0)
    root = problem.rows.weight / scale / np.sqrt(1.0 + np.sum(residual**2, axis=1) / scale**2)
    jacobian = np.zeros((len(maps), 8, residual.size))
    for frame in range(len(maps)):
        for entry in range(8):
            sides = []
            for step in (1e-6, -1e-6):
                moved, change = maps.copy(), np.eye(3)
                change[entry // 3, entry % 3] += step
                moved[frame] = maps[frame] @ change
                sides.append((problem.residuals(moved) * root[:, None]).ravel())
            jacobian[frame, entry] = (sides[0] - sides[1]) / 2e-6
    i, j = problem.rows.pairs.T
    expected = {
        "diagonal": jacobian @ np.swapaxes(jacobian, 1, 2),
        "crossed": jacobian[i] @ np.swapaxes(jacobian[j], 1, 2),
        "gradient": jacobian @ (residual * root[:, None]).ravel(),
    }[side]
    np.testing.assert_allclose(recorded[side], expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@each_seed
def test_a_tenth_of_wrong_landmarks_changes_little(seed):
    truth, landmarks, start = world(seed, 1.0)
    rng = np.random.default_rng(seed)
    spoilt = []
    for record in landmarks:
        points = record.points_i.copy()
        wrong = rng.random(len(points)) < 0.1
        points[wrong] = rng.uniform(OUTLINE.corners[0], OUTLINE.corners[2], (wrong.sum(), 2))
        spoilt.append(Landmarks(record.pair, points, record.points_j, record.sigma))
    clean = fit_perspective(start, OUTLINE, landmarks, 0)
    fit = fit_perspective(start, OUTLINE, spoilt, 0)
    assert largest_error(fit.mosaic_from_frame, truth) < largest_error(clean.mosaic_from_frame, truth) + 3.0
    assert fit.scale_px == pytest.approx(1.0, rel=0.3)


def test_what_is_expected_of_cameras_does_not_matter_to_frames_with_points_all_over():
    truth, landmarks, start = world(2, 2.0)
    free, _, _ = problem_of(landmarks).solve(in_units(square(start)), np.full(len(truth), NO_PRIOR))
    found = fit_perspective(start, OUTLINE, landmarks, 0).mosaic_from_frame
    without_prior = largest_error(PIXELS_FROM_UNIT @ free @ UNIT_FROM_PIXELS, truth)
    assert largest_error(found, truth) < without_prior + 2.0


@each_seed
@pytest.mark.parametrize("height", [5.0, 20.0])
def test_the_perspective_of_a_frame_that_hangs_on_a_strip_stays_small(seed, height):
    truth, landmarks, _ = world(seed, 0.5)
    rng, last = np.random.default_rng(seed), len(truth)
    points = rng.uniform([0.0, OUTLINE.bottom - height], [OUTLINE.right, OUTLINE.bottom], (12, 2))
    there = points - [0.0, OUTLINE.height - height] + rng.normal(0.0, 2.0, points.shape)
    landmarks = [*landmarks, Landmarks(Pair(0, last), there, points, 1.0)]
    fit = fit_perspective(affine_start(last + 1, landmarks), OUTLINE, landmarks, 0)
    assert np.abs(in_units(fit.mosaic_from_frame)[:, 2, :2]).sum(axis=1).max() <= perspective.STRONGEST_PERSPECTIVE


def test_a_frame_with_more_perspective_than_a_camera_sees_is_fitted_as_an_affine_one():
    truth, landmarks, _ = world(0, 0.5)
    last = len(truth)
    steep = np.eye(3)
    steep[2, 0] = 0.7
    points = np.random.default_rng(0).uniform([200.0, 0.0], [639.0, 479.0], (30, 2))
    there = project(PIXELS_FROM_UNIT @ steep @ UNIT_FROM_PIXELS, points)
    landmarks = [*landmarks, Landmarks(Pair(0, last), there, points, 0.2)]
    fit = fit_perspective(affine_start(last + 1, landmarks), OUTLINE, landmarks, 0)
    found = np.abs(in_units(fit.mosaic_from_frame)[:, 2, :2]).sum(axis=1)
    assert found[last] < 0.01
    assert largest_error(fit.mosaic_from_frame[:last], truth) < 5.0


@pytest.mark.parametrize("reference", [0, 5])
def test_the_reference_frame_stays_where_it_is(reference):
    _, landmarks, start = world(1, 1.0)
    about = np.linalg.solve(square(start)[reference], square(start))[:, :2]
    fit = fit_perspective(about, OUTLINE, landmarks, reference)
    np.testing.assert_allclose(fit.mosaic_from_frame[reference], np.eye(3), rtol=0, atol=1e-9)


def test_the_same_landmarks_in_another_order_give_the_same_bits():
    _, landmarks, start = world(1, 1.0)
    forth = fit_perspective(start, OUTLINE, landmarks, 0).mosaic_from_frame
    back = fit_perspective(start, OUTLINE, landmarks[::-1], 0).mosaic_from_frame
    np.testing.assert_array_equal(forth, back)


@cache
def annealed_parts():
    """Two parts of a world that only a guess joins: the start, the guess, the landmarks, and what was annealed."""
    truth, landmarks, _ = world(0, 0.5)
    inside = [record for record in landmarks if (record.pair.i < 6) == (record.pair.j < 6)]
    guess = Landmarks(Pair(5, 6), OUTLINE.corners + np.array([200.0, 0.0]), OUTLINE.corners, 800.0)
    start = square(affine_start(len(truth), [*inside, guess]))
    return start, guess, inside, anneal_perspective(start, OUTLINE, inside, [guess.pair], 0)


def test_annealing_fits_parts_that_only_a_guess_joins():
    start, _, inside, found = annealed_parts()
    assert max(residual_px(start, record) for record in inside) > 2.0
    assert max(residual_px(found, record) for record in inside) < 1.0


def test_annealing_keeps_parts_about_where_the_guess_has_them():
    _, guess, _, found = annealed_parts()
    assert residual_px(found, guess) < 100.0


def test_points_spread_out_are_far_from_each_other_and_in_order():
    rng = np.random.default_rng(0)
    crowd = rng.normal(0.0, 0.1, (50, 2))
    points = np.vstack([crowd, 10.0 * np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]]), crowd])
    assert perspective.spread_out(points, 4).tolist() == [50, 51, 52, 53]
    assert perspective.spread_out(points[:3], 4).tolist() == [0, 1, 2]
