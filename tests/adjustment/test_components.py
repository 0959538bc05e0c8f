from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from smalti.adjustment import components
from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.components import (
    EXTREMES,
    LARGEST_GROWTH,
    TRUSTED,
    UNESTIMATED,
    Components,
    Observations,
    _Doubts,
    _stretches,
    estimate_components,
    reweigh,
)
from smalti.adjustment.innovation import Agreement
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import refine
from smalti.geometry.family import FAMILIES
from smalti.records import Pair
from tests.worlds import OUTLINE, random_problem, raster

CHAIN, ANSWERS = 0, 1
NOISE = 0.2
SEEDS = range(5)

SETTLED = 12
"""Steps after which factors change little: where the two groups share what a loop tells, each step goes
a part of the way."""

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def covariance_of(adjustment):
    return LocalCovariance(adjustment, refine(adjustment).mosaic_from_frame)


def checked(covariance):
    adjustment = covariance.adjustment
    return Observations.of(adjustment, groups_of(adjustment)).check(covariance)


def groups_of(adjustment):
    return np.where(np.diff(adjustment.ends)[:, 0] == 1, CHAIN, ANSWERS)


def misjudged(seed, chain=1.0, answers=1.0, frames=40, loops=8):
    """A raster whose links say that their noise is so many times smaller than it is."""
    world = raster(np.random.default_rng(seed), frames, loops, noise=NOISE)
    factor = {True: chain, False: answers}
    links = [replace(link, root=link.root * factor[link.pair.j == link.pair.i + 1]) for link in world.links]
    return Adjustment(frames, OUTLINE, links)


def follow(adjustment, groups=None, steps=5):
    """The factors after some steps, and the adjustment weighted by them."""
    groups = groups_of(adjustment) if groups is None else groups
    factors = np.ones(groups.max() + 1)
    for _ in range(steps):
        found = estimate_components(covariance_of(adjustment), groups, factors).factors
        adjustment = reweigh(adjustment, groups, factors, found)
        factors = found
    return factors, adjustment


def surprise(chain=1.0, answers=1.0, **options):
    """By how many of its standard deviations, as it is stated, the mean of log s over some worlds misses the truth."""
    total = np.zeros(2)
    for seed in SEEDS:
        adjustment = misjudged(seed, chain, answers, **options)
        factors, weighted = follow(adjustment, steps=SETTLED)
        degrees = estimate_components(covariance_of(weighted), groups_of(weighted), factors).degrees
        total += np.log(factors / (chain, answers)) * np.sqrt(2.0 * degrees)
    return total / np.sqrt(len(SEEDS))


@each_family
@pytest.mark.parametrize("reference", [0, 5])
def test_residuals_and_redundancy_are_those_of_a_link_held_against_the_mosaic(family, reference):
    problem = random_problem(np.random.default_rng(3), frames=8, loops=4, family=family)
    adjustment = problem.adjustment(reference)
    refined = refine(adjustment)
    agreement = Agreement(adjustment, refined)
    squares, redundancy = checked(LocalCovariance(adjustment, refined.mosaic_from_frame))
    for at, (pair, link) in enumerate(adjustment.links.items()):
        residual, jacobian = agreement._residual(link)
        known = np.trace(jacobian @ agreement._joint(pair) @ jacobian.T)
        assert squares[at] == pytest.approx(residual @ residual, rel=1e-9, abs=1e-15)
        assert redundancy[at] == pytest.approx(family.freedom - known, abs=1e-8)


@each_family
def test_every_loop_adds_as_many_checked_residuals_as_a_map_has_parameters(family):
    problem = random_problem(np.random.default_rng(1), frames=60, loops=7, family=family)
    _, redundancy = checked(covariance_of(problem.adjustment()))
    assert np.sum(redundancy) == pytest.approx(7 * family.freedom, abs=1e-6)


def test_a_chain_that_nothing_closes_teaches_nothing():
    adjustment = misjudged(1, chain=3.0, loops=0)
    found = estimate_components(covariance_of(adjustment), groups_of(adjustment), np.ones(1))
    assert found.factors == pytest.approx([1.0], abs=1e-6)
    assert found.redundancy == pytest.approx([0.0], abs=1e-6)


def test_what_one_answer_contradicts_is_put_down_to_the_chain():
    found = [follow(misjudged(seed, chain=3.0, frames=60, loops=1), steps=3)[0] for seed in SEEDS]
    chain, answers = np.median(found, axis=0)
    assert chain == pytest.approx(3.0, rel=0.35)
    assert answers == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("truth", [0.3, 3.0])
def test_the_noise_of_a_chain_is_found_as_surely_as_is_stated(truth):
    assert (np.abs(surprise(chain=truth)) < 3.0).all()


