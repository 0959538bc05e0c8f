"""The strategy by expected overlap, against an integral over every candidate's position."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

from smalti.experiments.worlds import OUTLINE, circle, raster
from smalti.geometry.outline import Outline
from smalti.loop import ActiveLoop
from smalti.overlap.external import FixedProbabilities
from smalti.records import Landmarks, Pair
from smalti.suggestion.strategies import strategy_named
from smalti.suggestion.strategies.area import Area, ExpectedOverlapTimesSpread
from smalti.suggestion.strategies.paper import Paper

EVERYTHING = 10**6
NEXT_TO_NOTHING = 1e-9
"""Rewards below this are rounding."""

LEGENDRE = leggauss(60)
WORLDS = {
    "raster at the start": lambda: (raster(30), []),
    "raster": lambda: (raster(30), [(3, 26), (7, 21), (5, 20), (12, 17), (0, 28)]),
    "circle": lambda: (circle(32), [(0, 31), (10, 26), (5, 29), (1, 30)]),
}


@cache
def state_named(name):
    world, asked = WORLDS[name]()
    agent = world.agent(3)
    start = ActiveLoop.start(world.frames, OUTLINE, world.chain(agent), external=world.external)
    return start.replay(agent.answer(Pair(i, j)) for i, j in asked)


def moved_by(steps, outline=OUTLINE, sigma=1.0, external=None):
    """A chain of exact landmarks, frame n+1 lying `steps[n]` from frame n."""
    points = outline.corners
    chain = [Landmarks(Pair(n, n + 1), points + step, points, sigma) for n, step in enumerate(steps)]
    return ActiveLoop.start(len(steps) + 1, outline, chain, external=external)


def rewards_of(state, pairs):
    """E[overlap] · √det Σ_γ of pairs (n, 2)."""
    centres = state.covariance.of_pairs(np.asarray(pairs))
    return ExpectedOverlapTimesSpread().of(centres, np.zeros(len(pairs)))


def all_pairs(state):
    """Every pair in both orders, and every frame with itself."""
    return np.argwhere(np.ones(2 * [state.adjustment.frames], dtype=bool))


def may_be_asked(state):
    gone = {*state.adjustment.links, *(answer.pair for answer in state.answers)}
    frames = state.adjustment.frames
    pairs = [Pair(i, j) for i in range(frames) for j in range(i + 2, frames)]
    return [pair for pair in pairs if pair not in gone]


def expected_share(mean, deviation, length):
    """E[(1 - |x|/length)⁺], summed over the density: the tent has corners, so each of its sides by itself."""
    nodes, weights = LEGENDRE
    total = 0.0
    for left, right in ((-length, 0.0), (0.0, length)):
        low, high = max(left, mean - 9 * deviation), min(right, mean + 9 * deviation)
        if high > low:
            x = (low + high) / 2 + (high - low) / 2 * nodes
            tent = (1.0 - np.abs(x) / length) * np.exp(-0.5 * ((x - mean) / deviation) ** 2)
            total += (high - low) / 2 * float(weights @ tent)
    return total / (deviation * np.sqrt(2 * np.pi))


def brute_force(state):
    """The reward of every candidate, best first, from its own covariance; what is worth nothing left out."""
    external, rewards = state.external.probabilities(), {}
    outline = state.adjustment.outline
    for pair in may_be_asked(state):
        products = []
        for a, b in ((pair.i, pair.j), (pair.j, pair.i)):
            mean, cov = state.covariance.centre(a, b)
            x, y = mean - outline.centre
            along_x = expected_share(x, np.sqrt(cov[0, 0]), outline.width)
            along_y = expected_share(y, np.sqrt(cov[1, 1]), outline.height)
            products.append(along_x * along_y * np.sqrt(np.linalg.det(cov)))
        rewards[pair] = external[pair.i, pair.j] * sum(products) / 2
    worth = ((pair, value) for pair, value in rewards.items() if value > NEXT_TO_NOTHING)
    return sorted(worth, key=lambda item: (-item[1], item[0]))


@cache
def brute_force_of(name):
    return brute_force(state_named(name))


@pytest.mark.parametrize("top", [1, 3, 10, EVERYTHING])
@pytest.mark.parametrize("name", WORLDS)
def test_it_finds_the_best_of_all_candidates(name, top):
    expected = brute_force_of(name)[:top]
    found = [s for s in Area().rank(state_named(name).view, top) if s.expected_reward > NEXT_TO_NOTHING]
    assert [s.pair for s in found] == [pair for pair, _ in expected]
    np.testing.assert_allclose([s.expected_reward for s in found], [value for _, value in expected], rtol=1e-6)


def test_the_expectation_is_that_of_the_shared_area_where_x_and_y_vary_apart():
    # The rule of Gauss and Hermite in two dimensions; frames well inside each other, so that the tent has no corner.
    state = moved_by([(30.0, 20.0), (5.0, 15.0)], sigma=0.5)
    nodes, weights = hermegauss(20)
    products = []
    for i, j in ((0, 2), (2, 0)):
        mean, cov = state.covariance.centre(i, j)
        assert abs(cov[0, 1]) < 1e-9
        x = mean[0] - OUTLINE.centre[0] + np.sqrt(cov[0, 0]) * nodes[:, None]
        y = mean[1] - OUTLINE.centre[1] + np.sqrt(cov[1, 1]) * nodes[None]
        shared = (1 - np.abs(x) / OUTLINE.width) * (1 - np.abs(y) / OUTLINE.height)
        products.append(weights @ shared @ weights / (2 * np.pi) * np.sqrt(np.linalg.det(cov)))
    found = rewards_of(state, [(0, 2)])[0]
    assert found == pytest.approx(np.mean(products), rel=1e-9)


@pytest.mark.parametrize("shift", [(5.0, 0.0), (0.0, 30.0), (50.0, 10.0), (20.0, -70.0), (-85.0, 85.0)])
def test_where_positions_are_certain_the_overlap_is_what_the_frames_share(shift):
    middle = np.array([50.0, 50.0])
    state = moved_by([middle, np.array(shift) - middle], sigma=0.01)
    found = {s.pair: s for s in Area().rank(state.view, EVERYTHING)}[Pair(0, 2)]
    shared = (1.0 - abs(shift[0]) / 100.0) * (1.0 - abs(shift[1]) / 100.0)
    assert found.expected_reward / found.reasons["informativeness_px2"] == pytest.approx(shared, abs=1e-3)


def test_both_directions_count_alike():
    state = state_named("circle")
    pairs = all_pairs(state)
    np.testing.assert_array_equal(rewards_of(state, pairs), rewards_of(state, pairs[:, ::-1]))


def test_a_frame_is_no_question_to_itself():
    state = state_named("circle")
    np.testing.assert_array_equal(rewards_of(state, [(n, n) for n in range(state.adjustment.frames)]), 0.0)


def test_no_reward_is_negative_or_undefined_however_wild_the_guess():
    state = moved_by([(20.0, 0.0), (40.0, 10.0), (30.0, 0.0)], sigma=1e5)
    found = rewards_of(state, all_pairs(state))
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_frames_that_share_a_rim_are_asked_though_neither_shows_the_others_centre():
    # Certain positions: with more than half a frame between the centres the paper sees nothing to ask.
    state = moved_by([(35.0, 0.0), (35.0, 0.0)], sigma=0.01)
    assert Area().rank(state.view, 1)[0].pair == Pair(0, 2)
    assert Area().rank(state.view, 1)[0].expected_reward > NEXT_TO_NOTHING
    assert all(s.expected_reward < NEXT_TO_NOTHING for s in Paper().rank(state.view, 1))


@pytest.mark.parametrize("step", [(51.0, 0.0), (0.0, 51.0)])
def test_frames_that_share_nothing_are_not_asked(step):
    state = moved_by([step, step], sigma=0.01)
    assert all(s.expected_reward < NEXT_TO_NOTHING for s in Area().rank(state.view, EVERYTHING))


def test_an_oblong_frame_reaches_farther_along_its_long_side():
    oblong = Outline(0.0, 0.0, 300.0, 60.0)
    along = moved_by([(45.0, 0.0), (45.0, 0.0)], outline=oblong, sigma=0.01)
    across = moved_by([(0.0, 45.0), (0.0, 45.0)], outline=oblong, sigma=0.01)
    assert Area().rank(along.view, 1)[0].expected_reward > NEXT_TO_NOTHING
    assert all(s.expected_reward < NEXT_TO_NOTHING for s in Area().rank(across.view, 1))


def test_nothing_is_asked_that_the_external_model_rules_out():
    nothing = FixedProbabilities(np.zeros((3, 3)))
    assert Area().rank(moved_by([(20.0, 0.0), (20.0, 0.0)], external=nothing).view, EVERYTHING) == []


def test_the_external_probability_is_a_factor():
    steps = [(20.0, 3.0), (15.0, 0.0), (5.0, -20.0)]
    half = FixedProbabilities(np.full((4, 4), 0.5))
    full = [s.expected_reward for s in Area().rank(moved_by(steps).view, EVERYTHING)]
    halved = [s.expected_reward for s in Area().rank(moved_by(steps, external=half).view, EVERYTHING)]
    np.testing.assert_allclose(halved, np.array(full) / 2, rtol=1e-12)


def test_every_suggestion_says_why():
    for suggestion in Area().rank(state_named("raster").view, 3):
        assert suggestion.reasons.keys() == {"position", "external", "informativeness_px2"}


def test_it_is_found_by_its_name():
    assert strategy_named("area") == Area()
