from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from smalti.errors import PairError, SmaltiError
from smalti.geometry.linear_maps import AFFINE, FAMILIES, apply, compose, invert
from smalti.paper.centre_covariance import centre_in_other, centre_jacobian
from smalti.paper.haralick import Haralick
from smalti.paper.linear_adjustment import fit_affine_link
from smalti.records import Landmarks, Pair
from tests.paper import dense_reference
from tests.paper.problems import Problem, random_problem, raster
from tests.worlds import OUTLINE, measured, random_map, spread_points

FRAMES = 6
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
each_reference = pytest.mark.parametrize("reference", [0, 3])


def assert_covariances_agree(actual, expected, relative):
    """Compare each entry with the spreads of its row and column; what is certain must be so exactly."""
    spread = np.sqrt(np.diagonal(expected))
    scale = np.outer(spread, spread)
    assert (np.abs(actual - expected) <= relative * scale).all()


@cache
def noisy_problem(seed) -> Problem:
    """Return a problem whose residuals are large, so that their part in F counts."""
    return random_problem(np.random.default_rng(seed), frames=FRAMES, loops=4, noise=3.0)


class Dense:
    """The paper's equations on the noisy problem of a seed, about a reference frame."""

    def __init__(self, seed, reference):
        links = noisy_problem(seed).links
        theta = dense_reference.solve(links, FRAMES, reference)
        self.maps = dense_reference.maps(theta, FRAMES, reference)
        cov = dense_reference.covariance(links, FRAMES, reference)
        self.cov = dense_reference.with_reference(cov, FRAMES, reference)

    def joint(self, i, j):
        return self.cov[np.ix_([i, j], range(6), [i, j], range(6))].reshape(12, 12)

    def centre(self, i, j):
        jacobian = dense_reference.centre_jacobian(self.maps[i], self.maps[j], OUTLINE.centre)
        mean = dense_reference.centre_in_other(self.maps[i], self.maps[j], OUTLINE.centre)
        return mean, jacobian @ self.joint(i, j) @ jacobian.T


# Against the paper's dense equations


@each_reference
def test_the_joint_covariance_of_a_pair_is_that_of_the_papers_dense_equations(reference):
    covariance, dense = Haralick(noisy_problem(0).adjustment(reference)), Dense(0, reference)
    for i, j in combinations(range(FRAMES), 2):
        assert_covariances_agree(covariance.joint(Pair(i, j)), dense.joint(i, j), 1e-8)


@each_reference
def test_one_centre_in_another_frame_is_that_of_the_papers_dense_equations(reference):
    covariance, dense = Haralick(noisy_problem(0).adjustment(reference)), Dense(0, reference)
    for i, j in product(range(FRAMES), repeat=2):
        if i != j:
            mean, cov = covariance.centre(i, j)
            expected_mean, expected_cov = dense.centre(i, j)
            np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-8 * OUTLINE.width)
            assert_covariances_agree(cov, expected_cov, 1e-8)


@each_reference
def test_all_centres_in_all_frames_are_those_of_the_papers_dense_equations(reference):
    centres, dense = Haralick(noisy_problem(0).adjustment(reference)).centres, Dense(0, reference)
    for i, j in product(range(FRAMES), repeat=2):
        if i != j:
            xx, xy, yy = centres.cov[i, j]
            expected_mean, expected_cov = dense.centre(i, j)
            atol = 1e-8 * OUTLINE.width
            np.testing.assert_allclose(centres.mean[i, j], expected_mean, rtol=1e-8, atol=atol)
            assert_covariances_agree(np.array([[xx, xy], [xy, yy]]), expected_cov, 1e-8)


def test_the_papers_cross_derivatives_are_the_finite_differences_of_its_gradient():
    problem = noisy_problem(3)
    theta = dense_reference.solve(problem.links, FRAMES, 2)
    for link in problem.links:
        X_i, X_j = dense_reference.pseudo_points(link)
        F = dense_reference.matrix_f_of_pair(theta, link.pair, X_i, X_j, FRAMES, 2)
        for l, d in product(range(3), range(2)):  # noqa: E741
            step = np.zeros((3, 3))
            step[d, l] = 1e-2
            ahead, behind = (
                dense_reference.gradient_of_pair(theta, link.pair, X_i + move, X_j, FRAMES, 2) for move in (step, -step)
            )
            # The gradient is quadratic in a coordinate: central differences are exact but for rounding.
            difference = (ahead - behind) / 2e-2
            np.testing.assert_allclose(F[:, 2 * l + d], difference, rtol=0, atol=1e-9 * np.abs(F).max())