def test_the_noise_of_answers_that_are_better_than_they_say_is_found_as_surely_as_is_stated():
    assert (np.abs(surprise(answers=0.3, loops=16)) < 3.0).all()


def test_the_noise_of_answers_that_are_worse_than_they_say_is_approached_step_by_step():
    # Few of their residuals tell while they are believed: the first steps are short.
    adjustment = misjudged(3, answers=3.0, loops=16)
    factors = [follow(adjustment, steps=steps)[0] for steps in (1, 4, 8)]
    assert factors[0][ANSWERS] < factors[1][ANSWERS] < factors[2][ANSWERS] < 3.0
    assert factors[2][ANSWERS] > factors[2][CHAIN]


def test_three_groups_are_told_apart():
    found = []
    for seed in SEEDS:
        adjustment = misjudged(seed, chain=2.0, answers=0.5, frames=30, loops=10)
        groups = groups_of(adjustment)
        groups[(groups == ANSWERS) & (adjustment.ends[:, 0] % 2 == 0)] = 2
        links = [
            replace(link, root=link.root * (4.0 if group == 2 else 1.0))
            for link, group in zip(adjustment.links.values(), groups, strict=True)
        ]
        found.append(follow(Adjustment(30, OUTLINE, links), groups)[0])
    np.testing.assert_allclose(np.median(found, axis=0), [2.0, 0.5, 2.0], rtol=0.35)


def test_the_weights_that_links_have_already_do_not_change_what_they_settle_at():
    adjustment = misjudged(2, chain=3.0)
    groups, start = groups_of(adjustment), np.array([2.0, 0.5])
    other = reweigh(adjustment, groups, np.ones(2), start)
    factors = start
    for _ in range(20):
        found = estimate_components(covariance_of(other), groups, factors).factors
        other, factors = reweigh(other, groups, factors, found), found
    np.testing.assert_allclose(factors, follow(adjustment, steps=20)[0], rtol=0.02)


def test_guesses_are_left_as_they_are():
    adjustment = misjudged(2, chain=3.0)
    groups = groups_of(adjustment)
    groups[groups == ANSWERS] = UNESTIMATED
    factors, weighted = follow(adjustment, groups)
    assert factors.shape == (1,)
    for link, group, before in zip(weighted.links.values(), groups, adjustment.links.values(), strict=True):
        expected = before.root if group == UNESTIMATED else before.root / factors[0]
        np.testing.assert_allclose(link.root, expected, rtol=1e-12)


def shifted(link, by):
    return replace(link, i_from_j=link.i_from_j + np.array([[0.0, 0.0, by], [0.0, 0.0, -by]]))


def test_links_between_two_knots_are_judged_as_one_and_answers_each_alone():
    adjustment = misjudged(1, frames=20, loops=3)
    number = dict(zip(adjustment.links, _stretches(adjustment).tolist(), strict=True))
    answers = [pair for pair in adjustment.links if pair.j - pair.i > 1]
    knots = {frame for pair in answers for frame in (pair.i, pair.j)}
    for frame in range(1, 19):
        alike = number[Pair(frame - 1, frame)] == number[Pair(frame, frame + 1)]
        assert alike is (frame not in knots)
    for answer in answers:
        assert list(number.values()).count(number[answer]) == 1


def test_one_wrong_answer_among_sixty_does_not_double_the_noise_as_its_square_would(monkeypatch):
    # What it bends is shared by its neighbours: three answers and the stretches between them are off by as much.
    adjustment = misjudged(1, frames=124, loops=60)
    answer = [link for link in adjustment.links.values() if link.pair.j - link.pair.i > 1][30]
    wrong = adjustment.change(shifted(answer, 8.0))
    honest, limited = follow(adjustment)[0], follow(wrong)[0]
    monkeypatch.setattr(components, "LARGEST_SHARE", np.inf)
    assert (limited < 2.0 * honest).all()
    assert (follow(wrong)[0] > 2.0 * honest).all()


def test_noise_grows_by_no_more_than_the_largest_growth_at_once():
    adjustment = misjudged(1, loops=1)
    answer = next(link for link in adjustment.links.values() if link.pair.j - link.pair.i > 1)
    wrong = adjustment.change(shifted(answer, 100.0))
    found = estimate_components(covariance_of(wrong), groups_of(wrong), np.array([1.5, 1.0]))
    assert found.factors[CHAIN] == pytest.approx(1.5 * LARGEST_GROWTH)


def test_links_without_noise_leave_the_smallest_factor():
    problem = random_problem(np.random.default_rng(1), frames=12, loops=8, exact=True)
    adjustment = problem.adjustment()
    found = estimate_components(covariance_of(adjustment), np.zeros(len(adjustment.links), dtype=np.int64), np.ones(1))
    assert found.factors == pytest.approx([EXTREMES[0]])


