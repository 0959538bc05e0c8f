"""What a refusal says of the pairs beside it, and of those elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from smalti.active_loop import ActiveLoop
from smalti.records import Answer
from smalti.suggestion.answer_model import TRUSTED, NoAnswers, _discount_factors
from smalti.suggestion.pair_survey import SurveyedPairs
from smalti_lab.experiments.worlds import OUTLINE, raster

FRAMES = 60
BESIDE = [[8, 51], [10, 49], [9, 51]]
ELSEWHERE = [[9, 40], [0, 12], [20, 50]]


@pytest.fixture(scope="module")
def state():
    world = raster(FRAMES)
    # So noisy a chain looks like that of a camera that turns: where frames lie is not known too well.
    return ActiveLoop.start(FRAMES, OUTLINE, world.chain(world.agent(1, chain_noise=3.0)))


def discounts(state, refused, pairs, reach=1.0, accepted=1.0):
    refused = np.array(refused, dtype=np.int64).reshape(-1, 2)
    seen = SurveyedPairs.of(state.view, refused)
    return NoAnswers(state.covariance, refused, seen.centres).discount(
        SurveyedPairs.of(state.view, np.array(pairs)), reach, accepted
    )


def test_pairs_beside_a_refused_one_are_less_likely(state):
    assert (discounts(state, [[9, 50]], BESIDE) < 0.7).all()


def test_pairs_elsewhere_stay_exactly_as_they_are(state):
    np.testing.assert_array_equal(discounts(state, [[9, 50]], ELSEWHERE), 1.0)


def test_without_refusals_every_pair_stays_as_it_is(state):
    np.testing.assert_array_equal(discounts(state, [], BESIDE), 1.0)


def test_the_nearer_in_time_the_less_likely(state):
    near, far = discounts(state, [[9, 50]], [[10, 49], [18, 41]])
    assert near < far <= 1.0


def test_two_refusals_tell_more_than_one(state):
    assert discounts(state, [[9, 50], [11, 48]], [[10, 49]]) < discounts(state, [[9, 50]], [[10, 49]])


def test_where_rims_are_accepted_a_no_tells_of_rims(state):
    # As far apart as this, neither is thought to overlap by half, but both may share a rim.
    assert discounts(state, [[9, 47]], [[10, 46]], reach=2.0) < 0.5


def test_who_misses_much_tells_little_by_a_no(state):
    careful, careless = (discounts(state, [[9, 50]], BESIDE, accepted=share) for share in (1.0, 0.3))
    assert (careful < careless).all()
    assert (careless < 1.0).all()


def test_what_no_chain_joins_to_the_refused_pair_is_not_told_by_it():
    # Their places differ by as much as both are uncertain: they have nothing in common.
    size, variance = np.array([100.0, 100.0]), np.full((1, 2), 900.0)
    place = np.array([[10.0, -5.0]])
    found = _discount_factors(place, variance, place, variance, 2.0 * variance, size, TRUSTED)
    assert found == pytest.approx([1.0], rel=1e-9)


@pytest.mark.parametrize(("place", "difference"), [([5.0, 10.0], 20.0), ([40.0, -60.0], 400.0), ([5.0, 10.0], 1200.0)])
def test_what_is_left_is_that_of_two_boxes_of_a_joint_normal(place, difference):
    own, other = np.array([900.0, 600.0]), np.array([1100.0, 700.0])
    refused_at, half = np.array([20.0, -15.0]), np.full(2, 50.0)
    both = alone = refused = 1.0
    for axis in range(2):
        common = (own[axis] + other[axis] - difference) / 2.0
        mean, cov = [place[axis], refused_at[axis]], [[own[axis], common], [common, other[axis]]]
        both *= multivariate_normal.cdf(half, mean, cov, lower_limit=-half)
        alone *= norm.cdf(50.0, mean[0], np.sqrt(own[axis])) - norm.cdf(-50.0, mean[0], np.sqrt(own[axis]))
        refused *= norm.cdf(50.0, mean[1], np.sqrt(other[axis])) - norm.cdf(-50.0, mean[1], np.sqrt(other[axis]))
    expected = min((1.0 - TRUSTED * both / alone) / (1.0 - TRUSTED * refused), 1.0)
    rows = [np.array([some]) for some in (place, own, refused_at, other, np.full(2, difference))]
    assert _discount_factors(*rows, 2.0 * half, TRUSTED)[0] == pytest.approx(expected, rel=0.03)


def test_the_loop_learns_from_a_no_which_pairs_to_leave_alone(state):
    asked = state.best.pair
    later = state.record(Answer.no(asked)).best.pair
    assert max(abs(later.i - asked.i), abs(later.j - asked.j)) > 2