# Against the derivative of everything from landmarks to mosaic


@each_family
def test_the_covariance_is_the_noise_times_the_derivative_of_the_mosaic_by_each_landmark(family):
    frames, step = 5, 1e-3
    problem = random_problem(np.random.default_rng(1), frames=frames, loops=2, family=family, noise=3.0)
    columns = []
    for at, one in enumerate(problem.landmarks):
        sigma = np.broadcast_to(one.sigma, (len(one),))
        for l, d in product(range(len(one)), range(2)):  # noqa: E741
            moved = []
            for change in (step, -step):
                points_i, links = one.points_i.copy(), list(problem.links)
                points_i[l, d] += change
                links[at] = fit_affine_link(Landmarks(one.pair, points_i, one.points_j, one.sigma), family)
                moved.append(problem.adjustment(3, links).mosaic_from_frame)
            columns.append(sigma[l] * (moved[0] - moved[1]).reshape(-1) / (2 * step))
    derivative = np.array(columns).T
    expected = (derivative @ derivative.T).reshape(frames, 6, frames, 6)
    covariance = Haralick(problem.adjustment(3))
    for i, j in combinations(range(frames), 2):
        both = expected[np.ix_([i, j], range(6), [i, j], range(6))].reshape(12, 12)
        # What the family does not move has no spread, but differences leave dust of 1e-13/step there.
        spread = np.sqrt(np.diagonal(both)) + 1e-9
        off = np.abs(covariance.joint(Pair(i, j)) - both) / np.outer(spread, spread)
        assert off.max() < 1e-6


# Consistency


@each_family
def test_one_centre_is_the_same_alone_as_among_all(family):
    problem = random_problem(np.random.default_rng(5), frames=40, loops=9, family=family)
    covariance = Haralick(problem.adjustment(4))
    centres = covariance.centres
    for i, j in [(0, 39), (39, 0), (4, 20), (20, 4), (31, 32), (33, 12), (0, 4), (4, 0)]:
        mean, cov = covariance.centre(i, j)
        xx, xy, yy = centres.cov[i, j]
        if i != j:
            np.testing.assert_allclose(centres.mean[i, j], mean, rtol=1e-9, atol=1e-7)
            assert_covariances_agree(np.array([[xx, xy], [xy, yy]]), cov, 1e-8)


@each_reference
def test_the_reference_frame_is_certain(reference):
    problem = random_problem(np.random.default_rng(6), frames=FRAMES, family=AFFINE)
    covariance = Haralick(problem.adjustment(reference))
    for other in range(FRAMES):
        if other != reference:
            joint = covariance.joint(Pair(*sorted((reference, other)))).reshape(2, 6, 2, 6)
            at = int(other < reference)
            assert (joint[at] == 0.0).all()
            assert (joint[:, :, at] == 0.0).all()


def test_a_frames_centre_is_certain_in_itself():
    centres = Haralick(random_problem(np.random.default_rng(7), family=AFFINE).adjustment(2)).centres
    diagonal = np.arange(6)
    assert (centres.cov[diagonal, diagonal] == 0.0).all()
    np.testing.assert_allclose(centres.mean[diagonal, diagonal], np.tile(OUTLINE.centre, (6, 1)), atol=1e-10)


def test_every_other_frames_centre_has_a_spread_in_every_direction():
    centres = Haralick(random_problem(np.random.default_rng(8), family=AFFINE).adjustment(2)).centres
    apart = ~np.eye(6, dtype=bool)
    assert (centres.determinant[apart] > 0.0).all()


def test_noise_ten_times_larger_spreads_a_hundred_times_more():
    problem = random_problem(np.random.default_rng(9), family=AFFINE, exact=True)
    louder = [replace(one, sigma=10.0 * np.asarray(one.sigma)) for one in problem.landmarks]
    links = [fit_affine_link(one, AFFINE) for one in louder]
    quiet = Haralick(problem.adjustment(0)).centres.cov
    np.testing.assert_allclose(
        Haralick(problem.adjustment(0, links)).centres.cov,
        100.0 * quiet,
        rtol=1e-6,
        atol=1e-9 * quiet.max(),
    )


def test_spread_and_determinant_are_the_trace_and_determinant():
    centres = Haralick(random_problem(np.random.default_rng(10)).adjustment(0)).centres
    xx, xy, yy = np.moveaxis(centres.cov, 2, 0)
    np.testing.assert_allclose(centres.spread_squared, xx + yy)
    apart = ~np.eye(6, dtype=bool)
    matrices = np.stack([xx, xy, xy, yy], axis=-1).reshape(6, 6, 2, 2)[apart]
    np.testing.assert_allclose(centres.determinant[apart], np.linalg.det(matrices), rtol=1e-9)


