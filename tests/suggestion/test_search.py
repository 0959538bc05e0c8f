"""The exact search against looking at every pair, in double precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.special import erfc

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import fit_link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import refine
from smalti.experiments.worlds import CONTROL_POINTS, OUTLINE, raster
from smalti.geometry.affine import compose
from smalti.loop import ActiveLoop
from smalti.overlap.external import FixedProbabilities, NoExternalModel
from smalti.overlap.rectangle import rectangle_probability
from smalti.overlap.signatures import WeightedSignatures
from smalti.records import Answer, Landmarks, Pair
from smalti.suggestion.search import ROUNDING, _bound, _Hunt, search
from smalti.suggestion.strategies import strategy_named
from smalti.suggestion.strategies.area import Area, ExpectedOverlapTimesSpread
from smalti.suggestion.strategies.paper import ExpectedInformativeness, Paper
from smalti.suggestion.strategies.position_only import PositionOnly
from smalti.suggestion.view import Answered, GivenUp, View
from tests.adjustment.turning_camera import turning

EVERYTHING = 10**6
NEARLY_EQUAL = 1e-12
PROBLEMS = 20
STRATEGIES = ["paper", "position-only", "area"]
NOTHING_SETTLED = np.empty((0, 2), dtype=np.int64)


# Random problems


def wandering(rng, frames):
    """Centres (N, 2) of frames along a path that comes back to where it was."""
    if rng.random() < 0.3:
        width = int(rng.integers(5, 20))  # to and fro, row beside row
        n = np.arange(frames)
        row, at = np.divmod(n, width)
        places = np.column_stack([np.where(row % 2, width - 1 - at, at) * 33.0, row * 33.0])
        return places + rng.normal(0.0, 3.0, places.shape)
    heading = np.cumsum(rng.normal(0.0, 0.5, frames))
    steps = 30.0 * np.column_stack([np.cos(heading), np.sin(heading)])
    reach = rng.uniform(100.0, 400.0)
    places = np.zeros((frames, 2))
    for n in range(1, frames):
        home = -0.3 * places[n - 1] / reach * 30.0
        places[n] = places[n - 1] + steps[n] + home
    return places


def landmarks_of(rng, places, pair):
    sigma = float(rng.uniform(0.3, 3.0))
    exact = CONTROL_POINTS + places[pair.j] - places[pair.i]
    return Landmarks(pair, exact + rng.normal(0.0, sigma, exact.shape), CONTROL_POINTS, sigma)


def random_signatures(rng, places):
    """Words that are seen at places, few a frame, and some that lie."""
    words = 300
    where = rng.uniform(places.min(axis=0), places.max(axis=0), (words, 2))
    near = np.linalg.norm(places[:, None] - where[None], axis=2) < 80.0
    raw = rng.exponential(size=near.shape) * (near | (rng.random(near.shape) < 0.01))
    raw[:, 0] += 0.05
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def external_of(rng, kind, places):
    if kind == "matrix":
        matrix = rng.random((len(places), len(places))) ** 3
        return FixedProbabilities(np.maximum(matrix, matrix.T))
    return WeightedSignatures(random_signatures(rng, places)) if kind == "words" else None


@cache
def random_state(number):
    """A loop of 30 to 400 frames after some answers of either kind; a third each knows a matrix, words, or nothing."""
    rng = np.random.default_rng([71, number])
    frames = round(30 * (400 / 30) ** rng.random())
    places = wandering(rng, frames)
    external = external_of(rng, ("matrix", "words", "nothing")[number % 3], places)
    chain = [landmarks_of(rng, places, Pair(n, n + 1)) for n in range(frames - 1)]
    state = ActiveLoop.start(frames, OUTLINE, chain, external=external, strategy=Paper())
    apart = np.column_stack(np.triu_indices(frames, 2))
    distance = np.abs(places[apart[:, 0]] - places[apart[:, 1]]).max(axis=1)
    overlapping, others = apart[distance < 60.0], apart[distance > 110.0]
    for some, count in ((overlapping, int(rng.integers(0, 12))), (others, int(rng.integers(0, 8)))):
        for i, j in some[rng.choice(len(some), size=min(count, len(some)), replace=False)].tolist():
            pair = Pair(i, j)
            yes = some is overlapping
            state = state.record(Answer.yes(landmarks_of(rng, places, pair)) if yes else Answer.no(pair))
    return state


# The reference


def overlap_times_spread(mean, cov):
    """E[overlap] · √det Σ of normals (..., 2), (..., 3), by numpy."""
    total = np.sqrt(np.maximum(cov[..., 0] * cov[..., 2] - cov[..., 1] ** 2, 0.0))
    for axis, length in ((0, OUTLINE.width), (1, OUTLINE.height)):
        deviation = np.sqrt(cov[..., 2 * axis])
        at = mean[..., axis] - OUTLINE.centre[axis]
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = []
            for u in (at + length, at - length, at):
                z = u / deviation
                parts.append(
                    u * 0.5 * erfc(-z * math.sqrt(0.5)) + deviation * np.exp(-0.5 * z * z) / math.sqrt(2 * np.pi)
                )
            share = np.maximum((parts[0] + parts[1] - 2.0 * parts[2]) / length, 0.0)
        total = total * np.where(np.abs(at) > length + 8.0 * deviation, 0.0, share)
    return np.nan_to_num(total)


@cache
def by_position(view, share_of_area):
    """(N, N): what all pairs are worth but for P^ext, mean of both directions."""
    centres = view.centres
    if share_of_area:
        directed = overlap_times_spread(centres.mean, centres.cov)
    else:
        directed = rectangle_probability(centres.mean, centres.cov, OUTLINE) * np.sqrt(centres.determinant)
    return (directed + directed.T) / 2


def candidates(view):
    """The pairs i < j (n, 2) that may be asked."""
    frames = view.frames
    allowed = np.triu(np.ones((frames, frames), dtype=bool), 2)
    for i, j in (*view.adjustment.ends, *view.settled):
        allowed[i, j] = False
    return np.argwhere(allowed)


@dataclass(frozen=True)
class Exhaustive:
    """What every pair is worth, and all candidates of a positive reward, best first, equal ones by pair."""

    worth: np.ndarray  # (N, N)
    pairs: np.ndarray
    rewards: np.ndarray

    @classmethod
    def of(cls, view, name):
        pairs = candidates(view)
        i, j = pairs.T
        external = 1.0 if name == "position-only" else view.external.probabilities()
        worth = external * by_position(view, name == "area")
        order = np.lexsort((j, i, -worth[i, j]))
        order = order[worth[i, j][order] > 0]
        return cls(worth, pairs[order], worth[i, j][order])


@cache
def exhaustive(number, name):
    return Exhaustive.of(random_state(number).view, name)


def assert_best(found, every, top):
    """The same rewards rank by rank, and the same pairs but where rewards are equal to twelve digits."""
    best = every.rewards[:top]
    assert len(found) == len(best)
    np.testing.assert_allclose([suggestion.expected_reward for suggestion in found], best, rtol=1e-9)
    pairs = [(suggestion.pair.i, suggestion.pair.j) for suggestion in found]
    assert len(set(pairs)) == len(pairs)
    np.testing.assert_allclose([every.worth[pair] for pair in pairs], best, rtol=NEARLY_EQUAL)
    may_be_asked = {(int(i), int(j)) for i, j in every.pairs[: 2 * top]}
    assert may_be_asked >= set(pairs)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("number", range(PROBLEMS))
def test_the_suggestions_are_those_of_looking_at_every_pair(number, name):
    view = random_state(number).view
    for top in (1, 25):
        assert_best(strategy_named(name).rank(view, top), exhaustive(number, name), top)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_they_are_so_where_the_ways_of_all_frames_have_no_room(number, monkeypatch):
    monkeypatch.setattr("smalti.adjustment.local_covariance.MOST_BYTES_OF_WAYS", 0)
    monkeypatch.setattr("smalti.adjustment.local_covariance.PAIRS_AT_ONCE", 50)
    state = random_state(number)
    view = View(LocalCovariance(state.adjustment), state.external, Answered(state.view.settled))
    assert_best(Paper().rank(view, 5), exhaustive(number, "paper"), 5)


@pytest.mark.parametrize("number", [0, 7, 8])
@pytest.mark.parametrize("share", [0.3, 1e-3])
def test_all_that_reach_a_share_of_the_best_are_found_in_their_order(number, share):
    view, every = random_state(number).view, exhaustive(number, "paper")
    found = search(view, view.looks, ExpectedInformativeness(), 2000, faintest_share=share)
    wanted = every.rewards[:2000] >= share * every.rewards[0] * (1.0 + NEARLY_EQUAL)
    assert 0 < wanted.sum() <= len(found.rewards)
    np.testing.assert_allclose(found.rewards[: wanted.sum()], every.rewards[:2000][wanted], rtol=1e-9)


def test_what_is_fainter_is_not_looked_for():
    view = random_state(0).view
    looked_at = [
        search(view, view.looks, ExpectedInformativeness(), 2000, faintest_share=share).evaluated
        for share in (0.0, 1e-3, 0.3)
    ]
    assert looked_at[0] > 2 * looked_at[1]
    assert looked_at[1] > looked_at[2] > 0


def test_they_are_so_about_another_mosaic():
    state = random_state(0)
    refined = LocalCovariance(state.adjustment, refine(state.adjustment).mosaic_from_frame)
    view = View(refined, state.external, Answered(state.view.settled))
    assert_best(Paper().rank(view, 10), Exhaustive.of(view, "paper"), 10)


# Bounds


def about_another_mosaic(adjustment):
    rng = np.random.default_rng(1)
    near = np.eye(2, 3) + rng.normal(0.0, 0.1, (adjustment.frames, 2, 3)) * [1.0, 1.0, 30.0]
    return LocalCovariance(adjustment, compose(refine(adjustment).mosaic_from_frame, near))


COVARIANCES = {
    "random 0": lambda: random_state(0).covariance,
    "random 1": lambda: random_state(1).covariance,
    "turning": lambda: LocalCovariance(turning(np.random.default_rng(21), 90, 0)),
    "turning, loops that contradict": lambda: LocalCovariance(
        turning(np.random.default_rng(22), 120, 20, contradiction=100.0)
    ),
    "another mosaic": lambda: about_another_mosaic(turning(np.random.default_rng(23), 100, 10, angle=0.4)),
}


@cache
def covariance_named(name):
    return COVARIANCES[name]()


def worth(covariance, reward):
    """Return all pairs (n, 2) and what the reward says of them."""
    pairs = np.column_stack(np.triu_indices(covariance.adjustment.frames, 1))
    return pairs, reward.of(covariance.of_pairs(pairs), np.zeros(len(pairs)))


@pytest.mark.parametrize("reward", [ExpectedInformativeness(), ExpectedOverlapTimesSpread()], ids=["paper", "area"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_no_pair_is_worth_more_than_the_bound_of_its_stretches(name, reward):
    covariance = covariance_named(name)
    pairs, exact = worth(covariance, reward)
    stretches = covariance.stretches
    directed = _bound(stretches.deviation, stretches.distance, covariance.adjustment.outline, reward.reach)
    i, j = stretches.of_frames(pairs).T
    bound = (directed + directed.T)[i, j] / 2
    # What the expectation of overlap loses to rounding is far below what anybody asks about.
    assert (exact <= ROUNDING * bound + 1e-12 * exact.max()).all()


@pytest.mark.parametrize("reward", [ExpectedInformativeness(), ExpectedOverlapTimesSpread()], ids=["paper", "area"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_no_pair_is_worth_more_than_the_bound_by_its_own_distance_nor_that_more_than_its_stretches(name, reward):
    covariance = covariance_named(name)
    frames = covariance.adjustment.frames
    view = View(covariance, NoExternalModel(frames), Answered(NOTHING_SETTLED))
    hunt = _Hunt(view, view.looks, reward, 1)
    pairs, exact = worth(covariance, reward)
    bound = hunt._bound_of_pairs(pairs)
    assert (exact <= bound + 1e-12 * exact.max()).all()
    i, j = hunt.stretch_of[pairs].T
    assert (bound <= hunt.bound[i, j] * ROUNDING).all()


def test_hardly_any_pair_of_a_raster_is_evaluated():
    world = raster(400)
    state = ActiveLoop.start(400, OUTLINE, world.chain(world.agent(2)), external=world.external)
    every = 400 * 399 // 2
    assert search(state.view, state.view.looks, ExpectedInformativeness(), 1).evaluated < every / 50
    closed = state.record(world.agent(2).answer(Pair(3, 396)))
    assert search(closed.view, closed.view.looks, ExpectedInformativeness(), 25).evaluated < every / 20


# Few candidates, and none


def on_raster(frames, external=None, settled=NOTHING_SETTLED, given_up=None):
    world = raster(frames)
    agent = world.agent(1)
    links = [fit_link(landmarks) for landmarks in world.chain(agent)]
    covariance = LocalCovariance(Adjustment(frames, OUTLINE, links))
    return View(covariance, NoExternalModel(frames) if external is None else external, Answered(settled), given_up)


@pytest.mark.parametrize("strategy", [Paper(), PositionOnly(), Area()], ids=STRATEGIES)
def test_fewer_candidates_than_asked_for_are_all_found_once(strategy):
    view = on_raster(12)
    found = [(s.pair.i, s.pair.j) for s in strategy.rank(view, EVERYTHING)]
    every = Exhaustive.of(view, strategy.name)
    assert len(set(found)) == len(found)
    assert set(found) == {(int(i), int(j)) for i, j in every.pairs}


@pytest.mark.parametrize("frames", [2, 3])
def test_so_short_a_sequence_has_no_candidate_or_one(frames):
    world = raster(3)
    chain = world.chain(world.agent(1))[: frames - 1]
    state = ActiveLoop.start(frames, OUTLINE, chain)
    assert [s.pair for s in Paper().rank(state.view, 5)] == [Pair(0, 2)][: frames - 2]


def test_asking_for_no_pair_gives_none():
    assert Paper().rank(on_raster(12), 0) == []


@pytest.mark.parametrize("strategy", [Paper(), PositionOnly(), Area()], ids=STRATEGIES)
def test_nothing_is_found_where_every_pair_was_answered(strategy):
    assert strategy.rank(on_raster(12, settled=np.column_stack(np.triu_indices(12, 1))), 5) == []


@pytest.mark.parametrize("strategy", [Paper(), Area()], ids=["paper", "area"])
def test_nothing_is_found_where_looks_rule_out_every_pair(strategy):
    assert strategy.rank(on_raster(30, FixedProbabilities(np.zeros((30, 30)))), 5) == []


@pytest.mark.parametrize("probability", [1e-30, 1e-12, 1e-6])
def test_the_only_pair_that_looks_alike_is_found_however_faintly(probability):
    matrix = np.zeros((60, 60))
    matrix[3, 56] = matrix[56, 3] = probability
    assert [s.pair for s in Paper().rank(on_raster(60, FixedProbabilities(matrix)), 3)] == [Pair(3, 56)]


def test_parts_that_were_given_up_are_not_joined():
    part = np.repeat([0, 1, 2], [8, 8, 4])
    given_up = GivenUp(part, np.array([False, True, False]))
    view = on_raster(20, given_up=given_up)
    found = {(s.pair.i, s.pair.j) for s in PositionOnly().rank(view, EVERYTHING)}
    free = {(s.pair.i, s.pair.j) for s in PositionOnly().rank(on_raster(20), EVERYTHING)}
    assert found == {(i, j) for i, j in free if part[i] == part[j] or 1 not in (part[i], part[j])}
    assert found < free


@pytest.mark.parametrize("nth_goal", [1, 2, 5])
def test_a_pair_that_single_precision_takes_for_reaching_a_goal_is_found_once(nth_goal):
    # Its P^ext is below the level of a round, and equal to it in single precision: it may turn up in two rounds.
    bare = on_raster(40)
    hunt = _Hunt(bare, bare.looks, ExpectedInformativeness(), 2)
    goal = hunt.bound.max() / 4.0**nth_goal
    tried = 0
    for i, j in candidates(bare):
        bound = hunt.bound[hunt.stretch_of[i], hunt.stretch_of[j]]
        for level in (goal / bound, goal / ROUNDING / bound):
            rounded = np.float32(level)
            if bound >= goal and level <= 1.0 and tried < 4:
                tried += 1
                matrix = np.zeros((40, 40))
                matrix[i, j] = matrix[j, i] = rounded
                found = Paper().rank(on_raster(40, FixedProbabilities(matrix)), 2)
                assert [s.pair for s in found] == [Pair(int(i), int(j))]
    assert tried
