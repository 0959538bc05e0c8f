"""χ² of a link against the others: its distribution over honest worlds, its laws, and a dense computation of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smalti.adjustment.innovation import Agreement
from smalti.adjustment.link import fit_link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import refine
from smalti.geometry.affine import compose, invert, square
from smalti.geometry.family import AFFINE, FAMILIES, SIMILARITY, TRANSLATION
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, Problem, measured, random_walk, spread_points

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
RING = [Pair(0, 1), Pair(1, 2), Pair(2, 3), Pair(3, 4), Pair(0, 4), Pair(1, 3)]
NEW = Pair(0, 3)
WORLDS = 150
NOISE = 0.2
"""px, small beside the frame: the χ² is that of the linearised residuals."""


def world(seed, family=AFFINE, pairs=RING, noise=NOISE, told=NOISE):
    """Five frames linked with a loop or two, measured with `noise` by someone who says `told`."""
    rng = np.random.default_rng(seed)
    truth = random_walk(rng, 5, family)
    landmarks = []
    for pair in (*pairs, NEW):
        points = spread_points(rng, int(rng.integers(4, 9)))
        record = measured(rng, truth, pair, points, noise)
        landmarks.append(Landmarks(pair, record.points_i, record.points_j, told))
    *part, new = landmarks
    return Problem(family, OUTLINE, truth, tuple(part)), fit_link(new, family)


def agreement_of(problem, reference=0):
    adjustment = problem.adjustment(reference)
    return Agreement(adjustment, refine(adjustment))


@pytest.fixture(scope="module")
def honest():
    """χ² (worlds,) of a new link and (worlds, links) of the parts, over affine worlds."""
    new, part = [], []
    for seed in range(WORLDS):
        problem, link = world(seed)
        agreement = agreement_of(problem)
        new.append(agreement.of_new(link))
        part.append([agreement.of_part(pair) for pair in RING])
    return np.array(new), np.array(part)


def test_honest_new_links_have_a_chi2_of_six_degrees(honest):
    new, _ = honest
    assert np.mean(new) == pytest.approx(6.0, abs=4 * np.sqrt(12 / WORLDS))
    assert np.var(new) == pytest.approx(12.0, rel=0.5)


@pytest.mark.parametrize("number", range(len(RING)), ids=map(str, RING))
def test_honest_parts_have_a_chi2_of_six_degrees(honest, number):
    _, part = honest
    assert np.mean(part[:, number]) == pytest.approx(6.0, abs=4 * np.sqrt(12 / WORLDS))


@pytest.mark.parametrize("family", [SIMILARITY, TRANSLATION], ids=["similarity", "translation"])
def test_links_of_a_smaller_family_have_the_degrees_of_their_freedom(family):
    new, part = [], []
    for seed in range(60):
        problem, link = world(seed, family)
        agreement = agreement_of(problem)
        new.append(agreement.of_new(link))
        part += [agreement.of_part(pair) for pair in RING]
    assert np.mean(new) == pytest.approx(family.freedom, abs=4 * np.sqrt(2 * family.freedom / 60))
    assert np.mean(part) == pytest.approx(family.freedom, rel=0.25)


@each_family
@pytest.mark.parametrize("seed", range(3))
def test_the_derivatives_are_the_finite_differences_of_the_residual(family, seed):
    problem, link = world(seed, family, noise=2.0)
    agreement = agreement_of(problem)
    _, jacobian = agreement._residual(link)
    step, maps = 1e-6, agreement._unit_maps
    for column in range(jacobian.shape[1]):
        frame = link.pair.i if column < family.freedom else link.pair.j
        sides = []
        for sign in (1, -1):
            moved = maps.copy()
            move = np.eye(2, 3) + sign * step * family.tangent[column % family.freedom]
            moved[frame] = compose(maps[frame], move)
            there = Agreement(agreement.adjustment, agreement.refined)
            object.__setattr__(there, "_unit_maps", moved)
            sides.append(there._residual(link)[0])
        expected = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(jacobian[:, column], expected, rtol=0, atol=1e-7 * np.abs(jacobian).max())


def dense_chi2_of_new(problem, agreement, link):
    """The same with the reference frame struck out, derivatives by finite differences, nothing sparse, in pixels."""
    maps = square(agreement.refined.mosaic_from_frame)
    directions = square(problem.family.tangent) - np.diag([0.0, 0.0, 1.0])
    free = range(1, problem.frames)

    def residual(link, maps):
        relative = np.linalg.solve(maps[link.pair.i], maps[link.pair.j])[:2]
        return ((relative - link.i_from_j) @ link.root).ravel()

    def derivatives(link):
        columns = []
        for frame in free:
            for direction in directions:
                step = 1e-6 * (100.0 if direction[:2, 2].any() else 1.0)
                ahead, behind = maps.copy(), maps.copy()
                ahead[frame] = maps[frame] @ (np.eye(3) + step * direction)
                behind[frame] = maps[frame] @ (np.eye(3) - step * direction)
                columns.append((residual(link, ahead) - residual(link, behind)) / (2 * step))
        return np.array(columns).T

    stacked = np.vstack([derivatives(part) for part in problem.links])
    by_new = derivatives(link)
    predicted = by_new @ np.linalg.pinv(stacked.T @ stacked, rcond=1e-14) @ by_new.T + np.eye(6)
    off = residual(link, maps)
    return off @ np.linalg.solve(predicted, off)


@each_family
@pytest.mark.parametrize("seed", range(3))
def test_of_new_equals_a_dense_computation(family, seed):
    problem, link = world(seed, family, noise=1.0, told=1.0)
    agreement = agreement_of(problem)
    assert agreement.of_new(link) == pytest.approx(dense_chi2_of_new(problem, agreement, link), rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pair", [Pair(0, 4), Pair(1, 3), Pair(2, 3)], ids=str)
def test_a_part_is_judged_as_if_it_came_new_to_the_others(seed, pair):
    problem, _ = world(seed, noise=0.05, told=0.05)
    without = problem.adjustment(links=[link for link in problem.links if link.pair != pair])
    link = next(link for link in problem.links if link.pair == pair)
    as_new = Agreement(without, refine(without)).of_new(link)
    assert agreement_of(problem).of_part(pair) == pytest.approx(as_new, rel=0.02)


@each_family
def test_nothing_contradicts_a_bridge(family):
    problem, _ = world(5, family, pairs=[*RING[:3], Pair(0, 2), Pair(3, 4)])
    adjustment = problem.adjustment()
    refined = refine(adjustment)
    # Not refined to the end: the frames of the bridges are off by more than rounding.
    short = refined.mosaic_from_frame.copy()
    short[3:, :, 2] += 0.01
    short[4:, :, 2] += 0.01
    agreement = Agreement(adjustment, replace(refined, mosaic_from_frame=short))
    # (2, 3) and (3, 4) hang on nothing else; the triangle 0, 1, 2 checks itself.
    assert agreement.of_part(Pair(2, 3)) < 1e-6
    assert agreement.of_part(Pair(3, 4)) < 1e-6
    assert agreement.of_part(Pair(0, 1)) > 1e-2


@pytest.mark.parametrize("reference", range(1, 5))
def test_the_choice_of_the_reference_frame_does_not_matter(reference):
    problem, link = world(8, noise=1.0, told=1.0)
    here, there = agreement_of(problem), agreement_of(problem, reference)
    assert there.of_new(link) == pytest.approx(here.of_new(link), rel=1e-3)
    for pair in RING:
        assert there.of_part(pair) == pytest.approx(here.of_part(pair), rel=1e-3)


def test_landmarks_that_are_twice_as_far_off_as_told_show_four_times_the_chi2():
    honest = np.mean([agreement_of(p).of_new(link) for p, link in map(world, range(40))])
    boasting = np.mean([agreement_of(p).of_new(link) for p, link in (world(s, told=NOISE / 2) for s in range(40))])
    assert boasting == pytest.approx(4 * honest, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_a_wrong_link_shows_a_chi2_far_beyond_any_honest_one(seed, honest):
    problem, link = world(seed)
    shifted = link.i_from_j.copy()
    shifted[:, 2] += (20.0, -10.0)
    wrong = type(link)(link.pair, shifted, link.root, link.residual_px, link.landmarks)
    assert agreement_of(problem).of_new(wrong) > 20 * honest[0].max()


@each_family
@pytest.mark.parametrize("reference", [0, 2])
def test_the_expected_map_is_as_sure_of_a_centre_as_the_covariance_of_centres(family, reference):
    problem, _ = world(5, family)
    agreement = agreement_of(problem, reference)
    covariance = LocalCovariance(agreement.adjustment, agreement.refined.mosaic_from_frame)
    for i, j in ((0, 3), (3, 0), (2, 4)):
        expected = agreement.expect(j, i)
        spread = np.kron(np.eye(2), np.append(OUTLINE.centre, 1.0))
        mean, cov = covariance.centre(i, j)
        np.testing.assert_allclose(expected.target_from_source @ np.append(OUTLINE.centre, 1.0), mean, atol=1e-8)
        np.testing.assert_allclose(spread @ expected.covariance @ spread.T, cov, rtol=1e-6, atol=1e-9)


def test_expected_maps_scatter_over_worlds_as_their_covariance_says():
    corner = np.append(OUTLINE.corners[2], 1.0)
    scatter, promised = [], []
    for seed in range(WORLDS):
        problem, _ = world(seed)
        expected = agreement_of(problem).expect(3, 0)
        truth = compose(invert(problem.truth[3]), problem.truth[0])
        scatter.append((expected.target_from_source - truth) @ corner)
        spread = np.kron(np.eye(2), corner)
        promised.append(spread @ expected.covariance @ spread.T)
    whitened = [deviation @ np.linalg.solve(cov, deviation) for deviation, cov in zip(scatter, promised, strict=True)]
    assert np.mean(whitened) == pytest.approx(2.0, abs=4 * 2 / np.sqrt(WORLDS))
