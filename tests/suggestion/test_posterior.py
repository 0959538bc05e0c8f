"""How likely pairs are to be answered yes: a probability, as far as a few hundred pairs can tell."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.overlap.external_model import FixedProbabilities
from smalti.records import Answer, Author, Landmarks, Pair, pair_key
from smalti.suggestion.answer_model import FOUND, MISSED, share_found
from smalti.suggestion.pair_survey import SurveyedPairs
from smalti.suggestion.posterior import Posterior, kinds
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, raster

FRAMES = 120
SEEDS = (0, 3, 4, 5)


@cache
def answered(seed, answers=3):
    """A walk after some answers, and whether each pair that may be asked would get a yes."""
    world = wander(FRAMES, seed)
    agent = world.agent(seed)
    state = ActiveLoop.start(FRAMES, OUTLINE, world.chain(agent), external=world.external)
    for _ in range(answers):
        state = state.record(agent.answer(state.best.pair))
    pairs = np.column_stack(np.triu_indices(FRAMES, 2))
    pairs = pairs[state.view.may_be_asked(pairs)]
    return state, pairs, np.isin(pair_key(*pairs.T), pair_key(*world.overlapping.T))


def stated_and_true():
    found = [(Posterior.of(state.view).of_pairs(pairs), truth) for state, pairs, truth in map(answered, SEEDS)]
    return [np.concatenate(some) for some in zip(*found, strict=True)]


def test_of_pairs_stated_at_some_probability_so_many_overlap():
    stated, truth = stated_and_true()
    for lowest, highest in ((0.0, 0.05), (0.3, 0.6), (0.6, 0.85), (0.85, 0.97), (0.97, 1.0)):
        some = (stated >= lowest) & (stated <= highest)
        assert some.sum() > 60
        # Pairs beside each other overlap or do not together: a hundred tell no more than some twenty would.
        assert np.mean(truth[some]) == pytest.approx(np.mean(stated[some]), abs=0.15)


def test_it_foretells_answers_better_than_the_product_of_both_models():
    brier = np.zeros(2)
    for state, pairs, truth in map(answered, SEEDS):
        seen = SurveyedPairs.of(state.view, pairs)
        product = seen.position * state.view.external.probabilities()[tuple(pairs.T)]
        brier += [np.mean((some - truth) ** 2) for some in (Posterior.of(state.view).of_surveyed(seen), product)]
    assert brier[0] < 0.8 * brier[1]


def small(frames=20, external=None, chain_noise=1.0):
    world = raster(frames)
    agent = world.agent(1, chain_noise=chain_noise)
    return ActiveLoop.start(frames, OUTLINE, world.chain(agent), external=external), agent


def test_what_was_answered_is_known():
    state, agent = small()
    state = state.replay([agent.answer(Pair(4, 15)), Answer.no(Pair(5, 14)), Answer.unsure(Pair(6, 13))])
    known = np.array([[4, 15], [3, 4], [5, 14], [6, 13], [7, 7]])
    np.testing.assert_array_equal(Posterior.of(state.view).of_pairs(known), [1.0, 1.0, 0.0, 0.0, 1.0])


def test_a_refusal_makes_the_pair_beside_it_less_likely():
    # So noisy a chain does not know too well where frames lie.
    state, _ = small(60, chain_noise=3.0)
    beside = np.array([[10, 49]])
    before = Posterior.of(state.view).of_pairs(beside)
    after = Posterior.of(state.record(Answer.no(Pair(9, 50))).view).of_pairs(beside)
    assert after < 0.8 * before


def asking(state, author):
    return replace(state, setup=replace(state.setup, asked=author))


def test_a_failure_of_the_matcher_says_less_about_an_overlap_than_a_no():
    state, _ = small(60, chain_noise=3.0)
    pair = Pair(9, 50)
    for one in (np.array([[9, 50]]), np.array([[10, 49]])):
        before = state.posterior.overlap_of_pairs(one)
        failed = state.record(Answer.unsure(pair)).posterior.overlap_of_pairs(one)
        refused = state.record(Answer.no(pair)).posterior.overlap_of_pairs(one)
        assert refused < failed < before


def test_while_the_matcher_is_asked_it_fails_beside_a_failure_as_after_a_no():
    state, _ = small(60, chain_noise=3.0)
    pairs = np.column_stack(np.triu_indices(60, 2))
    failed, refused = (state.record(answer) for answer in (Answer.unsure(Pair(9, 50)), Answer.no(Pair(9, 50))))
    np.testing.assert_array_equal(failed.posterior.of_pairs(pairs), refused.posterior.of_pairs(pairs))
    assert failed.is_settled(Pair(9, 50))


def test_a_person_can_be_asked_what_the_matcher_could_not_tell():
    state, agent = small(60, chain_noise=3.0)
    failed = asking(state, Author.PERSON).record(Answer.unsure(Pair(9, 50)))
    assert failed.view.may_be_asked(np.array([[9, 50]])).all()
    assert failed.posterior.of_pairs(np.array([[9, 50]])) > 0.0
    answered = failed.record(replace(agent.answer(Pair(9, 50)), author=Author.PERSON))
    assert answered.is_settled(Pair(9, 50))
    # A pair that the matcher missed, and a person saw.
    assert answered.posterior.overlaps.refusals[-1].found < failed.posterior.overlaps.refusals[-1].found


def test_the_share_that_a_matcher_finds_is_learned_from_what_became_of_its_attempts():
    assert share_found(0, np.zeros(0)) == FOUND / (FOUND + MISSED)
    assert share_found(20, np.zeros(5)) == (FOUND + 20) / (FOUND + MISSED + 20)
    # Pairs that surely overlap were surely missed.
    assert share_found(20, np.ones(5)) == pytest.approx((FOUND + 20) / (FOUND + MISSED + 25))
    assert share_found(20, np.full(5, 0.5)) > share_found(20, np.ones(5))


@pytest.mark.parametrize("looks", ["none", "zeros", "ones"])
def test_looks_that_tell_nothing_leave_what_the_mosaic_says(looks):
    external = {"none": None, "zeros": np.zeros((30, 30)), "ones": np.ones((30, 30))}[looks]
    state, _ = small(30, None if external is None else FixedProbabilities(external))
    posterior = Posterior.of(state.view)
    seen = SurveyedPairs.of(state.view, np.array([[5, 24], [3, 20], [0, 28], [2, 9]]))
    expected = kinds(seen.within) @ posterior.acceptance
    # But for the few pairs that are imagined to have been seen.
    np.testing.assert_allclose(posterior.of_surveyed(seen), expected, rtol=0.02)


@pytest.mark.parametrize("frames", [2, 3])
def test_so_short_a_sequence_has_probabilities_too(frames):
    world = raster(3)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(world.agent(1))[: frames - 1])
    pairs = np.column_stack(np.triu_indices(frames, 1))
    probability = Posterior.of(state.view).of_pairs(pairs)
    assert (probability[np.diff(pairs, axis=1)[:, 0] == 1] == 1.0).all()
    assert ((probability > 0.0) & (probability <= 1.0)).all()


def parted():
    """Two stretches of six frames that nothing joins."""
    shift = np.array([30.0, 0.0])
    chain = [Landmarks(Pair(n, n + 1), CONTROL_POINTS + shift, CONTROL_POINTS) for n in range(11) if n != 5]
    return ActiveLoop.start(12, OUTLINE, chain)


def test_frames_that_nothing_joins_may_be_anywhere():
    posterior = Posterior.of(parted().view)
    across, within = posterior.of_pairs(np.array([[4, 7], [0, 1]]))
    assert 0.0 < across < 0.6
    assert within == 1.0


def test_of_frames_that_nothing_joins_looks_decide():
    world = wander(FRAMES, 3)
    chain = [record for record in world.chain(world.agent(3)) if record.pair.i != FRAMES // 2]
    state = ActiveLoop.start(FRAMES, OUTLINE, chain, external=world.external)
    pairs = np.column_stack(np.triu_indices(FRAMES, 2))
    pairs = pairs[state.part[pairs[:, 0]] != state.part[pairs[:, 1]]]
    truth = np.isin(pair_key(*pairs.T), pair_key(*world.overlapping.T))
    stated = Posterior.of(state.view).of_pairs(pairs)
    assert stated[truth].mean() > 3.0 * stated[~truth].mean()


def test_kinds_share_out_a_certain_total():
    within = np.array([[0.1, 0.3, 0.3, 0.8], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_allclose(kinds(within), [[0.1, 0.2, 0.0, 0.5, 0.2], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]], atol=1e-12)
