from __future__ import annotations

import numpy as np
import pytest

from smalti.geometry.linear_maps import AFFINE, FAMILIES, SIMILARITY, TRANSLATION, apply, compose, invert, square
from smalti.paper.linear_adjustment import LinearAdjustment, fit_affine_link
from smalti.paper.paper_refinement import _jacobians, _residuals, refine
from smalti.records import Landmarks, Pair
from tests.paper.problems import random_problem, raster
from tests.worlds import OUTLINE, random_map

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def cost_in_own_frames(problem, maps):
    """Return Σ |(Θ_i⁻¹ Θ_j - T̂) R|², pixels of each link's frame i over the noise of its landmarks."""
    squares = square(maps)
    total = 0.0
    for link in problem.links:
        relative = np.linalg.solve(squares[link.pair.i], squares[link.pair.j])[:2]
        total += np.sum(((relative - link.i_from_j) @ link.root) ** 2)
    return total


def moved(maps, frame, direction, step):
    """Return the maps with Θ ← Θ (I + δ) at one frame."""
    result = maps.copy()
    result[frame] = compose(maps[frame], np.eye(2, 3) + step * direction)
    return result


@each_family
def test_the_gradient_vanishes_at_the_result(family):
    problem = random_problem(np.random.default_rng(0), frames=7, loops=4, family=family, noise=2.0)
    maps = refine(problem.adjustment(3)).mosaic_from_frame
    cost = cost_in_own_frames(problem, maps)
    for frame in range(problem.frames):
        if frame == 3:
            continue
        for direction in family.tangent:
            # A step that changes the cost by about 1e-7 of itself suits both differences.
            step = 1e-8
            while True:
                ahead = cost_in_own_frames(problem, moved(maps, frame, direction, step))
                behind = cost_in_own_frames(problem, moved(maps, frame, direction, -step))
                if ahead + behind - 2 * cost > 1e-7 * cost:
                    break
                step *= 2
            slope = (ahead - behind) / (2 * step)
            curvature = (ahead + behind - 2 * cost) / step**2
            # The cosine of the angle between the residuals and the direction in which they would move. The
            # refinement ends when a step lowers the cost by 1e-10 of itself: that is a cosine of 1e-5.
            assert abs(slope) / np.sqrt(2 * curvature * cost) < 1e-5


