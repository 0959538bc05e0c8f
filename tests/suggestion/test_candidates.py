"""The pairs worth asking, and the pairs that matter."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.engine.relative_position import PairCentres
from smalti.records import Answer, Landmarks, Pair, pair_key
from smalti.suggestion.appearance_evidence import WeighedAppearance
from smalti.suggestion.candidates import LOST, SMALLEST, AcceptedTimesSpread, CandidatePairs, _counted_share
from smalti.suggestion.pair_search import _bound
from smalti.suggestion.pair_survey import REACHES, SurveyedPairs, near_pairs, probability_within
from smalti.suggestion.posterior import Posterior, kinds
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, raster
from tests.suggestion.test_pair_survey import one_way


@cache
def walk(frames=70):
    world = wander(frames, 3)
    agent = world.agent(1)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(agent), external=world.external)
    return state.replay([Answer.no(Pair(5, 35))])


def every_pair(frames):
    return np.column_stack(np.triu_indices(frames, 1))


def test_candidates_are_all_pairs_whose_reward_is_not_faint():
    view = walk().view
    pairs = every_pair(view.frames)
    pairs = pairs[view.may_be_asked(pairs)]
    posterior = Posterior.of(view)
    reward = AcceptedTimesSpread(posterior.acceptance).of(view.covariance.of_pairs(pairs), np.zeros(len(pairs)))
    worth = WeighedAppearance(view.pooled, posterior.evidence).of_pairs(pairs) * reward
    wanted = pairs[worth > SMALLEST * worth.max()]
    assert len(wanted) > 100
    found = pair_key(*CandidatePairs.of(view).surveyed.pairs.T)
    assert np.isin(pair_key(*wanted.T), found).all()
    assert np.isin(found, pair_key(*pairs.T)).all()


def test_no_pair_matters_twice():
    candidates = CandidatePairs.of(walk().view)
    counted = pair_key(*candidates.error_pairs.pairs[candidates.weight > 0.0].T)
    assert len(np.unique(counted)) == len(counted)


def test_pairs_matter_as_much_as_they_are_likely_to_overlap():
    view = walk().view
    candidates = CandidatePairs.of(view)
    count = len(candidates.yes_probability)
    counts = _counted_share(candidates.error_pairs)
    np.testing.assert_array_equal(candidates.weight[:count], candidates.yes_probability * counts[:count])
    near, sampling_weight = near_pairs(view.frames)
    np.testing.assert_array_equal(candidates.error_pairs.pairs[count:], near)
    expected = sampling_weight * Posterior.of(view).of_pairs(near) * counts[count:]
    alone = candidates.weight[count:] > 0.0
    assert alone.sum() >= view.frames - 1
    np.testing.assert_allclose(candidates.weight[count:][alone], expected[alone], rtol=1e-12)


def uncertain_by(deviations_px):
    """Pairs of frames that lie on each other as far as anyone knows, within so many pixels."""
    cov = np.zeros((len(deviations_px), 2, 3))
    cov[:, :, ::2] = np.square(deviations_px)[:, None, None] / 2.0
    centres = PairCentres(OUTLINE, np.broadcast_to(OUTLINE.centre, (len(cov), 2, 2)).copy(), cov)
    pairs = np.column_stack([np.arange(len(cov)), np.arange(len(cov)) + 2])
    return SurveyedPairs(pairs, centres, np.ones((len(cov), len(REACHES))), np.ones(len(cov)))


def test_what_is_lost_counts_no_more_the_further_off_it_is():
    lost_px = LOST * OUTLINE.width
    near, half, off, far_off = _counted_share(uncertain_by([1.0, lost_px, 10 * lost_px, 1000 * lost_px]))
    assert near == pytest.approx(1.0, abs=0.01)
    assert half == pytest.approx(0.5)
    # Of the squared error itself, as much counts of the one as of the other.
    assert far_off * 1000.0**2 == pytest.approx(off * 10.0**2, rel=0.02)


def parted():
    """Two stretches of six frames that nothing joins."""
    shift = np.array([30.0, 0.0])
    chain = [Landmarks(Pair(n, n + 1), CONTROL_POINTS + shift, CONTROL_POINTS) for n in range(11) if n != 5]
    return ActiveLoop.start(12, OUTLINE, chain)


def test_pairs_of_two_mosaics_do_not_matter_but_may_be_asked():
    candidates, part = CandidatePairs.of(parted().view), parted().part
    across = part[candidates.error_pairs.pairs[:, 0]] != part[candidates.error_pairs.pairs[:, 1]]
    assert (candidates.weight[across] == 0.0).all()
    assert candidates.weight[~across].any()
    asked = part[candidates.surveyed.pairs]
    assert (asked[:, 0] != asked[:, 1]).any()


@pytest.mark.parametrize("frames", [2, 3])
def test_so_short_a_sequence_has_no_candidate_or_one(frames):
    world = raster(3)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(world.agent(1))[: frames - 1])
    assert CandidatePairs.of(state.view).surveyed.pairs.tolist() == [[0, 2]][: frames - 2]


@pytest.mark.parametrize("state", [walk, parted], ids=["walk", "parts"])
def test_no_reward_of_overlap_is_above_the_bound_that_the_search_relies_on(state):
    view = state().view
    reward = AcceptedTimesSpread(np.array([0.95, 0.0, 0.0, 0.0, 0.0]))
    centres = view.covariance.of_pairs(every_pair(view.frames))
    bound = _bound(np.sqrt(centres.cov[:, :, ::2]), np.abs(centres.mean - OUTLINE.centre), OUTLINE, reward.reach)
    found = reward.of(centres, np.zeros(len(bound)))
    assert (found <= bound.mean(axis=1) * (1.0 + 1e-9) + 1e-12 * found.max()).all()


def test_the_reward_is_the_probability_of_a_yes_times_the_spread_over_the_accepted_area():
    rates = np.array([0.95, 0.9, 0.7, 0.1, 0.0])
    centres = walk().covariance.of_pairs(np.array([[3, 20], [0, 39], [10, 31]]))
    area = np.sum(-np.diff(rates) * REACHES**2)
    expected = np.zeros(3)
    for side in range(2):
        likely = kinds(probability_within(one_way(centres, side))) @ rates
        xx, xy, yy = centres.cov[:, side].T
        expected += likely * np.sqrt(xx * yy - xy**2) / area / 2.0
    np.testing.assert_allclose(AcceptedTimesSpread(rates).of(centres, np.zeros(3)), expected, rtol=1e-9)


def test_rewards_fall_off_beyond_the_furthest_kind_that_is_accepted_now_and_then():
    assert AcceptedTimesSpread(np.array([0.95, 0.1, 0.01, 0.0, 0.0])).reach == 0.75 * math.sqrt(2.0)
    assert AcceptedTimesSpread(np.array([0.95, 0.9, 0.7, 0.1, 0.0])).reach == 2.0 * math.sqrt(2.0)
    assert AcceptedTimesSpread(np.array([0.95, 0.01, 0.0, 0.0, 0.0])).reach == 0.5
