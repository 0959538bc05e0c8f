from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import PairError, UsageError
from smalti.geometry.linear_maps import FAMILIES, SIMILARITY, TRANSLATION
from smalti.paper.haralick import Haralick, best_reference
from smalti.paper.linear_adjustment import AffineLink, LinearAdjustment, fit_affine_link
from smalti.records import Pair
from tests.paper import dense_reference
from tests.paper.problems import Problem, random_problem
from tests.worlds import OUTLINE, measured, random_walk, spread_points

FRAMES = 6
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
each_reference = pytest.mark.parametrize("reference", [0, 3, FRAMES - 1])


def assert_maps_agree(actual, expected, relative):
    """Compare linear parts with 1 and shifts with their own size."""
    np.testing.assert_allclose(actual[..., :2], expected[..., :2], rtol=0, atol=relative)
    scale = np.abs(expected[..., 2]).max()
    np.testing.assert_allclose(actual[..., 2], expected[..., 2], rtol=0, atol=relative * scale)


def assert_same_bits(one: LinearAdjustment, other: LinearAdjustment):
    assert list(one.links) == list(other.links)
    np.testing.assert_array_equal(one.mosaic_from_frame, other.mosaic_from_frame)
    for a, b in zip(one.factor.arrays, other.factor.arrays, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(Haralick(one).centres.cov, Haralick(other).centres.cov)


def problem_with_spare_links(seed, family) -> tuple[Problem, list[AffineLink]]:
    """Return a problem and links for all its pairs, those of the problem among them but measured anew."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, frames=9, loops=3, family=family)
    pairs = [Pair(i, j) for i in range(9) for j in range(i + 1, 9)]
    landmarks = [measured(rng, problem.truth, pair, spread_points(rng, 6), 0.8) for pair in pairs]
    return problem, [fit_affine_link(one, family) for one in landmarks]


def links_of(pairs: list[tuple[int, int]], family=FAMILIES["affine"], seed=0) -> list[AffineLink]:
    rng = np.random.default_rng(seed)
    truth = random_walk(rng, 1 + max(max(pair) for pair in pairs), family)
    landmarks = [measured(rng, truth, Pair(*pair), spread_points(rng, 5), 1.0) for pair in pairs]
    return [fit_affine_link(one, family) for one in landmarks]


# The solution


@each_reference
def test_the_affine_solution_is_that_of_the_papers_dense_equations(reference):
    problem = random_problem(np.random.default_rng(0), frames=FRAMES, loops=4, noise=2.0)
    theta = dense_reference.solve(problem.links, FRAMES, reference)
    expected = dense_reference.maps(theta, FRAMES, reference)
    assert_maps_agree(problem.adjustment(reference).mosaic_from_frame, expected, 1e-8)


@pytest.mark.parametrize(("family", "reference"), [(SIMILARITY, 0), (SIMILARITY, 3), (TRANSLATION, FRAMES - 1)])
def test_the_solution_in_a_smaller_family_is_the_dense_least_squares(family, reference):
    problem = random_problem(np.random.default_rng(0), frames=FRAMES, loops=4, family=family, noise=2.0)
    links = problem.links
    fitted = np.array([link.i_from_j for link in links])[None]
    roots = np.array([link.root for link in links])
    pairs = [link.pair for link in links]
    expected = dense_reference.solve_family(pairs, fitted, roots, FRAMES, reference, family.name)[0]
    assert_maps_agree(problem.adjustment(reference).mosaic_from_frame, expected, 1e-8)


@each_family
def test_links_without_noise_give_the_truth(family):
    problem = random_problem(np.random.default_rng(2), frames=FRAMES, family=family, exact=True)
    maps = problem.adjustment(3).mosaic_from_frame
    assert_maps_agree(maps, problem.truth_about(3), 1e-9)


def test_two_frames_are_a_mosaic():
    problem = random_problem(np.random.default_rng(4), frames=2, loops=0, family=FAMILIES["affine"])
    assert_maps_agree(problem.adjustment(0).mosaic_from_frame[1], problem.links[0].i_from_j, 1e-12)


# Changes


@each_family
def test_adding_a_link_is_building_with_it_bit_for_bit(family):
    problem, spare = problem_with_spare_links(0, family)
    adjustment = problem.adjustment(4)
    for link in spare[0::3]:
        if link.pair not in adjustment.links:
            added = adjustment.add(link)
            assert_same_bits(added, problem.adjustment(4, [*problem.links, link]))


def test_the_order_of_links_does_not_matter():
    rng = np.random.default_rng(0)
    problem = random_problem(rng, family=FAMILIES["affine"])
    shuffled = [problem.links[at] for at in rng.permutation(len(problem.links))]
    assert_same_bits(problem.adjustment(1, shuffled), problem.adjustment(1))


def test_adding_leaves_the_adjustment_before_it_alone():
    problem, spare = problem_with_spare_links(9, FAMILIES["affine"])
    before = problem.adjustment(0)
    before.add(next(link for link in spare if link.pair not in before.links))
    assert_same_bits(before, problem.adjustment(0))


def test_links_may_be_added_one_by_one_or_together():
    problem, spare = problem_with_spare_links(9, FAMILIES["affine"])
    before = problem.adjustment(0)
    new = [link for link in spare if link.pair not in before.links][:4]
    one_by_one = before
    for link in new:
        one_by_one = one_by_one.add(link)
    assert_same_bits(before.add(*reversed(new)), one_by_one)


# What is refused


@pytest.mark.parametrize("alone", [1, 4])
def test_a_frame_without_a_link_is_named(alone):
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (1, 3), (0, 3)]
    around = [pair for pair in pairs if alone not in pair]
    with pytest.raises(UsageError, match=rf"frame {alone}: .* a chain that joins all frames"):
        LinearAdjustment(5, OUTLINE, links_of(around))


def test_a_reference_frame_without_a_link_is_named():
    with pytest.raises(UsageError, match=r"reference frame 3\b"):
        LinearAdjustment(4, OUTLINE, links_of([(0, 1), (1, 2)]), reference=3)


def test_no_links_at_all_are_refused():
    with pytest.raises(UsageError, match=r"frame 1 and 1 more\b"):
        LinearAdjustment(3, OUTLINE, [])


def test_two_parts_are_refused_and_named():
    with pytest.raises(UsageError, match=r"frame 3 and 2 more\b.*\breference frame 0\b"):
        LinearAdjustment(6, OUTLINE, links_of([(0, 1), (1, 2), (3, 4), (4, 5)]))


def test_a_pair_given_twice_is_refused():
    links = links_of([(0, 1), (1, 2), (0, 1)])
    with pytest.raises(PairError, match=r"\(0, 1\).*twice"):
        LinearAdjustment(3, OUTLINE, links)


def test_a_link_beyond_the_sequence_is_refused():
    with pytest.raises(PairError, match=r"\(1, 2\)"):
        LinearAdjustment(2, OUTLINE, links_of([(0, 1), (1, 2)]))


def test_adding_a_link_beyond_the_sequence_is_refused():
    chain, beyond = links_of([(0, 1), (1, 2)]), links_of([(1, 3)])[0]
    with pytest.raises(PairError, match=r"\(1, 3\)"):
        LinearAdjustment(3, OUTLINE, chain).add(beyond)


def test_adding_a_linked_pair_is_refused():
    links = links_of([(0, 1), (1, 2)])
    with pytest.raises(PairError, match=r"\(1, 2\)"):
        LinearAdjustment(3, OUTLINE, links).add(links[1])


def test_a_refused_link_leaves_the_adjustment_as_good_as_new():
    *chain, loop = links_of([(0, 1), (1, 2), (2, 3), (0, 2)])
    adjustment = LinearAdjustment(4, OUTLINE, chain)
    with pytest.raises(PairError):
        adjustment.add(chain[0])
    assert_same_bits(adjustment, LinearAdjustment(4, OUTLINE, chain))
    assert_same_bits(adjustment.add(loop), LinearAdjustment(4, OUTLINE, [*chain, loop]))


@pytest.mark.parametrize("frames", [1, -3])
def test_fewer_than_two_frames_are_refused(frames):
    with pytest.raises(UsageError, match="at least 2 frames"):
        LinearAdjustment(frames, OUTLINE, [])


@pytest.mark.parametrize("reference", [-1, 3])
def test_a_reference_frame_out_of_range_is_refused(reference):
    with pytest.raises(UsageError, match=rf"reference frame {reference}\b"):
        LinearAdjustment(3, OUTLINE, links_of([(0, 1), (1, 2)]), reference=reference)


def test_the_links_cannot_be_changed_behind_the_adjustments_back():
    links = links_of([(0, 1), (1, 2)])
    adjustment = LinearAdjustment(3, OUTLINE, links)
    with pytest.raises(TypeError):
        adjustment.links[Pair(0, 2)] = links[0]


# The best reference frame


def star(frames, hub, seed):
    """Return a problem in which every frame is linked to one, and well; the others in a chain, badly."""
    rng = np.random.default_rng(seed)
    truth = random_walk(rng, frames, FAMILIES["affine"])
    pairs = {Pair(n, n + 1): 0.5 for n in range(frames - 1)}
    pairs |= {Pair(min(hub, n), max(hub, n)): 0.05 for n in range(frames) if n != hub}
    landmarks = [measured(rng, truth, pair, spread_points(rng, 6), sigma) for pair, sigma in pairs.items()]
    return Problem(FAMILIES["affine"], OUTLINE, truth, tuple(landmarks))


def automatic(problem):
    return best_reference(Haralick(problem.adjustment(problem.frames // 2)))


def mean_spread_about(problem, reference):
    """Return the mean of tr Σ_γ over the other frames' centres, seen from an adjustment about `reference`."""
    covariance = Haralick(problem.adjustment(reference))
    others = [n for n in range(problem.frames) if n != reference]
    return np.mean([np.trace(covariance.centre(n, reference)[1]) for n in others])


@pytest.mark.parametrize("seed", range(2))
def test_the_automatic_reference_is_the_one_that_trying_all_would_choose(seed):
    problem = random_problem(np.random.default_rng(seed), frames=7, loops=3, family=FAMILIES["affine"], noise=0.1)
    tried = [mean_spread_about(problem, reference) for reference in range(7)]
    assert automatic(problem) == np.argmin(tried)


@pytest.mark.parametrize("hub", [0, 2])
def test_the_automatic_reference_of_a_star_is_its_hub(hub):
    assert automatic(star(7, hub, seed=1)) == hub


@pytest.mark.parametrize("frames", [9, 10])
def test_the_automatic_reference_of_a_chain_is_in_its_middle(frames):
    rng = np.random.default_rng(3)
    truth = np.tile(np.eye(2, 3), (frames, 1, 1))
    truth[:, 0, 2] = 40.0 * np.arange(frames)
    landmarks = [measured(rng, truth, Pair(n, n + 1), OUTLINE.corners, 0.01) for n in range(frames - 1)]
    problem = Problem(FAMILIES["affine"], OUTLINE, truth, tuple(landmarks))
    # The links are alike, but for their noise; a frame more or less either side of the middle is its doing.
    assert abs(automatic(problem) - (frames - 1) / 2) <= 1


def test_links_may_come_from_a_generator():
    problem = star(7, 2, seed=4)
    assert_same_bits(problem.adjustment(0, iter(problem.links)), problem.adjustment(0))