@each_family
@pytest.mark.parametrize("side", ["i", "j"])
def test_the_jacobians_are_the_finite_differences_of_the_residuals(family, side):
    rng = np.random.default_rng(0)
    adjustment = random_problem(rng, frames=5, family=family).adjustment(0)
    # Anywhere but at the solution, where terms in the residual would hide.
    maps = np.array([random_map(rng, family) for _ in range(5)])
    maps[:, :, 2] /= adjustment.outline.unit
    _, relative, _ = _residuals(adjustment, maps)
    jacobian = _jacobians(adjustment, relative, family.tangent)["ij".index(side)]
    step = 1e-5
    for at, ends in enumerate(adjustment.ends):
        for c, direction in enumerate(family.tangent):
            frame = ends["ij".index(side)]
            ahead = _residuals(adjustment, moved(maps, frame, direction, step))[2][at]
            behind = _residuals(adjustment, moved(maps, frame, direction, -step))[2][at]
            expected = (ahead - behind).reshape(6) / (2 * step)
            scale = np.abs(jacobian[at]).max()
            np.testing.assert_allclose(jacobian[at, :, c], expected, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("family", [AFFINE, SIMILARITY], ids=lambda family: family.name)
def test_the_cost_of_a_problem_with_loops_is_lowered(family):
    problem = random_problem(np.random.default_rng(0), frames=8, loops=5, family=family, noise=4.0)
    adjustment = problem.adjustment(0)
    linear = cost_in_own_frames(problem, adjustment.mosaic_from_frame)
    assert cost_in_own_frames(problem, refine(adjustment).mosaic_from_frame) < 0.999 * linear


def test_the_reported_cost_is_that_of_the_result():
    problem = random_problem(np.random.default_rng(1), family=AFFINE)
    result = refine(problem.adjustment(0))
    assert result.cost == pytest.approx(cost_in_own_frames(problem, result.mosaic_from_frame), rel=1e-9)


def test_the_result_does_not_depend_on_the_reference_frame():
    problem = random_problem(np.random.default_rng(6), family=AFFINE)
    adjustments = [problem.adjustment(reference) for reference in (0, 3, 5)]
    costs = [cost_in_own_frames(problem, refine(one).mosaic_from_frame) for one in adjustments]
    np.testing.assert_allclose(costs, costs[0], rtol=1e-8)


@each_family
def test_a_chain_is_left_as_it_is(family):
    problem = random_problem(np.random.default_rng(2), loops=0, family=family, noise=2.0)
    adjustment = problem.adjustment(3)
    refined = refine(adjustment).mosaic_from_frame
    np.testing.assert_allclose(refined, adjustment.mosaic_from_frame, rtol=0, atol=1e-9)


def test_translations_are_left_as_they_are():
    problem = random_problem(np.random.default_rng(0), loops=5, family=TRANSLATION, noise=4.0)
    adjustment = problem.adjustment(0)
    refined = refine(adjustment).mosaic_from_frame
    np.testing.assert_allclose(refined, adjustment.mosaic_from_frame, rtol=0, atol=1e-9)


def test_a_raster_with_many_loops_shrinks_less_than_the_linear_solution():
    adjustment = raster(np.random.default_rng(0), frames=100, loops=12).adjustment(0)
    linear = np.linalg.det(adjustment.mosaic_from_frame[:, :, :2]).min()
    refined = np.linalg.det(refine(adjustment).mosaic_from_frame[:, :, :2]).min()
    assert abs(refined - 1.0) < abs(linear - 1.0)


@each_family
def test_links_without_noise_give_the_truth(family):
    problem = random_problem(np.random.default_rng(3), family=family, exact=True)
    refined = refine(problem.adjustment(3)).mosaic_from_frame
    np.testing.assert_allclose(refined, problem.truth_about(3), rtol=0, atol=1e-8)


def test_the_reference_frame_stays_the_identity():
    refined = refine(random_problem(np.random.default_rng(4), family=AFFINE).adjustment(2)).mosaic_from_frame
    np.testing.assert_allclose(refined[2], np.eye(2, 3), rtol=0, atol=1e-13)


@each_family
def test_the_result_stays_in_the_family(family):
    refined = refine(random_problem(np.random.default_rng(5), family=family).adjustment(0)).mosaic_from_frame
    columns = family.tangent.reshape(family.freedom, 6).T
    beyond = (refined - family.offset).reshape(-1, 6).T
    nearest = columns @ np.linalg.lstsq(columns, beyond, rcond=None)[0]
    np.testing.assert_allclose(beyond, nearest, rtol=0, atol=1e-11)


@each_family
def test_it_converges_in_few_steps(family):
    problem = random_problem(np.random.default_rng(0), frames=8, loops=5, family=family, noise=2.0)
    result = refine(problem.adjustment(0))
    assert result.converged
    assert result.steps <= 15


def test_a_linear_solution_that_mirrors_a_frame_is_no_start_to_refine_from():
    turn = np.deg2rad(130)
    rotation = np.array([[np.cos(turn), -np.sin(turn), 0.0], [np.sin(turn), np.cos(turn), 0.0]])
    truth = [np.eye(2, 3)]
    for _ in range(3):
        truth.append(compose(truth[-1], rotation))
    adjustment = LinearAdjustment(4, OUTLINE, [exact_link(truth, i, j) for i, j in ((0, 1), (1, 2), (2, 3), (0, 3))])
    maps = adjustment.unit_maps.copy()
    maps[2, 0] *= -1
    adjustment.unit_maps = maps
    result = refine(adjustment)
    assert result.converged
    np.testing.assert_allclose(result.mosaic_from_frame, truth, rtol=0, atol=1e-9)


def exact_link(truth, i, j):
    corners = OUTLINE.corners
    return fit_affine_link(Landmarks(Pair(i, j), apply(compose(invert(truth[i]), truth[j]), corners), corners))
