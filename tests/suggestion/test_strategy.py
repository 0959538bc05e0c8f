"""Smalti's own strategy: what it asks first, together, and not at all."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numba
import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import FixedProbabilities
from smalti.records import Pair, Suggestion
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.expected_gain import ExpectedGain
from smalti.suggestion.state_view import Answered, View
from smalti.suggestion.strategy import Smalti
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import OUTLINE, raster

BATCH = 8


@cache
def there_and_back(frames=60):
    world = raster(frames)
    return ActiveLoop.start(frames, OUTLINE, world.chain(world.agent(1)), external=world.external)


@cache
def walk(frames=80):
    world = wander(frames, 3)
    return ActiveLoop.start(frames, OUTLINE, world.chain(world.agent(3)), external=world.external)


def neighbours(suggestions):
    """How many of some pairs of frames lie beside an earlier one."""
    pairs = [(some.pair.i, some.pair.j) for some in suggestions]
    return sum(any(max(abs(i - a), abs(j - b)) <= 1 for a, b in pairs[:n]) for n, (i, j) in enumerate(pairs) if n > 0)


def details(suggestions):
    return [(some.pair, some.expected_reward, some.reasons) for some in suggestions]


def test_nothing_is_asked_twice():
    world = wander(40, 1)
    agent = world.agent(1)
    start = ActiveLoop.start(40, OUTLINE, world.chain(agent), external=world.external, stop_rule=StopRule(budget=10))
    *_, last = start.run(agent)
    asked = [answer.pair for answer in last.answers]
    assert len(set(asked)) == 10
    assert not set(asked) & set(start.chain)
    assert not set(asked) & {some.pair for some in last.suggest(10)}


def test_the_best_pairs_together_are_hardly_neighbours_where_the_best_ones_each_by_itself_are():
    view = there_and_back().view
    assert neighbours(Smalti().rank(view, BATCH)) <= 1
    candidates = CandidatePairs.of(view)
    worth = Smalti().gain_per_cost(candidates.yes_probability, candidates.expected_gain(view).gains)
    apart = [Suggestion(Pair(*map(int, candidates.surveyed.pairs[n])), 0.0) for n in np.argsort(-worth)[:BATCH]]
    assert neighbours(apart) > BATCH // 2


def test_the_first_of_many_is_the_one_that_is_asked_alone():
    view = walk().view
    assert details(Smalti().rank(view, BATCH)[:1]) == details(Smalti().rank(view, 1))


def test_each_is_the_best_if_those_before_it_are_asked():
    expected_gain = CandidatePairs.of(walk().view).expected_gain(walk().view)
    for best, worth, drop, left in Smalti().choose(expected_gain, 4):
        assert isinstance(left, ExpectedGain)
        assert worth == pytest.approx(np.max(expected_gain.yes_probability * expected_gain.gains))
        assert drop == pytest.approx(expected_gain.gains[best])
        expected_gain = expected_gain.suppose(best)
        assert left.squared_error == expected_gain.squared_error


def test_worth_falls_from_one_to_the_next():
    worth = [some.expected_reward for some in Smalti().rank(walk().view, BATCH)]
    assert all(later <= earlier for earlier, later in pairwise(worth))


def test_the_worth_of_a_pair_is_its_expected_drop_over_its_expected_cost():
    strategy = Smalti(cost_of_yes=10.0, cost_of_no=2.0)
    for suggestion in strategy.rank(walk().view, BATCH):
        likely, drop = suggestion.reasons["overlap"], suggestion.reasons["drop_px2"]
        assert suggestion.expected_reward == pytest.approx(likely * drop / (10.0 * likely + 2.0 * (1.0 - likely)))


def test_a_no_that_costs_little_makes_it_bolder():
    world = wander(80, 3)
    # Without looks, and with so noisy a chain, little is sure.
    view = ActiveLoop.start(80, OUTLINE, world.chain(world.agent(3, chain_noise=5.0))).view
    dear, cheap = (
        np.mean([some.reasons["overlap"] for some in Smalti(cost_of_no=cost).rank(view, 5)]) for cost in (1.0, 0.02)
    )
    assert cheap < dear - 0.05


def test_equal_states_are_asked_the_same_to_the_last_bit():
    world = wander(80, 3)
    again = ActiveLoop.start(80, OUTLINE, world.chain(world.agent(3)), external=world.external)
    assert details(again.suggest(BATCH)) == details(walk().suggest(BATCH))


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core has one thread")
def test_the_number_of_threads_changes_no_bit(monkeypatch):
    # Even small work is shared.
    monkeypatch.setattr("smalti.compiled.LEAST_PARALLEL_MICROSECONDS", 0.0)
    world = wander(50, 3)
    found = []
    before = numba.get_num_threads()
    for threads in (1, 2):
        numba.set_num_threads(threads)
        try:
            state = ActiveLoop.start(50, OUTLINE, world.chain(world.agent(3)), external=world.external)
            found.append((details(state.suggest(4)), state.prediction.error_px, state.prediction.bound_px))
        finally:
            numba.set_num_threads(before)
    assert found[0] == found[1]


def test_nothing_is_asked_where_every_pair_was_answered():
    state = there_and_back(6)
    everything = np.column_stack(np.triu_indices(6, 1))
    view = View(state.estimate, state.setup.untrained, Answered(settled=everything))
    assert Smalti().rank(view, 3) == []


@pytest.mark.parametrize("frames", [2, 3])
def test_so_short_a_sequence_has_nothing_to_ask_or_one_pair(frames):
    world = raster(3)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(world.agent(1))[: frames - 1])
    assert [(some.pair.i, some.pair.j) for some in state.suggest(5)] == [(0, 2)][: frames - 2]


def test_looks_that_rule_out_what_overlaps_do_not_keep_it_from_being_asked():
    # A model that is sure of the contrary of the truth: the mosaic shows that it knows nothing.
    world = raster(60)
    agent = world.agent(1)
    upside_down = FixedProbabilities(1.0 - world.external.probabilities())
    state = ActiveLoop.start(60, OUTLINE, world.chain(agent), external=upside_down)
    asked = state.suggest(BATCH)
    assert sum(agent.answer(some.pair).landmarks is not None for some in asked) >= BATCH // 2