def test_more_loops_make_surer():
    few, many = (misjudged(1, loops=loops) for loops in (2, 8))
    sure = [estimate_components(covariance_of(some), groups_of(some), np.ones(2)).degrees for some in (few, many)]
    assert (sure[1] > 2 * sure[0]).all()


@pytest.mark.parametrize(("found", "differ"), [(1.03, False), (0.97, False), (1.08, True), (0.92, True)])
def test_links_are_weighted_anew_for_more_than_five_percent(found, differ):
    components = Components(np.array([2.0, 3.0 * found]), np.ones(2), np.ones(2))
    assert components.differ_from(np.array([2.0, 3.0])) is differ


def test_the_same_links_give_the_same_bits():
    adjustment = misjudged(4)
    again = Adjustment(adjustment.frames, OUTLINE, reversed(list(adjustment.links.values())))
    np.testing.assert_array_equal(follow(again)[0], follow(adjustment)[0])


def refusing(adjustment, pairs, assumed=(1.0, 1.0)):
    found = estimate_components(covariance_of(adjustment), groups_of(adjustment), np.array(assumed), np.array(pairs))
    return found.factors


def test_a_refusal_of_what_was_thought_to_overlap_makes_the_chain_noisier_and_answers_not():
    adjustment = raster(np.random.default_rng(1), 60, loops=1, noise=2.0).adjustment()
    without = refusing(adjustment, np.empty((0, 2), dtype=np.int64))
    refused = refusing(adjustment, [[15, 44], [20, 39]])
    assert refused[CHAIN] > 1.05 * without[CHAIN]
    assert refused[ANSWERS] == without[ANSWERS]


def test_a_refusal_of_what_lies_far_apart_tells_nothing():
    adjustment = misjudged(1)
    without = refusing(adjustment, np.empty((0, 2), dtype=np.int64))
    assert refusing(adjustment, [[0, 19], [3, 22]]) == pytest.approx(without, rel=1e-9)


def test_what_refusals_tell_is_the_derivative_of_how_probable_they_are():
    place, deviation = np.array([[0.3, -0.2], [1.4, 0.1]]), np.array([[0.4, 0.6], [0.3, 0.9]])
    doubts = _Doubts(place, deviation)

    def minus_log(log_factor):
        spread = deviation * np.exp(log_factor)
        inside = (ndtr((1.0 - place) / spread) - ndtr((-1.0 - place) / spread)).prod(axis=1)
        return -np.sum(np.log(1.0 - TRUSTED * inside))

    for log_factor in (-1.0, 0.0, 1.2):
        slope = (minus_log(log_factor + 1e-5) - minus_log(log_factor - 1e-5)) / 2e-5
        assert doubts.slope(log_factor) == pytest.approx(slope, rel=1e-6)


def test_refused_pairs_are_seen_without_the_noise_that_is_assumed_already():
    adjustment = misjudged(1)
    weighted = reweigh(adjustment, groups_of(adjustment), np.ones(2), np.array([2.0, 2.0]))
    pairs = np.array([[16, 22]])
    before, after = _Doubts.of(covariance_of(adjustment), pairs, 1.0), _Doubts.of(covariance_of(weighted), pairs, 2.0)
    np.testing.assert_allclose(after.deviation, before.deviation, rtol=1e-6)


def misfit_of(links, frames=40):
    adjustment = Adjustment(frames, OUTLINE, links)
    return estimate_components(covariance_of(adjustment), groups_of(adjustment), np.ones(2)).misfit_px


def test_noise_is_no_misfit_however_small_it_is_said_to_be():
    for stated in (1.0, 5.0):
        found = [misfit_of(misjudged(seed, stated, stated).links.values()) for seed in SEEDS]
        assert np.mean(found) < 0.5 * NOISE


def test_what_exact_links_contradict_each_other_by_is_misfit():
    world = raster(np.random.default_rng(1), 40, 8, noise=NOISE)
    shift = {link.pair: 8.0 * (-1) ** n for n, link in enumerate(world.links)}
    bent = [
        link
        if link.pair.j == link.pair.i + 1
        else replace(link, i_from_j=link.i_from_j + np.array([[0.0, 0.0, shift[link.pair]], [0.0, 0.0, 0.0]]))
        for link in world.links
    ]
    # Loops are off by 8 px one way or the other, of which the chain's stretches take up a part.
    assert 2.0 < misfit_of(bent) < 12.0


def test_three_landmarks_each_tell_no_misfit():
    links = [replace(link, landmarks=3, residual_px=0.0) for link in misjudged(1).links.values()]
    assert misfit_of(links) == 0.0
