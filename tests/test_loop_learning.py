"""The active loop that learns how noisy its links are, and stops by the bound on its error."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.errors import PairError
from smalti.experiments.worlds import OUTLINE, raster
from smalti.loop import CAMERA, CHAIN, MATCHER, PERSON, ActiveLoop, StopReason, StopRule
from smalti.overlap.external import FixedProbabilities
from smalti.records import Answer, Author, Pair
from smalti.suggestion.strategies.paper import Paper
from smalti.suggestion.strategies.smalti import Smalti
from smalti.suggestion.view import View

FRAMES = 60
WORLD = raster(FRAMES)
ACROSS = [Pair(n, FRAMES - 1 - n) for n in (2, 7, 12, 17, 22, 27)]


def started(chain_noise=1.0, seed=1, **more):
    agent = WORLD.agent(seed, chain_noise=chain_noise)
    return ActiveLoop.start(FRAMES, OUTLINE, WORLD.chain(agent), external=WORLD.external, **more), agent


@cache
def answered(chain_noise, seed=1, strategy=None, learns=None):
    state, agent = started(chain_noise, seed, strategy=strategy, learns=learns)
    return state.replay(agent.answer(pair) for pair in ACROSS)


def of_seeds(chain_noise, number):
    return np.exp(np.mean([np.log(number(answered(chain_noise, seed))) for seed in range(1, 5)]))


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_the_noise_of_a_chain_that_is_stated_wrongly_is_found(noise):
    # Six loops of six numbers each: to some 15 % for one world, half of that for four.
    assert of_seeds(noise, lambda state: state.factors[CHAIN]) == pytest.approx(noise, rel=0.25)


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_the_predicted_error_follows_the_noise(noise):
    predicted = of_seeds(noise, lambda state: state.predicted_error_px)
    true = of_seeds(noise, lambda state: WORLD.relative_rmsd(state.covariance.mosaic_from_frame))
    assert predicted == pytest.approx(true, rel=0.25)


def test_without_learning_the_predicted_error_is_what_landmarks_say():
    noisy, plain = (answered(noise, learns=False).predicted_error_px for noise in (3.0, 1.0))
    assert noisy == pytest.approx(plain, rel=0.05)


@pytest.mark.parametrize(("strategy", "learns"), [(Paper(), None), (Smalti(), False)], ids=["paper", "told not to"])
def test_who_does_not_learn_leaves_the_noise_as_it_is(strategy, learns):
    assert answered(3.0, strategy=strategy, learns=learns).factors == (1.0, 1.0, 1.0, 1.0)


def test_the_paper_learns_if_it_is_told_to():
    assert answered(3.0, strategy=Paper(), learns=True).factors == answered(3.0).factors


def test_links_are_weighted_by_what_was_learned():
    plain, learned = answered(3.0, learns=False), answered(3.0)
    calm = learned.camera.calmed(learned.factors[CHAIN], learned.factors[CAMERA])
    assert set(calm) == set(learned.chain)
    for pair, link in learned.adjustment.links.items():
        if pair in calm:
            np.testing.assert_allclose(link.root, calm[pair].root, rtol=1e-9)
            np.testing.assert_allclose(link.i_from_j, calm[pair].i_from_j, rtol=1e-9)
        else:
            plain_root = plain.adjustment.links[pair].root
            np.testing.assert_allclose(learned.factors[MATCHER] * link.root, plain_root, rtol=1e-9)


def test_of_a_camera_that_only_moves_it_is_learned_that_it_never_turns():
    state, agent = started()
    begun = state.turn
    state = state.replay(agent.answer(Pair(n, FRAMES - 1 - n)) for n in range(2, 28, 2))
    assert state.factors[CHAIN] == pytest.approx(1.0, rel=0.1)
    assert state.turn < 0.3 * begun


def test_who_does_not_learn_takes_the_chain_as_it_was_measured():
    assert answered(1.0, learns=False).camera is None


def test_a_new_link_is_weighted_like_those_before_it():
    state, agent = started(3.0)
    before = state.replay(agent.answer(pair) for pair in ACROSS[:5])
    link = before._link(agent.landmarks(ACROSS[5]), Author.MATCHER)
    plain = state._link(agent.landmarks(ACROSS[5]), Author.MATCHER)
    np.testing.assert_allclose(before.factors[MATCHER] * link.root, plain.root, rtol=1e-12)
    assert before.factors[MATCHER] != 1.0


def test_a_person_has_a_noise_of_their_own():
    state, agent = started()
    careless = WORLD.agent(5, sigma=10.0)
    for pair in ACROSS:
        state = state.record(agent.answer(pair))
    for n in (4, 9, 14, 19, 24):
        told = careless.landmarks(Pair(n, FRAMES - 1 - n))
        told = type(told)(told.pair, told.points_i, told.points_j, 1.0)
        state = state.record(Answer.yes(told, author=Author.PERSON))
    assert state.factors[PERSON] > 2.0
    assert state.factors[MATCHER] < 1.5


def test_a_refusal_of_what_was_thought_to_overlap_is_learned_from():
    state, _ = started(3.0)
    later = state.record(Answer.no(state.best.pair))
    assert later.factors[CHAIN] > 1.05
    assert later.factors[CAMERA] > 1.0


def test_a_refusal_of_what_lies_far_apart_teaches_nothing():
    state, _ = started()
    assert state.record(Answer.no(Pair(0, 30))).factors == state.factors


def test_equal_answers_teach_equal_bits():
    state, agent = started(3.0)
    again = state.replay(agent.answer(pair) for pair in ACROSS)
    assert again.factors == answered(3.0).factors
    np.testing.assert_array_equal(again.adjustment.mosaic_from_frame, answered(3.0).adjustment.mosaic_from_frame)
    assert again.error_bound_px == answered(3.0).error_bound_px


def test_it_stops_only_when_the_bound_is_below_the_target():
    target = 2.5
    state, agent = started(stop_rule=StopRule(budget=30, target_px=target))
    *earlier, last = [state, *state.run(agent)]
    assert last.stop_reason() is StopReason.TARGET
    assert last.error_bound_px <= target
    assert all(some.error_bound_px > target for some in earlier)
    assert WORLD.relative_rmsd(last.covariance.mosaic_from_frame) < target


def test_the_error_being_below_the_target_is_not_enough():
    state = answered(1.0)
    between = (state.predicted_error_px + state.error_bound_px) / 2.0
    agent = WORLD.agent(1)
    again, _ = started(stop_rule=StopRule(target_px=between))
    again = again.replay(agent.answer(pair) for pair in ACROSS)
    assert again.predicted_error_px < between
    assert again.stop_reason() is None


def test_no_other_pairs_than_those_that_can_be_answered_are_asked():
    only = np.array([[3, 56], [10, 49], [11, 48], [20, 39]])
    state, agent = started(only=only, stop_rule=StopRule(budget=20))
    assert {(some.pair.i, some.pair.j) for some in state.suggest(20)} <= {tuple(pair) for pair in only.tolist()}
    *_, last = state.run(agent)
    assert {(answer.pair.i, answer.pair.j) for answer in last.answers} == {tuple(pair) for pair in only.tolist()}
    assert last.stop_reason() is StopReason.NO_CANDIDATE


def test_a_batch_is_what_is_best_together():
    state, agent = started(stop_rule=StopRule(budget=8))
    *_, last = state.run(agent, batch=8)
    assert [answer.pair for answer in last.answers] == [some.pair for some in state.suggest(8)]


# What a strategy sees


def test_what_is_linked_settled_and_allowed_is_told_apart():
    state, agent = started()
    view = state.replay([agent.answer(Pair(2, 57)), Answer.no(Pair(5, 40))]).view
    pairs = np.array([[2, 57], [5, 40], [3, 4], [9, 50]])
    np.testing.assert_array_equal(view.is_linked(pairs), [True, False, True, False])
    np.testing.assert_array_equal(view.is_settled(pairs), [True, True, True, False])
    np.testing.assert_array_equal(view.may_be_asked(pairs), [False, False, False, True])
    np.testing.assert_array_equal(view.refused, [[5, 40]])


def test_looks_are_shown_before_any_answer_and_as_trained():
    class Counting(FixedProbabilities):
        """Trained on so many pairs."""

        def learn(self, overlapping, apart):
            trained = Counting(self.matrix)
            object.__setattr__(trained, "seen", (len(overlapping), len(apart)))
            return trained

    state, agent = started()
    counting = Counting(WORLD.external.probabilities())
    answers = [agent.answer(Pair(2, 57)), Answer.no(Pair(5, 40))]
    told = state.replay(answers).view.answered
    view = View(state.covariance, counting, told)
    assert view.steady is counting
    assert view.external.seen == (FRAMES, 1)


def test_a_pair_that_is_given_twice_is_refused():
    chain = WORLD.chain(WORLD.agent(1))
    with pytest.raises(PairError, match="given twice"):
        ActiveLoop.start(FRAMES, OUTLINE, [*chain, chain[3]])
    with pytest.raises(PairError, match="given twice"):
        ActiveLoop.start(FRAMES, OUTLINE, chain, priors=[chain[3]])