def test_the_centres_jacobian_is_its_finite_differences():
    rng = np.random.default_rng(0)
    maps = np.array([random_map(rng, AFFINE), random_map(rng, AFFINE)])
    jacobian = centre_jacobian(maps[0], maps[1], OUTLINE)
    for at in range(12):
        # A shift moves by pixels, a linear part by pixels over the size of a frame.
        step = 1e-3 if at % 3 == 2 else 1e-5
        move = np.zeros((2, 2, 3))
        move.flat[at] = step
        ahead, behind = (centre_in_other(moved, OUTLINE)[0, 1] for moved in (maps + move, maps - move))
        np.testing.assert_allclose(jacobian[:, at], (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6)


def test_a_centre_in_another_frame_is_where_its_place_on_the_mosaic_lies_there():
    rng = np.random.default_rng(11)
    maps = np.array([random_map(rng, AFFINE) for _ in range(4)])
    seen = centre_in_other(maps, OUTLINE)
    for i, j in product(range(4), repeat=2):
        on_mosaic = maps[i] @ np.append(OUTLINE.centre, 1.0)
        np.testing.assert_allclose(maps[j] @ np.append(seen[i, j], 1.0), on_mosaic, atol=1e-10)


def test_a_pair_beyond_the_sequence_is_refused():
    covariance = Haralick(random_problem(np.random.default_rng(12)).adjustment(0))
    with pytest.raises(PairError, match=r"\(2, 6\)"):
        covariance.joint(Pair(2, 6))


@pytest.mark.parametrize(("i", "j"), [(-1, 2), (2, 6)])
def test_a_centre_of_or_in_a_frame_beyond_the_sequence_is_refused(i, j):
    covariance = Haralick(random_problem(np.random.default_rng(12)).adjustment(0))
    with pytest.raises(SmaltiError):
        covariance.centre(i, j)


# Far from the reference


@pytest.mark.parametrize("reference", [0, 150])
def test_neighbours_hundreds_of_frames_from_the_reference_keep_their_digits(reference):
    problem = raster(np.random.default_rng(14), frames=300, loops=0)
    far, near = Haralick(problem.adjustment(reference)).centres, Haralick(problem.adjustment(270)).centres
    for i, j in [(268, 269), (271, 270), (260, 275), (280, 281)]:
        scale = np.abs(near.cov[i, j]).max()
        np.testing.assert_allclose(far.cov[i, j], near.cov[i, j], rtol=0, atol=1e-6 * scale)


# A link against what is predicted


def test_a_link_of_what_the_mosaic_says_does_not_disagree():
    problem = random_problem(np.random.default_rng(15), family=AFFINE)
    adjustment = problem.adjustment(2)
    maps = adjustment.mosaic_from_frame
    i_from_j = compose(invert(maps[1]), maps[4])
    landmarks = Landmarks(Pair(1, 4), apply(i_from_j, OUTLINE.corners), OUTLINE.corners)
    assert Haralick(adjustment).chi2(fit_affine_link(landmarks, AFFINE)) < 1e-12


@pytest.mark.parametrize(
    ("family", "pair"), list(zip(FAMILIES.values(), [Pair(1, 4), Pair(2, 5), Pair(0, 2)], strict=True)), ids=FAMILIES
)
def test_chi2_of_honest_links_has_as_many_degrees_as_the_family(family, pair):
    rng = np.random.default_rng(16)
    drawn = []
    for _ in range(400):
        problem = random_problem(rng, loops=0, family=family, noise=0.05)
        new = measured(rng, problem.truth, pair, spread_points(rng, 6), 0.05)
        drawn.append(Haralick(problem.adjustment(2)).chi2(fit_affine_link(new, family)))
    # The mean of n draws of χ² with f degrees of freedom has the standard error √(2f/n).
    assert abs(np.mean(drawn) - family.freedom) <= 4 * np.sqrt(2 * family.freedom / 400)


# Against simulation

SIMULATED_FRAMES = 8
DRAWS = 4000
NOISE_PX = 0.02
"""Small enough that second-order terms, smaller by noise over frame size, drown in the simulation's error."""

# An entry of a covariance estimated from n normal draws has the standard error √((Σ_aa Σ_bb + Σ_ab²)/n). Of
# the 1176 entries over 8 frames in each of 3 problems, 1.5e-4 are expected beyond 5.5 of it by chance.
STANDARD_ERRORS = 5.5


@pytest.fixture(
    scope="module", params=[("affine", "unequal"), ("similarity", "unequal"), ("translation", "equal")], ids="-".join
)
def simulation(request):
    """Return a noise-free problem, noisy drawings of its landmarks and their mosaics (draws, N, 2, 3)."""
    family, sigma = request.param
    rng = np.random.default_rng(13)
    problem = random_problem(
        rng,
        frames=SIMULATED_FRAMES,
        loops=2,
        family=FAMILIES[family],
        noise=NOISE_PX,
        exact=True,
        unequal=sigma == "unequal",
    )
    drawn, fitted = [], []
    for one in problem.landmarks:
        spread = np.broadcast_to(one.sigma, (len(one),))[:, None]
        drawn.append(one.points_i + spread * rng.normal(size=(DRAWS, len(one), 2)))
        fitted.append(dense_reference.fit_family(one, drawn[-1], family))
    mosaics = dense_reference.solve_family(
        [link.pair for link in problem.links],
        np.stack(fitted, axis=1),
        np.array([link.root for link in problem.links]),
        SIMULATED_FRAMES,
        3,
        family,
    )
    return problem, drawn, mosaics


def assert_within_standard_errors(simulated, predicted):
    variance = np.diagonal(predicted)
    error = np.sqrt((np.outer(variance, variance) + predicted**2) / DRAWS)
    assert (np.abs(simulated - predicted) <= STANDARD_ERRORS * error).all()


def predicted_of_all_frames(problem):
    covariance = Haralick(problem.adjustment(3))
    predicted = np.zeros((SIMULATED_FRAMES, 6, SIMULATED_FRAMES, 6))
    for i, j in combinations(range(SIMULATED_FRAMES), 2):
        joint = covariance.joint(Pair(i, j)).reshape(2, 6, 2, 6)
        predicted[np.ix_([i, j], range(6), [i, j], range(6))] = joint
    return predicted.reshape(6 * SIMULATED_FRAMES, 6 * SIMULATED_FRAMES)


def test_what_is_simulated_is_the_packages_adjustment(simulation):
    problem, drawn, mosaics = simulation
    links = [
        fit_affine_link(Landmarks(one.pair, points_i[0], one.points_j, one.sigma), problem.family)
        for one, points_i in zip(problem.landmarks, drawn, strict=True)
    ]
    got = problem.adjustment(3, links).mosaic_from_frame
    np.testing.assert_allclose(got, mosaics[0], rtol=0, atol=1e-9 * np.abs(got).max())


def test_the_mosaic_spreads_in_simulation_as_predicted(simulation):
    problem, _, mosaics = simulation
    simulated = np.cov(mosaics.reshape(DRAWS, -1), rowvar=False)
    assert_within_standard_errors(simulated, predicted_of_all_frames(problem))


def test_the_mosaic_as_a_whole_is_as_far_off_in_simulation_as_predicted(simulation):
    problem, _, mosaics = simulation
    off = mosaics.reshape(DRAWS, -1) - problem.adjustment(3).mosaic_from_frame.reshape(-1)
    predicted = predicted_of_all_frames(problem)
    # In units in which every entry has spread one, the certain ones left out, so that a rank can be told.
    spread = np.sqrt(np.diagonal(predicted))
    moving = spread > 1e-9
    whitened = predicted[np.ix_(moving, moving)] / np.outer(spread[moving], spread[moving])
    freedom = problem.family.freedom * (SIMULATED_FRAMES - 1)
    values, vectors = np.linalg.eigh(whitened)
    along = (off[:, moving] / spread[moving]) @ vectors[:, -freedom:] / np.sqrt(values[-freedom:])
    # The mean of n draws of χ² with f degrees of freedom has the standard error √(2f/n).
    assert abs(np.mean(np.sum(along**2, axis=1)) - freedom) <= 4 * np.sqrt(2 * freedom / DRAWS)


def test_centres_spread_in_simulation_as_predicted(simulation):
    problem, _, mosaics = simulation
    centres = Haralick(problem.adjustment(3)).centres
    linear, shift = mosaics[..., :2], mosaics[..., 2]
    on_mosaic = linear @ OUTLINE.centre + shift  # (draws, N, 2)
    for i, j in product(range(SIMULATED_FRAMES), repeat=2):
        if i != j:
            seen = np.linalg.solve(linear[:, j], (on_mosaic[:, i] - shift[:, j])[..., None])[..., 0]
            xx, xy, yy = centres.cov[i, j]
            assert_within_standard_errors(np.cov(seen, rowvar=False), np.array([[xx, xy], [xy, yy]]))
