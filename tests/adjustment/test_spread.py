"""The uncertainty of any point of any frame relative to another frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import fit_link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import normal_blocks, refine
from smalti.adjustment.spread import spread_relative_to
from smalti.errors import SingularSystemError, UsageError
from smalti.experiments import worlds as paper
from smalti.geometry.affine import apply, compose, homogeneous, invert
from smalti.geometry.family import AFFINE, FAMILIES
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, Problem, measured, random_problem, random_walk

POINTS = np.vstack([OUTLINE.centre, OUTLINE.corners])


def variances(spread: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(N, n), px²."""
    return np.einsum("ia,nab,ib->ni", homogeneous(points), spread, homogeneous(points))


def dense_variances(adjustment: Adjustment, maps: np.ndarray, n: int, r: int) -> np.ndarray:
    """The same from the dense pseudo-inverse of JᵀJ, which holds no frame, and from finite differences."""
    units, tangent = adjustment.in_units(maps), adjustment.family.tangent
    diagonal, off_diagonal = normal_blocks(adjustment, units)
    frames, f = diagonal.shape[:2]
    dense = np.zeros((frames, f, frames, f))
    for frame in range(frames):
        dense[frame, :, frame] = diagonal[frame]
    for (a, b), block in zip(adjustment.ends, off_diagonal, strict=True):
        dense[a, :, b], dense[b, :, a] = block, block.T
    inverse = np.linalg.pinv(dense.reshape(frames * f, -1), rcond=1e-13, hermitian=True).reshape(frames, f, frames, f)
    joint = np.block([[inverse[n, :, n], inverse[n, :, r]], [inverse[r, :, n], inverse[r, :, r]]])

    def seen(increments: np.ndarray) -> np.ndarray:
        moved = units.copy()
        for frame, increment in ((n, increments[:f]), (r, increments[f:])):
            moved[frame] = compose(units[frame], np.eye(2, 3) + np.tensordot(increment, tangent, 1))
        pixels = adjustment.in_pixels(moved)
        # Noise is 1 px, increments are in units of the frame.
        return apply(compose(invert(pixels[r]), pixels[n]), POINTS) / adjustment.outline.unit

    steps = 1e-6 * np.eye(2 * f)
    jacobian = np.array([(seen(step) - seen(-step)) / 2e-6 for step in steps])  # (2f, points, 2)
    return np.einsum("cix,cd,dix->i", jacobian, joint, jacobian)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_any_point_has_the_variance_of_the_dense_pseudo_inverse(family):
    problem = random_problem(np.random.default_rng(4), frames=7, family=family)
    adjustment = problem.adjustment()
    maps = refine(adjustment).mosaic_from_frame
    for r in (0, 3, 6):
        found = variances(spread_relative_to(adjustment, maps, r), POINTS)
        for n in set(range(7)) - {r}:
            np.testing.assert_allclose(found[n], dense_variances(adjustment, maps, n, r), rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_centre_is_as_sure_as_the_local_covariance_says(family):
    adjustment = random_problem(np.random.default_rng(5), frames=30, loops=9, family=family).adjustment()
    maps = refine(adjustment).mosaic_from_frame
    expected = LocalCovariance(adjustment, maps).centres.spread_squared
    for r in (0, 12):
        found = variances(spread_relative_to(adjustment, maps, r), OUTLINE.centre[None])[:, 0]
        np.testing.assert_allclose(found, expected[:, r], rtol=1e-6, atol=1e-9)


def test_a_frame_is_sure_of_its_own_pixels():
    adjustment = random_problem(np.random.default_rng(6)).adjustment()
    spread = spread_relative_to(adjustment, adjustment.mosaic_from_frame, 4)
    assert not spread[4].any()
    assert (variances(np.delete(spread, 4, axis=0), POINTS) > 0).all()


def test_matrices_are_symmetric_to_the_last_bit():
    adjustment = random_problem(np.random.default_rng(7)).adjustment()
    spread = spread_relative_to(adjustment, adjustment.mosaic_from_frame, 2)
    assert np.array_equal(spread, np.swapaxes(spread, 1, 2))


def test_it_depends_neither_on_the_reference_nor_on_where_the_mosaic_lies():
    problem = random_problem(np.random.default_rng(8))
    maps = refine(problem.adjustment()).mosaic_from_frame
    moved = compose(np.array([[0.6, -1.8, 500.0], [0.8, 1.1, -90.0]]), maps)
    first = spread_relative_to(problem.adjustment(0), maps, 1)
    np.testing.assert_allclose(spread_relative_to(problem.adjustment(5), moved, 1), first, rtol=1e-7, atol=1e-12)


def test_it_is_measured_in_pixels_of_the_frame_it_is_relative_to():
    # Frame 1 shows everything twice as large: what is 1 px to frame 0 is 2 px to it.
    truth = np.array([np.eye(2, 3), [[0.5, 0.0, 40.0], [0.0, 0.5, 20.0]]])
    link = fit_link(measured(np.random.default_rng(1), truth, Pair(0, 1), OUTLINE.corners, 1.0, exact=True))
    adjustment = Adjustment(2, OUTLINE, [link])
    points = np.array([[70.0, 30.0]])
    in_0 = variances(spread_relative_to(adjustment, truth, 0), points)[1]
    in_1 = variances(spread_relative_to(adjustment, truth, 1), apply(truth[1], points))[0]
    np.testing.assert_allclose(in_1, 4 * in_0, rtol=1e-9)


def test_links_of_a_quarter_of_the_weight_double_the_deviation():
    adjustment = random_problem(np.random.default_rng(9)).adjustment()
    maps = refine(adjustment).mosaic_from_frame
    weak = adjustment.weighted(dict.fromkeys(adjustment.links, 0.25))
    np.testing.assert_allclose(spread_relative_to(weak, maps, 0), 4 * spread_relative_to(adjustment, maps, 0))


@pytest.fixture(scope="module")
def drawn() -> tuple[Problem, np.ndarray]:
    """A chain with a loop, and its refined mosaics (draws, N, 2, 3) from landmarks that were measured again."""
    rng = np.random.default_rng(10)
    truth = random_walk(rng, 6, AFFINE)
    pairs = [*(Pair(n, n + 1) for n in range(5)), Pair(0, 4)]
    exact = [measured(rng, truth, pair, OUTLINE.corners, 0.4, exact=True) for pair in pairs]
    problem = Problem(AFFINE, OUTLINE, truth, tuple(exact))

    def measure_again(record: Landmarks) -> Landmarks:
        return replace(record, points_i=record.points_i + rng.normal(0.0, 0.4, record.points_i.shape))

    def mosaic() -> np.ndarray:
        links = [fit_link(measure_again(record)) for record in exact]
        return refine(problem.adjustment(links=links), truth).mosaic_from_frame

    return problem, np.array([mosaic() for _ in range(800)])


@pytest.mark.parametrize("r", [0, 2, 5])
def test_repeated_measurements_spread_as_predicted(drawn, r):
    problem, mosaics = drawn
    predicted = np.sqrt(variances(spread_relative_to(problem.adjustment(), problem.truth, r), POINTS))
    places = apply(compose(invert(mosaics[:, r])[:, None], mosaics), POINTS)  # (draws, N, points, 2)
    found = np.sqrt(places.var(axis=0).sum(axis=-1))
    others = np.delete(np.arange(6), r)
    # A deviation from 800 draws is known to 2.5 % where one direction dominates: three of that.
    np.testing.assert_allclose(found[others], predicted[others], rtol=0.075)
    assert (predicted[others, 1:].max(axis=1) > 1.2 * predicted[others, 0]).all()  # corners are less sure


def test_a_thousand_frames_leave_the_digits_of_neighbours():
    # Six points, noise 1 px: a frame's centre lies in its neighbour to within a third of a square pixel, either way.
    world = paper.raster(1000)
    agent = world.agent(1)
    links = [fit_link(agent.landmarks(Pair(n, n + 1))) for n in range(999)]
    adjustment = Adjustment(1000, paper.OUTLINE, links)
    spread = spread_relative_to(adjustment, refine(adjustment).mosaic_from_frame, 998)
    found = variances(spread, paper.OUTLINE.centre[None])[:, 0]
    assert found[999] == pytest.approx(2 / 3, rel=1e-6)
    assert np.isfinite(found).all()
    assert (np.delete(found, 998) > 0.3).all()


def test_a_frame_beyond_the_sequence_is_refused():
    adjustment = random_problem(np.random.default_rng(1)).adjustment()
    with pytest.raises(UsageError, match="frames 0 to 5 only"):
        spread_relative_to(adjustment, adjustment.mosaic_from_frame, 6)


def test_a_link_that_says_nothing_is_named_instead_of_a_number():
    problem = random_problem(np.random.default_rng(2), frames=4, loops=0)
    links = [replace(link, root=1e-12 * link.root) if link.pair.i == 1 else link for link in problem.links]
    with pytest.raises(SingularSystemError, match=r"check their landmarks|add links between"):
        spread_relative_to(problem.adjustment(links=links), problem.truth, 0)
